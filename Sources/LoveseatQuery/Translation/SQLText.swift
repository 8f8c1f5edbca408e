/// Pieces of SQL text.
enum SQL {
    /// A name in quotes.
    static func name(_ name: String) -> String {
        "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }

    /// A string literal. SQLite ends its text at a NUL, so that one inside goes through hexadecimal.
    static func string(_ text: String) -> String {
        if text.utf8.contains(0) { return "CAST(\(blob(Array(text.utf8))) AS TEXT)" }
        return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
            + "'"
    }

    static func blob(_ bytes: [UInt8]) -> String {
        var text = "x'"
        for byte in bytes {
            text += (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        return text + "'"
    }

    static func double(_ value: Double) -> String {
        if value.isNaN { return "NULL" }
        if value.isInfinite { return value < 0 ? "-9e999" : "9e999" }
        return value.description
    }
}
