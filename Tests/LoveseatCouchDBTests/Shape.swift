import LoveseatModel

/// What two answers must have in common: keys and kinds of values, and the kind of error.
enum Shape {
    private static let free: Set = [
        "warning", "ref", "vendor", "features", "git_sha", "props", "cluster", "sizes", "disk_format_version",
        "partitioned_indexes", "seeds",
    ]
    static let sequences: Set = [
        "seq", "last_seq", "update_seq", "purge_seq", "source_last_seq", "start_last_seq",
        "end_last_seq", "recorded_seq", "bookmark", "_local_seq",
    ]

    static func isSame(_ recorded: String, _ answer: String) -> Bool {
        if recorded == answer { return true }
        guard let one = values(recorded), let other = values(answer) else { return recorded == answer }
        if one.count == 1, other.count == 1, let error = one[0]["error"], one[0]["reason"] != nil {
            return other[0]["error"] == error && other[0]["reason"]?.string != nil
        }
        return one.map { shape($0, nil) } == other.map { shape($0, nil) }
    }

    /// The JSON of a body, or of each of its lines; of an event feed the rows.
    private static func values(_ text: String) -> [JSONValue]? {
        if let value = try? JSONValue(parsing: text) { return [value] }
        var lines = text.split(whereSeparator: \.isNewline).map(String.init)
        if text.hasPrefix("data: ") {
            lines = lines.filter { $0.hasPrefix("data: ") }.map { String($0.dropFirst(6)) }
        }
        let values = lines.compactMap { try? JSONValue(parsing: $0) }
        return values.count == lines.count && !values.isEmpty ? values : nil
    }

    private static func shape(_ value: JSONValue, _ key: String?) -> String {
        if let key, sequences.contains(key) { return "*" }
        switch value {
        case .null: return "null"
        case .bool: return "bool"
        case .number: return "number"
        case .string: return "string"
        case .array(let items):
            // The order of rows written in one batch is the server's own.
            let isOrdered = !items.contains {
                $0["changes"] != nil || $0["docs"] != nil || $0["ok"]?.object != nil || $0["missing"] != nil
            }
            let shapes = items.map { shape($0, nil) }
            return "[" + (isOrdered ? shapes : shapes.sorted()).joined(separator: ",") + "]"
        case .object(let members):
            return "{"
                + members.filter { !free.contains($0.key) }.sorted { $0.key < $1.key }
                .map { "\($0.key):\(shape($0.value, $0.key))" }.joined(separator: ",") + "}"
        }
    }
}
