import LoveseatModel

/// Compares answers as the corpus's README says.
enum GoldenJudge {
    static func isSame(_ one: JSONValue, _ other: JSONValue) -> Bool {
        switch (one, other) {
        case (.number(let one), .number(let other)):
            if one == other { return true }
            // Within 1e-9, integers too, as the corpus's own comparison has it: the real engine is a millisecond off in two dates.
            let (left, right) = (one.double, other.double)
            return left == right || abs(left - right) <= max(1e-9 * max(abs(left), abs(right)), 1e-300)
        case (.array(let one), .array(let other)):
            return one.count == other.count && zip(one, other).allSatisfy(isSame)
        case (.object(let one), .object(let other)):
            return one.count == other.count
                && one.allSatisfy { key, value in other[key].map { isSame(value, $0) } ?? false }
        default: return one == other
        }
    }

    /// A text by which rows are sorted; equal numbers have the same.
    private static func key(_ value: JSONValue) -> String {
        switch value {
        case .number(let number):
            number.exactly(Int64.self).map(String.init) ?? number.double.description
        case .array(let items): "[" + items.map(key).joined(separator: ",") + "]"
        case .object(let object):
            "{" + object.map { "\($0.key):\(key($0.value))" }.sorted().joined(separator: ",") + "}"
        default: value.description
        }
    }

    /// What is wrong with rows, or nil.
    static func difference(_ question: GoldenCorpus.Question, columns: [String], rows: [JSONValue]) -> String?
    {
        let expectedColumns = question["columns"]?.items.compactMap(\.string) ?? []
        guard columns == expectedColumns else { return "columns \(columns) instead of \(expectedColumns)" }
        var expected = question["rows"]?.items.map(\.value) ?? []
        var found = rows
        guard expected.count == found.count else { return "\(found.count) rows instead of \(expected.count)" }
        let opaque = question["opaque"]?.items.compactMap(\.string) ?? []
        let logical = question["logical"]?.items.compactMap(\.string) ?? []
        let loose = question["loose"]?.items.map { $0.items.map(\.value) } ?? []
        func blurred(_ row: JSONValue) -> JSONValue {
            var row = row
            for column in opaque where row[column] != nil { row[column] = "*" }
            for column in logical {
                if let value = row[column]?.bool { row[column] = JSONValue(value ? 1 : 0) }
            }
            for key in loose where zip(columns, key).allSatisfy({ row[$0] == $1 }) {
                for column in columns.dropFirst(key.count) { row[column] = "*" }
            }
            return row
        }
        expected = expected.map(blurred)
        found = found.map(blurred)
        if question["order"]?.string == "any" {
            expected.sort { key($0) < key($1) }
            found.sort { key($0) < key($1) }
        }
        for (one, other) in zip(found, expected) where !isSame(one, other) {
            return "row \(one) instead of \(other)"
        }
        return nil
    }
}
