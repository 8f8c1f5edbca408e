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
        reader.complete(try shell.words())
        defer { reader.close() }
        try shell.run()
    }
}

/// Reads statements and commands, and runs them, until the input ends.
final class QueryShell {
    private static let help = """
        SELECT …;               runs a query, which may have several lines
        .collections            lists the collections
        .indexes                lists the indexes
        .explain SELECT …;      shows the SQL, SQLite's plan and the indexes that it uses
        .param name=value       sets a parameter: JSON, or else a text
        .json  .csv  .table     choose how rows are printed
        .quit                   ends, as Ctrl-D does
        """

    private let database: Database
    private let reader: PromptReader
    private var format: QueryCommand.Format
    private var parameters: [String] = []
    private let running = RunningQuery()

    init(database: Database, reader: PromptReader, format: QueryCommand.Format) {
        self.database = database
        self.reader = reader
        self.format = format
    }

    /// What words may be completed to: the language's, collections, and the properties of some documents.
    func words() throws -> [String] {
        var words = Swift.Set(QueryWords.all)
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
        var statement = Statement()
        while true {
            switch try reader.line(prompt: statement.isEmpty ? "loveseat> " : "     ...> ") {
            case .end:
                guard !statement.isEmpty else { return }
                return try attempt(statement.text)
            case .interrupted: statement = Statement()
            case .text(let line):
                if statement.isEmpty, line.trimmingCharacters(in: .whitespaces).isEmpty { continue }
                if statement.isEmpty, line.hasPrefix("."), !line.hasPrefix(".explain") {
                    reader.remember(line)
                    if line.hasPrefix(".quit") || line.hasPrefix(".exit") { return }
                    try attempt(line)
                    continue
                }
                try statement.add(line)
                guard statement.isComplete else { continue }
                reader.remember(statement.text)
                try attempt(statement.text)
                statement = Statement()
            }
        }
    }

    /// Runs one statement or command. At a terminal its error is shown, and nothing ends.
    private func attempt(_ text: String) throws {
        do {
            try perform(text)
            try Output.standard.flush()
        } catch let error as LoveseatError where reader.isTerminal {
            try Output.standard.flush()
            Output.remark(error.message)
        } catch is CancellationError {
            try Output.standard.flush()
            Output.remark("interrupted")
        }
    }

    private func perform(_ text: String) throws {
        let words = text.split(separator: " ", maxSplits: 1).map(String.init)
        let rest = words.count > 1 ? words[1].trimmingCharacters(in: .whitespaces) : ""
        switch words.first {
        case ".help": try lines(Self.help)
        case ".collections":
            for collection in try collections() {
                try Output.standard.fields(collection.fullName, collection.count.counted("document"))
            }
        case ".indexes":
            for collection in try collections() {
                for name in try collection.indexes() { try Output.standard.fields(collection.fullName, name) }
            }
        case ".param":
            var parameters = QueryParameters()
            try parameters.add(rest)
            self.parameters.append(rest)
        case ".json": format = .json
        case ".csv": format = .csv
        case ".table": format = .table
        case ".explain": try lines(try query(rest).explain())
        case let command? where command.hasPrefix("."):
            throw LoveseatError(.invalidParameter, "there is no command \(command): .help lists them")
        default: try ask(try query(text))
        }
    }

    /// A query with those of the parameters that it has.
    private func query(_ text: String) throws -> Query {
        let end = text.lastIndex { $0 != ";" && !$0.isWhitespace }
        var query = try database.createQuery(String(text[...(end ?? text.startIndex)]))
        for parameter in parameters {
            let name = parameter.prefix { $0 != "=" }.trimmingPrefix("$")
            if query.parameterNames.contains(String(name)) { try query.parameters.add(parameter) }
        }
        return query
    }

    private func ask(_ query: Query) throws {
        try running.run { [format] in try await RowPrinter.print(query, as: format) }
    }

    private func collections() throws -> [Loveseat.Collection] {
        try database.scopes().flatMap { try $0.collections() }
    }

    private func lines(_ text: String) throws {
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            try Output.standard.line(String(line))
        }
    }

    private static func quoted(_ collection: Loveseat.Collection) -> String {
        "`\(collection.scope.name)`.`\(collection.name)`"
    }
}

/// Lines of a statement, which is complete at a semicolon outside of quotes at the end of a line.
private struct Statement {
    /// The longest query there may be.
    private static let longest = QueryLimits.textBytes

    private(set) var text = ""
    private var quote: Unicode.Scalar?
    private var endsWithSemicolon = false

    var isEmpty: Bool { text.isEmpty }
    var isComplete: Bool { quote == nil && endsWithSemicolon }

    mutating func add(_ line: String) throws {
        guard text.utf8.count + line.utf8.count < Self.longest else {
            throw LoveseatError(
                .invalidQuery,
                "the query is longer than \(Self.longest) bytes: does it end with a semicolon?"
            )
        }
        text += isEmpty ? line : "\n" + line
        for scalar in line.unicodeScalars {
            // A doubled quote closes and opens again.
            if let open = quote {
                if scalar == open { quote = nil }
            } else if "'\"`".unicodeScalars.contains(scalar) {
                quote = scalar
                endsWithSemicolon = false
            } else if !scalar.properties.isWhitespace {
                endsWithSemicolon = scalar == ";"
            }
        }
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
