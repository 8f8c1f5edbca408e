/// Why text is not JSON, and where.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of mistake.
    public enum Reason: String, Hashable, Sendable {
        /// The text ends inside a value.
        case truncated = "the text ends inside a value"
        /// A byte that no rule of the grammar allows here.
        case unexpectedByte = "unexpected byte"
        /// A byte sequence that is not UTF-8: overlong, a surrogate, past U+10FFFF, or cut off.
        case invalidUTF8 = "not UTF-8"
        /// A `\u` escape of half a surrogate pair.
        case loneSurrogate = "half of a surrogate pair"
        /// A backslash followed by something that is not an escape.
        case invalidEscape = "unknown escape"
        /// An unescaped control character inside a string.
        case controlCharacter = "unescaped control character in a string"
        /// A number that the grammar does not allow: leading zeros, a bare point, no digits.
        case invalidNumber = "malformed number"
        /// A number beyond the range of a double, an infinity, or not a number: other peers cannot read it.
        case numberTooLarge = "a number beyond the range of a double"
        /// Something after the end of the value.
        case trailingBytes = "bytes after the end of the value"
        /// Deeper nesting than the limit.
        case tooDeep = "nested too deeply"
        /// Longer than the limit.
        case tooLarge = "too large"
        /// A key that occurs twice in one object; reported only by ``JSONLimits/refusesDuplicateKeys``.
        case duplicateKey = "a key occurs twice in one object"
    }

    /// The kind of mistake.
    public let reason: Reason
    /// The byte offset of the mistake, from 0.
    public let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    /// The reason and the offset, for a person.
    public var description: String { "invalid JSON: \(reason.rawValue) at byte \(offset)" }
}

/// The bounds within which text is read as JSON.
public struct JSONLimits: Hashable, Sendable {
    /// The deepest nesting of arrays and objects. The default is 128, which is also the limit for documents; never more
    /// than 512.
    public var maximumDepth: Int {
        didSet { maximumDepth = min(maximumDepth, Self.deepest) }
    }
    static let deepest = 512
    /// The longest text, in bytes; never more than 268,435,455. The default is 64 MiB.
    public var maximumBytes: Int
    /// Whether a key that occurs twice in an object is an error. By default the last one wins, as with other peers.
    public var refusesDuplicateKeys: Bool

    /// Makes limits; every one has a default.
    public init(
        maximumDepth: Int = 128,
        maximumBytes: Int = 64 << 20,
        refusesDuplicateKeys: Bool = false
    ) {
        self.maximumDepth = min(maximumDepth, Self.deepest)
        self.maximumBytes = min(maximumBytes, JSONTape.longestText)
        self.refusesDuplicateKeys = refusesDuplicateKeys
    }

    /// Depth 128, 64 MiB, duplicate keys allowed.
    public static let standard = JSONLimits()
}
