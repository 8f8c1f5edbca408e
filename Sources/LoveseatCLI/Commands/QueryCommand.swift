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
              loveseat query trips 'SELECT name, likes FROM travel.sights ORDER BY likes DESC LIMIT 10' --table
              loveseat query trips 'SELECT meta().id FROM _ WHERE city = $city' --param city=Paris
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

    /// How often to look for commits of other processes, which SQLite does not report.
    private static let lookEvery = Duration.milliseconds(100)

    func run() async throws {
        if live { Signals.begin() }
        let database = try argument.read()
        var query = try database.createQuery(query)
        query.parameters = try values()
        if explain {
            for line in try query.explain().split(separator: "\n", omittingEmptySubsequences: false) {
                try Output.standard.line(String(line))
            }
        } else if live {
            try await follow(query)
        } else if format == .table {
            try show(try await query.execute(), of: query)
        } else {
            var printer = RowPrinter(format, query.columns)
            for try await row in query.rows() { try printer.print(row) }
        }
        try await database.close()
    }

    private func values() throws -> QueryParameters {
        var values = QueryParameters()
        for parameter in parameters {
            guard let equals = parameter.firstIndex(of: "=") else {
                throw LoveseatError(.invalidParameter, "\"\(parameter)\" is not name=value")
            }
            let value = String(parameter[parameter.index(after: equals)...])
            let name = parameter[..<equals].trimmingPrefix("$")
            values[String(name)] = (try? JSONValue(parsing: value)) ?? .string(value)
        }
        return values
    }

    private func follow(_ query: Query) async throws {
        let isOver = Signals.whenInterrupted()
        let collection = try query.database.defaultCollection()
        var version: Int?
        var last: [String]?
        while !isOver() {
            let now = try collection.dataVersion()
            if now != version {
                version = now
                let rows = try await query.execute()
                let lines = rows.map(\.json)
                if lines != last {
                    if last != nil { try Output.standard.line("") }
                    last = lines
                    try show(rows, of: query)
                    try Output.standard.flush()
                }
            }
            try await Task.sleep(for: Self.lookEvery)
        }
    }

    private func show(_ rows: [QueryRow], of query: Query) throws {
        guard format == .table else {
            var printer = RowPrinter(format, query.columns)
            for row in rows { try printer.print(row) }
            return
        }
        let lines = [query.columns] + rows.map { row in (0..<row.count).map { RowPrinter.text(row[$0]) } }
        let cells = lines.map { $0.map(\.printable) }
        let widths = query.columns.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
        for (number, line) in cells.enumerated() {
            try Output.standard.line(Self.padded(line, widths, with: " "))
            if number == 0 {
                try Output.standard.line(Self.padded(line.map { _ in "" }, widths, with: "-"))
            }
        }
    }

    private static func padded(_ cells: [String], _ widths: [Int], with character: Character) -> String {
        zip(cells, widths).map { $0 + String(repeating: character, count: max(0, $1 - $0.count)) }
            .joined(separator: "  ")
    }
}

/// Prints rows as lines.
struct RowPrinter {
    private let format: QueryCommand.Format
    private let columns: [String]
    private var isFirst = true

    init(_ format: QueryCommand.Format, _ columns: [String]) {
        self.format = format
        self.columns = columns
    }

    mutating func print(_ row: QueryRow) throws {
        if format == .json { return try Output.standard.json(row.json) }
        if isFirst { try Output.standard.line(columns.map(Self.quoted).joined(separator: ",").utf8) }
        isFirst = false
        let cells = (0..<row.count).map { Self.quoted(Self.text(row[$0])) }
        try Output.standard.line(cells.joined(separator: ",").utf8)
    }

    /// A string as it is, anything else as JSON, and nothing for MISSING.
    static func text(_ value: JSONValue?) -> String { value?.string ?? value?.description ?? "" }

    /// A field as RFC 4180 has it.
    private static func quoted(_ text: String) -> String {
        let isPlain = !text.unicodeScalars.contains { "\",\r\n".unicodeScalars.contains($0) }
        if isPlain { return text }
        // A quotation mark with an accent behind it is another character, and not another byte.
        let quote = UInt8(ascii: "\"")
        let doubled = text.utf8.flatMap { $0 == quote ? [quote, quote] : [$0] }
        return "\"\(String(decoding: doubled, as: UTF8.self))\""
    }
}
