/// The type in the low three bits of a frame's flags (blip.md §3).
package enum MessageType: UInt8, Hashable, Sendable {
    case request = 0
    case response = 1
    case error = 2
    case acknowledgeRequest = 4
    case acknowledgeResponse = 5
}

/// The flags of a frame.
package struct FrameFlags: OptionSet, Hashable, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static let compressed = FrameFlags(rawValue: 0x08)
    package static let urgent = FrameFlags(rawValue: 0x10)
    package static let noReply = FrameFlags(rawValue: 0x20)
    package static let moreComing = FrameFlags(rawValue: 0x40)

    static let typeMask: UInt64 = 0x07
}

/// The headers of a message: an ordered list of names and values (blip.md §4).
package struct MessageProperties: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    package private(set) var pairs: [(name: String, value: String)] = []

    package static let maximumEncodedSize = 102_400

    package init() {}
    package init(dictionaryLiteral elements: (String, String)...) { pairs = elements.map { ($0.0, $0.1) } }

    package mutating func reserveCapacity(_ count: Int) { pairs.reserveCapacity(count) }

    /// The first value of a name; setting replaces it, or adds it at the end.
    package subscript(name: String) -> String? {
        get { pairs.first { equal($0.name, name) }?.value }
        set {
            let index = pairs.firstIndex { equal($0.name, name) }
            switch (index, newValue) {
            case (let index?, let value?): pairs[index].value = value
            case (let index?, nil): pairs.remove(at: index)
            case (nil, let value?): pairs.append((name, value))
            case (nil, nil): break
            }
        }
    }

    /// `true` and `yes` in any case, and integers but 0, are true; an absent property is false.
    package func bool(_ name: String) -> Bool {
        guard let value = self[name]?.lowercased() else { return false }
        return value == "true" || value == "yes" || (Int(value) ?? 0) != 0
    }

    /// A decimal integer; nil if absent or something else.
    package func int(_ name: String) -> Int? { self[name].flatMap { Int($0) } }

    package static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.pairs.elementsEqual(rhs.pairs) { equal($0.name, $1.name) && equal($0.value, $1.value) }
    }

    package func hash(into hasher: inout Hasher) {
        for pair in pairs {
            hasher.combine(pair.name)
            hasher.combine(pair.value)
        }
    }

    /// Names and values, each followed by a NUL.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(encodedSize)
        encode(to: &bytes)
        return bytes
    }

    /// The length of ``encoded``.
    var encodedSize: Int {
        pairs.reduce(0) { $0 + Self.size(of: $1.name) + Self.size(of: $1.value) }
    }

    func encode(to bytes: inout [UInt8]) {
        for pair in pairs {
            Self.append(pair.name, to: &bytes)
            Self.append(pair.value, to: &bytes)
        }
    }

    /// A NUL inside a name or value would shift every pair after it, and there is no escape for it: it is left out.
    private static func append(_ text: String, to bytes: inout [UInt8]) {
        var text = text
        text.withUTF8 { utf8 in
            if utf8.contains(0) {
                bytes.append(contentsOf: utf8.filter { $0 != 0 })
            } else {
                bytes.append(contentsOf: utf8)
            }
        }
        bytes.append(0)
    }

    private static func size(of text: String) -> Int {
        var text = text
        return text.withUTF8 { $0.reduce($0.count + 1) { size, byte in byte == 0 ? size - 1 : size } }
    }

    package init(encoded bytes: ArraySlice<UInt8>) throws(BLIPError) {
        guard bytes.last ?? 0 == 0 else { throw .message("the properties do not end with a NUL") }
        if !bytes.isEmpty { pairs.reserveCapacity(8) }
        var name: String?
        bytes.withUnsafeBufferPointer { bytes in
            var start = 0
            for index in bytes.indices where bytes[index] == 0 {
                let part = String(decoding: bytes[start..<index], as: UTF8.self)
                if let known = name {
                    pairs.append((known, part))
                    name = nil
                } else {
                    name = part
                }
                start = index + 1
            }
        }
        guard name == nil else { throw .message("a property has a name and no value") }
    }
}

/// A whole message, or the beginning of one whose body comes in pieces.
package struct Message: Hashable, Sendable {
    package var properties: MessageProperties
    package var body: [UInt8]
    package var isUrgent: Bool
    package var isCompressed: Bool
    package var noReply: Bool
    /// The body was longer than this side takes, and is left out.
    package var isTooLarge = false

    package init(
        _ properties: MessageProperties = [:],
        body: [UInt8] = [],
        isUrgent: Bool = false,
        isCompressed: Bool = false,
        noReply: Bool = false
    ) {
        self.properties = properties
        self.body = body
        self.isUrgent = isUrgent
        self.isCompressed = isCompressed
        self.noReply = noReply
    }

    package var profile: String { properties["Profile"] ?? "" }
}

extension Message: CustomStringConvertible {
    /// Its properties and the beginning of its body, for a person.
    package var description: String {
        let words = properties.pairs.map { "\($0.name)=\($0.value)" }
        return (words + [String(decoding: body.prefix(2_000), as: UTF8.self)]).joined(separator: " ")
    }
}

/// An error reply (blip.md §10).
package struct ReplyError: Error, Hashable, Sendable, CustomStringConvertible {
    package let domain: String
    package let code: Int
    package let text: String

    package init(_ domain: String, _ code: Int, _ text: String = "") {
        self.domain = domain
        self.code = code
        self.text = text
    }

    init(_ message: Message) {
        domain = message.properties["Error-Domain"] ?? "BLIP"
        code = message.properties.int("Error-Code") ?? 0
        text = String(decoding: message.body, as: UTF8.self)
    }

    package var message: Message {
        Message(["Error-Domain": domain, "Error-Code": String(code)], body: Array(text.utf8))
    }

    package var description: String { text.isEmpty ? "\(domain)/\(code)" : "\(domain)/\(code): \(text)" }
}

/// Whether two texts have the same bytes. Swift's own `==` also equates texts that only look the same.
private func equal(_ one: String, _ other: String) -> Bool {
    one == other && one.utf8.elementsEqual(other.utf8)
}
