package import LoveseatModel

extension Selector {
    /// The selector as CouchDB shows it: each condition with its operator.
    package var description: JSONValue {
        switch self {
        case .all(let parts): parts.isEmpty ? [:] : ["$and": .array(parts.map(\.description))]
        case .any(let parts): ["$or": .array(parts.map(\.description))]
        case .none(let parts): ["$nor": .array(parts.map(\.description))]
        case .not(let part): ["$not": part.description]
        case .field(let path, let condition):
            path.isEmpty ? condition.description : .object([Self.text(of: path): condition.description])
        }
    }

    /// A path as selectors and lists of fields write it.
    package static func text(of path: FieldPath) -> String {
        var bytes: [UInt8] = []
        for (index, name) in path.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ".")) }
            if isDollar(name.text.utf8) { bytes.append(UInt8(ascii: "\\")) }
            for byte in name.text.utf8 {
                if byte == UInt8(ascii: ".") { bytes.append(UInt8(ascii: "\\")) }
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The paths that every matching document has.
    package var requiredPaths: Set<FieldPath> {
        switch self {
        case .all(let parts): return parts.reduce(into: []) { $0.formUnion($1.requiredPaths) }
        case .any(let parts):
            guard var common = parts.first?.requiredPaths else { return [] }
            for part in parts.dropFirst() { common.formIntersection(part.requiredPaths) }
            return common
        case .none, .not: return []
        case .field(_, .exists(false)): return []
        case .field(let path, _): return [path]
        }
    }

    /// The comparisons that every matching document passes, by their paths.
    package var comparisons: [FieldPath: [(Set<Comparison>, JSONValue)]] {
        var comparisons: [FieldPath: [(Set<Comparison>, JSONValue)]] = [:]
        addComparisons(to: &comparisons)
        return comparisons
    }

    private func addComparisons(to comparisons: inout [FieldPath: [(Set<Comparison>, JSONValue)]]) {
        switch self {
        case .all(let parts):
            for part in parts { part.addComparisons(to: &comparisons) }
        case .field(let path, .compare(let wanted, let value)):
            comparisons[path, default: []].append((wanted, value))
        case .any, .none, .not, .field: break
        }
    }
}

extension Selector.Condition {
    fileprivate var description: JSONValue {
        switch self {
        case .compare(let wanted, let value):
            switch (wanted.contains(.before), wanted.contains(.same), wanted.contains(.after)) {
            case (true, true, _): ["$lte": value]
            case (true, false, _): ["$lt": value]
            case (false, true, true): ["$gte": value]
            case (false, false, true): ["$gt": value]
            default: ["$eq": value]
            }
        case .exists(let flag): ["$exists": .bool(flag)]
        case .type(let type): ["$type": .string(type)]
        case .isIn(let values, let flag): .object([flag ? "$in" : "$nin": .array(values)])
        case .size(let size): ["$size": JSONValue(size)]
        case .mod(let divisor, let rest): ["$mod": [JSONValue(divisor), JSONValue(rest)]]
        case .regex(let pattern): ["$regex": .string(pattern.text)]
        case .begins(let text): ["$beginsWith": .string(text)]
        case .containsAll(let values): ["$all": .array(values)]
        case .elementMatch(let selector, let all):
            .object([all ? "$allMatch" : "$elemMatch": selector.description])
        case .keyMatch(let selector): ["$keyMapMatch": selector.description]
        case .not(.compare([.same], let value)): ["$ne": value]
        case .not(let condition): ["$not": condition.description]
        case .both(let conditions): ["$and": .array(conditions.map(\.description))]
        case .sub(let selector): selector.description
        }
    }
}

/// A value as CouchDB shows it in the reasons of some errors: as a term of Erlang.
package func erlangTerm(_ value: JSONValue, quotesText: Bool = true) -> String {
    switch value {
    case .null: "null"
    case .bool(let flag): flag ? "true" : "false"
    case .number: value.description
    case .string(let text):
        quotesText ? "<<\"\(text)\">>" : "<<\(text.utf8.map { "\($0)" }.joined(separator: ","))>>"
    case .array(let items):
        "[" + items.map { erlangTerm($0, quotesText: quotesText) }.joined(separator: ",") + "]"
    case .object(let members):
        "{["
            + members.map {
                "{\(erlangTerm(.string($0.key), quotesText: quotesText)),\(erlangTerm($0.value, quotesText: quotesText))}"
            }.joined(separator: ",") + "]}"
    }
}
