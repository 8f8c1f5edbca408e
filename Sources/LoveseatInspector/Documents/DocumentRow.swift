import LoveseatModel

/// A document as a line of a list: its first properties, cut to what fits.
enum DocumentRow {
    private static let maximumProperties = 8
    private static let maximumText = 120

    static func json(_ document: Document) -> JSONValue {
        var values: [JSONValue] = []
        for (key, value) in document.element.members {
            guard values.count < maximumProperties else { break }
            values.append([.string(cut(key)), .string(kind(of: value)), .string(preview(of: value))])
        }
        return [
            "id": .string(document.id), "revision": .string(document.revisionID?.text ?? ""),
            "sequence": JSONValue(document.sequence), "bytes": JSONValue(document.json.bytes.count),
            "values": .array(values),
        ]
    }

    static func kind(of value: JSONElement) -> String {
        switch value.kind {
        case .string: "string"
        case .number: "number"
        case .boolean: "boolean"
        case .null: "null"
        case .array: "array"
        case .object: value["@type"]?.string == "blob" ? "blob" : "object"
        }
    }

    private static func preview(of value: JSONElement) -> String {
        if let text = value.string { return cut(text) }
        // A character of JSON text has at most four bytes.
        return cut(String(decoding: value.bytes.prefix(maximumText * 4 + 4), as: UTF8.self))
    }

    static func cut(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let end = scalars.index(scalars.startIndex, offsetBy: maximumText, limitedBy: scalars.endIndex),
            end < scalars.endIndex
        else { return text }
        return String(scalars[..<end]) + "…"
    }
}
