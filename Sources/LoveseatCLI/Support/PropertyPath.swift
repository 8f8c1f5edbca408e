import Loveseat

/// A place in a document: `address.lines[0]`.
struct PropertyPath: Hashable {
    enum Step: Hashable {
        case key(String)
        case position(Int)
    }

    let steps: [Step]

    init?(_ text: some StringProtocol) {
        var steps: [Step] = []
        // By bytes: a dot with a combining accent behind it is one `Character`.
        for part in Array(text.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            let pieces = part.split(separator: UInt8(ascii: "["), omittingEmptySubsequences: false)
            guard let key = pieces.first, !(key.isEmpty && pieces.count == 1) else { return nil }
            if !key.isEmpty { steps.append(.key(String(decoding: key, as: UTF8.self))) }
            for piece in pieces.dropFirst() {
                guard piece.last == UInt8(ascii: "]"),
                    let position = Int(String(decoding: piece.dropLast(), as: UTF8.self)), position >= 0
                else {
                    return nil
                }
                steps.append(.position(position))
            }
        }
        guard case .key? = steps.first else { return nil }
        self.steps = steps
    }

    /// Reads `path=value`; an empty value is nil.
    static func change(_ text: String) -> (PropertyPath, JSONValue?)? {
        guard let equals = text.firstIndex(of: "="), let path = PropertyPath(text[..<equals]) else {
            return nil
        }
        let value = String(text[text.index(after: equals)...])
        guard !value.isEmpty else { return (path, nil) }
        return (path, (try? JSONValue(parsing: value)) ?? .string(value))
    }

    /// The value there; nil if there is none.
    func value(in document: JSONElement) -> JSONElement? {
        steps.reduce(document) { element, step in
            switch step {
            case .key(let key): element?[key]
            case .position(let position): element?[position]
            }
        }
    }

    /// Puts a value there; nil removes what is there.
    func set(_ new: JSONValue?, in value: inout JSONValue) throws {
        try Self.set(new, steps[...], in: &value)
    }

    private static func set(_ new: JSONValue?, _ steps: ArraySlice<Step>, in value: inout JSONValue) throws {
        guard let step = steps.first else {
            value = new ?? .null
            return
        }
        let rest = steps.dropFirst()
        switch step {
        case .key(let key):
            guard rest.isEmpty, new == nil else {
                guard value.object != nil || value.isNull else { throw mismatch("\"\(key)\"", "an object") }
                var inner = value[key] ?? .null
                try set(new, rest, in: &inner)
                value[key] = inner
                return
            }
            value[key] = nil
        case .position(let position):
            guard var items = value.array ?? (value.isNull ? [] : nil) else {
                throw mismatch("[\(position)]", "an array")
            }
            guard position <= items.count, position < items.count || new != nil else {
                throw LoveseatError(
                    .invalidParameter,
                    "there is no [\(position)] in an array of \(items.count)"
                )
            }
            if rest.isEmpty, new == nil {
                items.remove(at: position)
            } else {
                if position == items.count { items.append(.null) }
                try set(new, rest, in: &items[position])
            }
            value = .array(items)
        }
    }

    private static func mismatch(_ step: String, _ kind: String) -> LoveseatError {
        LoveseatError(.invalidParameter, "\(step) needs \(kind), and there is something else")
    }
}
