import ArgumentParser
import Foundation
import Loveseat
import LoveseatQuery
import Synchronization

struct SQLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sql",
        abstract: "Ask queries in SQL++ at a prompt.",
        discussion: """
            A query ends with a semicolon, and may have several lines. The tab key completes words, and the arrows find earlier \
            queries, where libedit is installed. An interrupt (Ctrl-C) ends a query that runs. Lines that begin with a dot are \
            commands: .help lists them. If standard input is not a terminal, the first mistake ends it.

            EXAMPLES
              loveseat sql trips
              echo 'SELECT COUNT(*) AS n FROM _;' | loveseat sql trips --json
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Flag(exclusivity: .exclusive)
    var format: QueryCommand.Format = .table

    func run() throws {
        let database = try argument.read()
        let reader = PromptReader()
        let shell = QueryShell(database: database, reader: reader, format: format)
        // A script completes nothing.
        if reader.isTerminal { reader.complete(try shell.words()) }
        defer { reader.close() }
        try shell.run()
        try database.close()
    }
}

/// Reads statements and commands, and runs them, until the input ends.
final class QueryShell {
    private static let help = """
        SELECT …;               runs a query, which may have several lines; a line may have several queries
        .collections            lists the collections
        .indexes                lists the indexes
        .explain SELECT …;      shows the SQL, SQLite's plan and the indexes that it uses
        .param name=value       sets a parameter: JSON, or else a text
        .json  .csv  .table     choose how rows are printed
        .quit                   ends, as Ctrl-D does
        """

    private static let commands =
        [".help"] + help.split(whereSeparator: \.isWhitespace).filter { $0.hasPrefix(".") }.map(String.init)

    private let database: Database
    private let reader: PromptReader
    private var format: QueryCommand.Format
    private var parameters = QueryParameters()
    private let running = RunningQuery()

    init(database: Database, reader: PromptReader, format: QueryCommand.Format) {
        self.database = database
        self.reader = reader
        self.format = format
    }

    /// Returns the words for the prompt's completion: those of the language, the commands, collections, and the properties of some
    /// documents.
    func words() throws -> [String] {
        var words = Swift.Set(QueryWords.all + Self.commands)
        for collection in try collections() {
            words.insert(collection.fullName)
            words.formUnion(try collection.indexes())
            let query = try database.createQuery("SELECT d FROM \(Self.quoted(collection)) AS d LIMIT 50")
            for row in try query.execute() { words.formUnion(row[0]?.object?.keys.map { $0 } ?? []) }
        }
        return words.filter { !$0.contains(where: \.isWhitespace) }.sorted()
    }

    func run() throws {
        if reader.isTerminal {
            Signals.onEachInterrupt { [running] in running.cancel() }
            Output.remark(".help lists the commands, .quit ends")
        }
        var statements = Statements()
        var number = 0
        while true {
            number += 1
            let prompt = statements.isEmpty ? "loveseat> " : "     ...> "
            switch try named(number, { try reader.line(prompt: prompt) }) {
            case .end:
                if !statements.isEmpty { try attempt(statements.rest, line: number - 1) }
                return
            case .interrupted: statements = Statements()
            case .text(let line):
                if statements.isEmpty, line.hasPrefix("."), !line.hasPrefix(".explain") {
                    reader.remember(line)
                    if line.hasPrefix(".quit") || line.hasPrefix(".exit") { return }
                    try attempt(line, line: number)
                    continue
                }
                for statement in try named(number, { try statements.add(line) }) {
                    reader.remember(statement + ";")
                    try attempt(statement, line: number)
                }
            }
        }
    }

    /// Runs one statement or command. At a terminal its error is shown, and nothing ends; an error in a script names the line
    /// in which the statement ended.
    private func attempt(_ text: String, line number: Int) throws {
        do {
            try perform(text)
            try Output.standard.flush()
        } catch let error as LoveseatError {
            try Output.standard.flush()
            try named(number) { if !reader.isTerminal { throw error } }
            Output.remark(error.message)
        } catch is CancellationError {
            try Output.standard.flush()
            Output.remark("interrupted")
        }
    }

    /// Names the line of a script in the errors of what is done with it.
    private func named<Result>(_ number: Int, _ body: () throws -> Result) throws -> Result {
        do { return try body() } catch let error as LoveseatError where !reader.isTerminal {
            throw LoveseatError(error.code, "line \(number): \(error.message)")
        }
    }

    private func perform(_ text: String) throws {
        let words = text.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = words.count > 1 ? words[1].trimmingCharacters(in: .whitespaces) : ""
        switch words.first {
        case ".help": try Output.standard.lines(Self.help)
        case ".collections":
            for collection in try collections() {
                try Output.standard.fields(collection.fullName, collection.count.counted("document"))
            }
        case ".indexes":
            for collection in try collections() {
                for name in try collection.indexes() { try Output.standard.fields(collection.fullName, name) }
            }
        case ".param": try parameters.add(rest)
        case ".json": format = .json
        case ".csv": format = .csv
        case ".table": format = .table
        case ".explain": try Output.standard.lines(try query(rest).explain())
        case let command? where command.hasPrefix("."):
            throw LoveseatError(.invalidParameter, "there is no command \(command): .help lists them")
        default: try ask(try query(text))
        }
    }

    /// Creates a query, and sets those of the parameters that occur in it.
    private func query(_ text: String) throws -> Query {
        var query = try database.query(text)
        for name in query.parameterNames { query.parameters[name.text] = parameters.values[name.text] }
        return query
    }

    private func ask(_ query: Query) throws {
        try running.run { [format] in try await RowPrinter.print(query, as: format) }
    }

    private func collections() throws -> [Loveseat.Collection] {
        try database.scopes().flatMap { try $0.collections() }
    }

    private static func quoted(_ collection: Loveseat.Collection) -> String {
        "`\(collection.scope.name)`.`\(collection.name)`"
    }
}

/// Statements of a text that comes line by line. Each ends at a semicolon outside of quotes.
private struct Statements {
    /// The longest query there may be.
    private static let longest = QueryLimits.textBytes

    /// The text that has not reached its semicolon yet.
    private(set) var rest = ""
    private var quote: Unicode.Scalar?

    var isEmpty: Bool { rest.isEmpty }

    /// Adds a line, and returns the statements that end in it.
    mutating func add(_ line: String) throws -> [String] {
        guard rest.utf8.count + line.utf8.count < Self.longest else {
            throw LoveseatError(
                .invalidQuery,
                "the query is longer than \(Self.longest) bytes: does it end with a semicolon?"
            )
        }
        var statements: [String] = []
        var text = String.UnicodeScalarView()
        for scalar in line.unicodeScalars {
            // A doubled quote closes and opens again.
            if let open = quote {
                if scalar == open { quote = nil }
            } else if "'\"`".unicodeScalars.contains(scalar) {
                quote = scalar
            } else if scalar == ";" {
                append(String(text))
                if !rest.isEmpty { statements.append(rest) }
                (rest, text) = ("", .init())
                continue
            }
            text.append(scalar)
        }
        append(String(text))
        return statements
    }

    private mutating func append(_ text: String) {
        if isEmpty { rest = String(text.trimmingPrefix(while: \.isWhitespace)) } else { rest += "\n" + text }
    }
}

/// The query that a prompt waits for.
private final class RunningQuery: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        var error: (any Error)?
    }

    private let state = Mutex(State())

    /// Runs a closure, and waits. The calling thread belongs to the prompt, not to Swift's pool.
    func run(_ body: @escaping @Sendable () async throws -> Void) throws {
        let done = DispatchSemaphore(value: 0)
        let task = Task {
            do { try await body() } catch { state.withLock { $0.error = error } }
            done.signal()
        }
        state.withLock { $0.task = task }
        done.wait()
        let error = state.withLock { state in
            defer { state = State() }
            return state.error
        }
        if let error { throw error }
    }

    func cancel() { state.withLock { $0.task }?.cancel() }
}
