import ArgumentParser
import Foundation
import Loveseat

struct QueryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "query",
        abstract: "Run a query in SQL++.",
        discussion: """
            Collections are named in FROM: _ is the default collection, scope.collection any other. Parameters are $name in the \
            query; a value that is not JSON is a text.

            EXAMPLES
              loveseat query trips --table \\
                'SELECT name, likes FROM travel.sights ORDER BY likes DESC LIMIT 10'
              loveseat query trips --param city=Paris \\
                'SELECT meta().id FROM _ WHERE city = $city'
              loveseat query trips 'SELECT COUNT(*) AS n FROM _' --live
            """
    )

    enum Format: String, EnumerableFlag {
        case json, csv, table

        static func help(for value: Format) -> ArgumentHelp? {
            switch value {
            case .json: "Print one JSON object per line. This is the default."
            case .csv: "Print comma-separated values, with a first line of titles."
            case .table: "Print a table."
            }
        }
    }

    @OptionGroup var argument: DatabaseArgument
    @Argument(help: "The query.")
    var query: String
    @Option(name: [.customLong("param")], help: "The value of a parameter: name=value. May be repeated.")
    var parameters: [String] = []
    @Flag(exclusivity: .exclusive)
    var format: Format = .json
    @Flag(help: "Show the SQL, SQLite's plan and the indexes that it uses, instead of running the query.")
    var explain = false
    @Flag(help: "Print the result again whenever it changes, in any process.")
    var live = false

    func run() async throws {
        if live { Signals.begin() }
        let database = try argument.read()
        var query = try database.query(query)
        for parameter in parameters { try query.parameters.add(parameter) }
        if !explain { Self.remark(onMissing: query) }
        if explain {
            try Output.standard.lines(try query.explain())
        } else if live {
            try await follow(query)
        } else {
            try await RowPrinter.print(query, as: format)
        }
        try await database.close()
    }

    /// Names the parameters without a value, which are MISSING, so that comparisons with them find nothing.
    private static func remark(onMissing query: Query) {
        for name in query.parameterNames.map(\.text).sorted() where query.parameters[name] == nil {
            Output.remark("loveseat: $\(name) has no value, and is MISSING: use --param \(name)=VALUE")
        }
    }

    private func follow(_ query: Query) async throws {
        var last: [ExactText]?
        try await Commits.follow(try query.database.defaultCollection()) {
            let rows = try await query.execute()
            let lines = rows.map { ExactText($0.json) }
            if lines == last { return }
            if last != nil { try Output.standard.line("") }
            last = lines
            try RowPrinter.print(rows, of: query, as: format)
            try Output.standard.flush()
        }
    }
}

extension QueryParameters {
    /// Sets the parameter of `name=value`: JSON, or else a text.
    mutating func add(_ text: String) throws {
        guard let equals = text.firstIndex(of: "=") else {
            throw LoveseatError(.invalidParameter, "\"\(text)\" is not name=value")
        }
        let value = String(text[text.index(after: equals)...])
        self[String(text[..<equals].trimmingPrefix("$"))] = (try? JSONValue(parsing: value)) ?? .string(value)
    }
}
