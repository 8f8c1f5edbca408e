import LoveseatAssertions
package import LoveseatModel
import LoveseatText

/// A condition of CouchDB's query language Mango (protocol/couchdb.md §4.9).
package indirect enum Selector: Sendable {
    /// The names on the way to a value.
    package typealias FieldPath = [ExactText]

    case all([Selector])
    case any([Selector])
    case none([Selector])
    case not(Selector)
    /// A condition on the value at a path.
    case field(FieldPath, Condition)

    /// A condition on one value.
    package indirect enum Condition: Sendable {
        case compare(Set<Comparison>, JSONValue)
        case exists(Bool)
        case type(String)
        case isIn([JSONValue], Bool)
        case size(Int)
        case mod(Int, Int)
        case regex(Pattern)
        case begins(String)
        case containsAll([JSONValue])
        case elementMatch(Selector, all: Bool)
        case keyMatch(Selector)
        case not(Condition)
        case both([Condition])
        case sub(Selector)
    }

    package typealias Comparison = Collation.Order

    /// A regular expression.
    package struct Pattern: Sendable {
        /// The longest text that is looked at, in bytes.
        private static let maximumText = 16 << 10

        let text: String
        private let expression: RegularExpression

        fileprivate init?(_ text: String) {
            // A pattern that is not valid or not supported makes the selector invalid.
            guard let expression = try? RegularExpression(text, .pcre) else { return nil }
            self.text = text
            self.expression = expression
        }

        fileprivate func matches(_ string: String) -> Bool {
            guard string.utf8.count <= Self.maximumText else { return false }
            do throws(RegularExpressionError) {
                return try expression.matches(string)
            } catch {
                impossible("a search in a short text takes too long: \(error)")
                return false
            }
        }
    }

    /// The error for a selector that is not valid.
    package struct ParseError: Error, Hashable, Sendable {
        package let error: String
        package let reason: String
    }

    private static let maximumDepth = 100

    package init(parsing value: JSONValue) throws(ParseError) {
        self = try Self.parse(value, path: [], depth: 0)
    }

    private static func parse(_ value: JSONValue, path: FieldPath, depth: Int) throws(ParseError) -> Selector
    {
        guard depth < maximumDepth else {
            throw ParseError(error: "invalid_selector", reason: "the selector is nested too deeply")
        }
        guard case .object(let members) = value else {
            throw ParseError(error: "invalid_selector", reason: "Selector must be a JSON object")
        }
        var parts: [Selector] = []
        for (key, value) in members.sorted(by: { $0.key.bytesPrecede($1.key) }) {
            switch key {
            case "$and": parts.append(.all(try list(value, key, path, depth)))
            case "$or": parts.append(.any(try list(value, key, path, depth)))
            case "$nor": parts.append(.none(try list(value, key, path, depth)))
            case "$not" where path.isEmpty || value.object != nil:
                parts.append(.not(try parse(value, path: path, depth: depth + 1)))
            case _ where key.beginsExactly(with: "$"):
                parts.append(.field(path, try condition(key, value, depth)))
            default:
                let inner = path + names(in: key)
                if case .object(let object) = value, !object.isEmpty {
                    parts.append(try parse(value, path: inner, depth: depth + 1))
                } else {
                    parts.append(.field(inner, .compare([.same], value)))
                }
            }
        }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private static func list(_ value: JSONValue, _ key: String, _ path: FieldPath, _ depth: Int)
        throws(ParseError)
        -> [Selector]
    {
        guard case .array(let items) = value else { throw bad(key, value) }
        var all: [Selector] = []
        for item in items { all.append(try parse(item, path: path, depth: depth + 1)) }
        return all
    }

    private static func bad(_ key: String, _ value: JSONValue) -> ParseError {
        ParseError(error: "bad_arg", reason: "Bad argument for operator \(key): \(erlangTerm(value))")
    }

    /// The fields of a path with dots. A backslash before a dot makes it part of a name; one before a dollar sign makes a name that is not an
    /// operator. A name that begins with backslashes and a dollar sign has one backslash more in a path.
    package static func names(in path: String) -> FieldPath {
        let (dot, dollar, backslash) = (UInt8(ascii: "."), UInt8(ascii: "$"), UInt8(ascii: "\\"))
        var names: FieldPath = []
        var name: [UInt8] = []
        var isEscaped = false
        var rest = Array(path.utf8)[...]
        while let byte = rest.popFirst() {
            if name.isEmpty, !isEscaped, byte == backslash, isDollar(rest) {
                let run = rest.prefix { $0 == backslash }
                name += run + [dollar]
                rest = rest.dropFirst(run.count + 1)
                continue
            }
            if isEscaped, byte != dot, byte != dollar { name.append(backslash) }
            if !isEscaped, byte == backslash {
                isEscaped = true
                continue
            }
            if !isEscaped, byte == dot {
                names.append(ExactText(String(decoding: name, as: UTF8.self)))
                name = []
            } else {
                name.append(byte)
            }
            isEscaped = false
        }
        if isEscaped { name.append(backslash) }
        return names + [ExactText(String(decoding: name, as: UTF8.self))]
    }

    /// Whether a name begins with a dollar sign, behind any number of backslashes.
    static func isDollar(_ name: some Sequence<UInt8>) -> Bool {
        name.first { $0 != UInt8(ascii: "\\") } == UInt8(ascii: "$")
    }

    private static func condition(_ key: String, _ value: JSONValue, _ depth: Int) throws(ParseError)
        -> Condition
    {
        switch key {
        case "$eq": return .compare([.same], value)
        case "$ne": return .not(.compare([.same], value))
        case "$lt": return .compare([.before], value)
        case "$lte": return .compare([.before, .same], value)
        case "$gt": return .compare([.after], value)
        case "$gte": return .compare([.after, .same], value)
        case "$exists":
            guard let flag = value.bool else { throw bad(key, value) }
            return .exists(flag)
        case "$type":
            guard let type = value.string else { throw bad(key, value) }
            return .type(type)
        case "$in", "$nin":
            guard let values = value.array else { throw bad(key, value) }
            return .isIn(values, key == "$in")
        case "$size":
            guard let size = value.int, size >= 0 else { throw bad(key, value) }
            return .size(size)
        case "$mod":
            guard let pair = value.array, pair.count == 2, let divisor = pair[0].int, divisor > 0,
                let rest = pair[1].int
            else { throw bad(key, value) }
            return .mod(divisor, rest)
        case "$regex":
            guard let text = value.string, let pattern = Pattern(text) else { throw bad(key, value) }
            return .regex(pattern)
        case "$beginsWith":
            guard let text = value.string else { throw bad(key, value) }
            return .begins(text)
        case "$all":
            guard let values = value.array else { throw bad(key, value) }
            return .containsAll(values)
        case "$elemMatch", "$allMatch":
            guard value.object != nil else { throw bad(key, value) }
            return .elementMatch(try parse(value, path: [], depth: depth + 1), all: key == "$allMatch")
        case "$keyMapMatch":
            guard value.object != nil else { throw bad(key, value) }
            return .keyMatch(try parse(value, path: [], depth: depth + 1))
        case "$not":
            return .not(.compare([.same], value))
        default: throw ParseError(error: "invalid_operator", reason: "Invalid operator: \(key)")
        }
    }
}

extension Selector {
    private static let idPath: FieldPath = ["_id"]

    /// Compares what a document has at a path with another value.
    package static func compare(_ value: JSONValue, _ other: JSONValue, at path: FieldPath) -> Comparison {
        path == idPath ? Collation.compareID(value, other) : Collation.compare(value, other)
    }

    /// Whether a document meets the condition.
    package func matches(_ document: JSONValue) -> Bool { matches(document, isDocument: true) }

    fileprivate func matches(_ value: JSONValue, isDocument: Bool) -> Bool {
        switch self {
        case .all(let parts): parts.allSatisfy { $0.matches(value, isDocument: isDocument) }
        case .any(let parts): parts.contains { $0.matches(value, isDocument: isDocument) }
        case .none(let parts): parts.allSatisfy { $0.negated.matches(value, isDocument: isDocument) }
        case .not(let part): part.negated.matches(value, isDocument: isDocument)
        case .field(let path, let condition):
            condition.holds(Self.value(at: path, in: value), isID: isDocument && path == Self.idPath)
        }
    }

    /// The opposite. As in CouchDB, it does not match a document without the field either.
    private var negated: Selector {
        switch self {
        case .all(let parts): .any(parts.map(\.negated))
        case .any(let parts): .all(parts.map(\.negated))
        case .none(let parts): .any(parts)
        case .not(let part): part
        case .field(let path, .exists(let flag)): .field(path, .exists(!flag))
        case .field(let path, .isIn(let values, let flag)): .field(path, .isIn(values, !flag))
        case .field(let path, .not(let condition)): .field(path, condition)
        case .field(let path, let condition): .field(path, .not(condition))
        }
    }

    /// The value at a path; nil if there is none.
    package static func value(at path: FieldPath, in value: JSONValue) -> JSONValue? {
        var value = value
        for name in path {
            if case .array(let items) = value, let index = Int(name.text), items.indices.contains(index) {
                value = items[index]
                continue
            }
            guard let next = value[name.text] else { return nil }
            value = next
        }
        return value
    }
}

extension Selector.Condition {
    /// `isID`: whether the value is the ID of a document.
    fileprivate func holds(_ value: JSONValue?, isID: Bool) -> Bool {
        if case .exists(let flag) = self { return (value != nil) == flag }
        guard let value else { return false }
        switch self {
        case .compare(let wanted, let other):
            return wanted.contains(
                isID ? Collation.compareID(value, other) : Collation.compare(value, other)
            )
        case .exists: return true
        case .type(let type): return Self.type(of: value).isExactly(type)
        case .isIn(let values, let flag):
            let items = value.array ?? []
            let isIn = values.contains { wanted in
                Collation.compare(wanted, value) == .same
                    || items.contains { Collation.compare(wanted, $0) == .same }
            }
            return isIn == flag
        case .size(let size): return value.array?.count == size
        case .mod(let divisor, let rest): return value.int.map { $0 % divisor == rest } ?? false
        case .regex(let pattern): return value.string.map(pattern.matches) ?? false
        case .begins(let text): return value.string?.beginsExactly(with: text) ?? false
        case .containsAll(let values):
            guard let items = value.array else { return false }
            return values.allSatisfy { wanted in items.contains { Collation.compare(wanted, $0) == .same } }
        case .elementMatch(let selector, let all):
            guard let items = value.array, !items.isEmpty else { return false }
            let matches = { (item: JSONValue) in selector.matches(item, isDocument: false) }
            return all ? items.allSatisfy(matches) : items.contains(where: matches)
        case .keyMatch(let selector):
            return value.object?.keys.contains { selector.matches(.string($0), isDocument: false) } ?? false
        case .not(let condition): return !condition.holds(value, isID: isID)
        case .both(let conditions): return conditions.allSatisfy { $0.holds(value, isID: isID) }
        case .sub(let selector): return selector.matches(value, isDocument: false)
        }
    }

    private static func type(of value: JSONValue) -> String {
        switch value {
        case .null: "null"
        case .bool: "boolean"
        case .number: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }
}
