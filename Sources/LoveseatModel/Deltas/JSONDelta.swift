/// The difference between two documents, in the form that peers exchange.
package enum JSONDelta {
    /// Why a delta cannot be applied.
    package enum Failure: Error, Hashable, Sendable {
        /// The text is not a delta, or was made against another document.
        case corrupt
    }

    /// The delta that turns `old` into `new`; an empty object if they are the same.
    package static func create(from old: JSONValue, to new: JSONValue) -> JSONValue {
        if isSame(old, new) { return [:] }
        if let delta = nested(old, new) { return delta }
        return .array([new])
    }

    /// The document that results from `old` by `delta`.
    package static func apply(_ delta: JSONValue, to old: JSONValue) throws(Failure) -> JSONValue {
        switch delta {
        case .object, .array: break
        case .null, .bool, .number, .string: throw .corrupt
        }
        guard let result = try applied(delta, to: old) else { throw .corrupt }
        return result
    }

    // MARK: Creating

    /// The delta of two values inside a container.
    private static func member(_ old: JSONValue, _ new: JSONValue) -> JSONValue {
        if let delta = nested(old, new) { return delta }
        switch new {
        case .array, .object: return .array([new])
        case .null, .bool, .number, .string: return new
        }
    }

    /// The delta of two values of one kind; nil if `new` has to be sent whole.
    private static func nested(_ old: JSONValue, _ new: JSONValue) -> JSONValue? {
        switch (old, new) {
        case (.object(let old), .object(let new)):
            var delta: JSONObject = [:]
            for (key, value) in new {
                guard let before = old[key] else {
                    delta[key] = whole(value)
                    continue
                }
                if !isSame(before, value) { delta[key] = member(before, value) }
            }
            for key in old.keys where new[key] == nil { delta[key] = [] }
            return .object(delta)
        case (.array(let old), .array(let new)) where !old.isEmpty && !new.isEmpty:
            var delta: JSONObject = [:]
            let common = min(old.count, new.count)
            for index in 0..<common where !isSame(old[index], new[index]) {
                delta[String(index)] = member(old[index], new[index])
            }
            if old.count != new.count { delta["\(common)-"] = .array(Array(new[common...])) }
            return .object(delta)
        case (.string(let old), .string(let new)):
            return StringPatch.create(from: old, to: new).map { [.string($0), 0, 2] }
        default: return nil
        }
    }

    private static func whole(_ value: JSONValue) -> JSONValue {
        switch value {
        case .array, .object: .array([value])
        case .null, .bool, .number, .string: value
        }
    }

    /// Whether two values are the same. Numbers differ even if only their texts do.
    package static func isSame(_ lhs: JSONValue, _ rhs: JSONValue) -> Bool {
        switch (lhs, rhs) {
        case (.number(let lhs), .number(let rhs)): return lhs.text == rhs.text
        case (.array(let lhs), .array(let rhs)):
            return lhs.count == rhs.count && zip(lhs, rhs).allSatisfy { isSame($0, $1) }
        case (.object(let lhs), .object(let rhs)):
            return lhs.count == rhs.count
                && lhs.allSatisfy { key, value in rhs[key].map { isSame(value, $0) } ?? false }
        default: return lhs == rhs
        }
    }

    // MARK: Applying

    /// The new value; nil if it is to be removed.
    private static func applied(_ delta: JSONValue, to old: JSONValue?) throws(Failure) -> JSONValue? {
        switch delta {
        case .object(let members):
            guard let old else { throw .corrupt }
            switch old {
            case .object(let object): return .object(try applied(members, to: object))
            case .array(let array): return .array(try applied(members, to: array))
            case .null, .bool, .number, .string:
                guard members.isEmpty else { throw .corrupt }
                return old
            }
        case .array(let items): return try replaced(by: items, old)
        case .null, .bool, .number, .string: return delta
        }
    }

    private static func replaced(by items: [JSONValue], _ old: JSONValue?) throws(Failure) -> JSONValue? {
        switch items.count {
        case 0:
            guard old != nil else { throw .corrupt }
            return nil
        case 1: return items[0]
        // As JsonDiffPatch writes it: the old value and the new.
        case 2: return items[1]
        case 3 where items[2].int == 0: return nil
        case 3 where items[2].int == 2:
            guard let patch = items[0].string, let old = old?.string,
                let new = StringPatch.apply(patch, to: old)
            else { throw .corrupt }
            return .string(new)
        default: throw .corrupt
        }
    }

    private static func applied(_ members: JSONObject, to old: JSONObject)
        throws(Failure) -> JSONObject
    {
        var result = old
        for (key, delta) in members { result[key] = try applied(delta, to: old[key]) }
        return result
    }

    /// Items by their positions, and with `n-` everything from a position on; of several the first. Other keys mean nothing.
    private static func applied(_ members: JSONObject, to old: [JSONValue])
        throws(Failure) -> [JSONValue]
    {
        var cut: (from: Int, items: [JSONValue])?
        for (key, delta) in members where key.hasSuffix("-") {
            guard let from = position(key.dropLast()), from <= old.count, case .array(let items) = delta
            else { continue }
            if from < cut?.from ?? .max { cut = (from, items) }
        }
        var result: [JSONValue] = []
        for index in 0..<(cut?.from ?? old.count) {
            guard let delta = members[String(index)] else {
                result.append(old[index])
                continue
            }
            guard let value = try applied(delta, to: old[index]) else { throw .corrupt }
            result.append(value)
        }
        return result + (cut?.items ?? [])
    }

    /// Reads a number written in the one form that it can have.
    private static func position(_ text: Substring) -> Int? {
        Int(text).flatMap { $0 >= 0 && String($0) == text ? $0 : nil }
    }
}
