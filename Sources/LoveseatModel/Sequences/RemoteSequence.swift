/// A peer's sequence: any JSON value, opaque, kept as its text.
package struct RemoteSequence: Hashable, Sendable, CustomStringConvertible {
    /// The JSON text: `12`, or `"12:34"` with its quotes.
    package let text: String

    package init(_ integer: UInt64) { text = String(integer) }

    /// Creates a sequence from JSON text; nil if the text is not JSON.
    package init?(json text: String) {
        // Most are integers, which are their own text.
        if text.utf8.count < 16, text.utf8.first != UInt8(ascii: "0"),
            !text.isEmpty, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        {
            self.text = text
            return
        }
        guard let checked = try? JSONText(text) else { return nil }
        self.text = checked.description
    }

    package init(_ element: JSONElement) { text = String(decoding: element.bytes, as: UTF8.self) }

    package var description: String { text }

    /// The value, for the body of a message.
    package var json: JSONValue {
        if let integer = UInt64(text) { return JSONValue(integer) }
        // Only a damaged checkpoint nests a sequence more deeply than text may be; null starts from the beginning.
        return (try? JSONValue(parsing: text)) ?? .null
    }

    /// The forms of a Sync Gateway's sequences.
    private struct Parts {
        let low: UInt64?
        let trigger: UInt64?
        let sequence: UInt64

        init?(_ text: String) {
            let inner = text.hasPrefix("\"") ? String(text.dropFirst().dropLast()) : text
            let fields = inner.split(separator: ":", omittingEmptySubsequences: false)
            switch fields.count {
            case 1:
                guard let sequence = UInt64(fields[0]) else { return nil }
                (low, trigger, self.sequence) = (nil, nil, sequence)
            case 2:
                guard let trigger = UInt64(fields[0]), let sequence = UInt64(fields[1]) else { return nil }
                (low, self.trigger, self.sequence) = (nil, trigger, sequence)
            case 3:
                guard let low = UInt64(fields[0]), let sequence = UInt64(fields[2]),
                    fields[1].isEmpty || UInt64(fields[1]) != nil
                else { return nil }
                (self.low, trigger, self.sequence) = (low, UInt64(fields[1]), sequence)
            default: return nil
            }
        }
    }

    /// Whether this comes before another; nil if one of them has no known form.
    package func isBefore(_ other: RemoteSequence) -> Bool? {
        guard let lhs = Parts(text), let rhs = Parts(other.text) else { return nil }
        if let leftLow = lhs.low {
            guard let rightLow = rhs.low else { return leftLow < (rhs.trigger ?? rhs.sequence) }
            if leftLow != rightLow { return leftLow < rightLow }
            return Self.triggerOrder(lhs, rhs)
        }
        if let rightLow = rhs.low { return (lhs.trigger ?? lhs.sequence) <= rightLow }
        return Self.triggerOrder(lhs, rhs)
    }

    private static func triggerOrder(_ lhs: Parts, _ rhs: Parts) -> Bool {
        switch (lhs.trigger, rhs.trigger) {
        case (nil, nil): lhs.sequence < rhs.sequence
        case (nil, let right?): lhs.sequence < right
        case (let left?, nil): left <= rhs.sequence
        case (let left?, let right?): left != right ? left < right : lhs.sequence < rhs.sequence
        }
    }
}
