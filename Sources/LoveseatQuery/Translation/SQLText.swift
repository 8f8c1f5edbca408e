/// Pieces of SQL text.
enum SQL {
    /// A name in quotes. It must not contain a NUL, where SQLite's text ends.
    static func name(_ name: String) -> String { name.quoted("\"") }

    /// A string literal. SQLite ends its text at a NUL, so that one inside goes through hexadecimal.
    static func string(_ text: String) -> String {
        if text.utf8.contains(0) { return "CAST(\(blob(Array(text.utf8))) AS TEXT)" }
        return text.quoted("'")
    }

    /// Whether a collation is named in the text, or something that looks like one.
    static func mayNameCollation(_ text: String) -> Bool {
        text.utf8.count > 10 && contains(Array(text.utf8), Array(" COLLATE ".utf8))
    }

    private static func contains(_ text: [UInt8], _ wanted: [UInt8]) -> Bool {
        text.indices.contains { text[$0] == wanted[0] && text[$0...].starts(with: wanted) }
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

extension String {
    /// The text between two delimiters, with one inside written twice.
    ///
    /// This goes by scalars: as a `Character`, a delimiter differs from one with a combining mark behind it.
    func quoted(_ delimiter: Unicode.Scalar) -> String {
        var scalars = UnicodeScalarView()
        scalars.append(delimiter)
        for scalar in unicodeScalars {
            if scalar == delimiter { scalars.append(delimiter) }
            scalars.append(scalar)
        }
        scalars.append(delimiter)
        return String(scalars)
    }
}
