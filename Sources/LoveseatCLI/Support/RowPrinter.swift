import Loveseat

/// Prints rows as lines.
struct RowPrinter {
    private let format: QueryCommand.Format
    private let columns: [String]
    private var isFirst = true

    init(_ format: QueryCommand.Format, _ columns: [String]) {
        self.format = format
        self.columns = columns
    }

    /// Prints the rows of a query. Those of a table are all read before, since its columns are as wide as their longest cells.
    static func print(_ query: Query, as format: QueryCommand.Format) async throws {
        if format == .table { return try print(try await query.execute(), of: query, as: format) }
        var printer = RowPrinter(format, query.columns)
        for try await row in query.rows() { try printer.print(row) }
    }

    static func print(_ rows: [QueryRow], of query: Query, as format: QueryCommand.Format) throws {
        if format == .table { return try table(rows, query.columns) }
        var printer = RowPrinter(format, query.columns)
        for row in rows { try printer.print(row) }
    }

    private mutating func print(_ row: QueryRow) throws {
        if format == .json { return try Output.standard.json(row.json) }
        if isFirst { try Output.standard.line(columns.map(Self.quoted).joined(separator: ",").utf8) }
        isFirst = false
        let cells = (0..<row.count).map { Self.quoted(Self.text(row[$0])) }
        try Output.standard.line(cells.joined(separator: ",").utf8)
    }

    private static func table(_ rows: [QueryRow], _ columns: [String]) throws {
        let lines = [columns] + rows.map { row in (0..<row.count).map { text(row[$0]) } }
        let cells = lines.map { $0.map(\.printable) }
        let widths = columns.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
        for (number, line) in cells.enumerated() {
            try Output.standard.line(padded(line, widths, with: " "))
            if number == 0 { try Output.standard.line(padded(line.map { _ in "" }, widths, with: "-")) }
        }
    }

    private static func padded(_ cells: [String], _ widths: [Int], with character: Character) -> String {
        zip(cells, widths).map { $0 + String(repeating: character, count: max(0, $1 - $0.count)) }
            .joined(separator: "  ")
    }

    /// A string as it is, anything else as JSON, and nothing for MISSING.
    private static func text(_ value: JSONValue?) -> String { value?.string ?? value?.description ?? "" }

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
