extension JSONText {
    /// Whether two bodies that came under one revision ID have the same content.
    ///
    /// Peers write numbers in different forms, and note their own details of an attachment: when it came, and whether it is compressed.
    package func saysTheSame(as other: JSONText) -> Bool {
        bytes == other.bytes || Self.isSame(JSONElement(self).value, JSONElement(other).value, isRoot: true)
    }

    private static func isSame(_ one: JSONValue, _ other: JSONValue, isRoot: Bool = false) -> Bool {
        switch (one, other) {
        case (.number(let first), .number(let second)):
            if case .integer = first, case .integer = second { return first == second }
            return first == second || first.double == second.double
        case (.array(let first), .array(let second)):
            return first.count == second.count && zip(first, second).allSatisfy { isSame($0, $1) }
        case (.object(let first), .object(let second)):
            guard first.count == second.count else { return false }
            return first.allSatisfy { key, value in
                guard let otherValue = second[key] else { return false }
                if isRoot, key.isExactly("_attachments"), let table = value.object,
                    let otherTable = otherValue.object
                {
                    return isSame(attachments: table, otherTable)
                }
                return isSame(value, otherValue)
            }
        default: return one == other
        }
    }

    private static func isSame(attachments one: JSONObject, _ other: JSONObject) -> Bool {
        guard one.count == other.count else { return false }
        return one.allSatisfy { name, entry in
            guard let otherEntry = other[name] else { return false }
            // The digest is that of the compressed bytes, which may differ for the same content.
            if entry["encoding"] != nil || otherEntry["encoding"] != nil {
                return entry["length"] == otherEntry["length"] && isSame(type: entry, otherEntry)
            }
            return entry["digest"] == otherEntry["digest"] && isSame(type: entry, otherEntry)
        }
    }

    /// Whether two attachments are of one type. An entry without a type has the default one, which some peers write down.
    private static func isSame(type one: JSONValue, _ other: JSONValue) -> Bool {
        let types = [one, other].compactMap { $0["content_type"]?.string }
        guard types.count == 2, !types.contains(where: { $0.isExactly("application/octet-stream") }) else {
            return true
        }
        return types[0].isExactly(types[1])
    }
}
