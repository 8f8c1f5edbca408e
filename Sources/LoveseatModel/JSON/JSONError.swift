/// The reason why text is not valid JSON, and the place.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of error.
    public enum Reason: String, Hashable, Sendable {
        /// The text ends inside a value.
        case truncated = "the text ends inside a value"
        /// A byte that JSON's grammar does not allow here.
        case unexpectedByte = "unexpected byte"
        /// Bytes that are not UTF-8: an overlong form, a surrogate, a scalar above U+10FFFF, or a form that is cut off.
        case invalidUTF8 = "not UTF-8"
        /// A `\u` escape of only one half of a surrogate pair.
        case loneSurrogate = "half of a surrogate pair"
        /// A backslash that is not followed by one of JSON's escapes.
        case invalidEscape = "unknown escape"
        /// An unescaped control character inside a string.
        case controlCharacter = "unescaped control character in a string"
        /// A number that JSON's grammar does not allow, for example with a leading zero or without digits.
        case invalidNumber = "malformed number"
        /// A number beyond the range of a double, an infinity, or NaN. Other peers cannot read it.
        case numberTooLarge = "a number beyond the range of a double"
        /// Bytes after the end of the value.
        case trailingBytes = "bytes after the end of the value"
        /// Arrays and objects are nested more deeply than ``JSONLimits/maximumDepth``.
        case tooDeep = "nested too deeply"
        /// The text is longer than ``JSONLimits/maximumBytes``, or has more values than its reader takes.
        case tooLarge = "too large"
        /// A key that occurs twice in one object. Only reported with ``JSONLimits/refusesDuplicateKeys``, and for a
        /// document's text.
        case duplicateKey = "a key occurs twice in one object"
    }

    /// The kind of error.
    public let reason: Reason
    /// The byte offset of the error in the text, from 0.
    public let offset: Int

    package init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    /// The reason and the offset, for logs.
    public var description: String { "invalid JSON: \(reason.rawValue) at byte \(offset)" }
}

/// The limits within which JSON text is accepted.
public struct JSONLimits: Hashable, Sendable {
    /// The maximum nesting of arrays and objects. The default is 128, which is also the limit for documents. Larger
    /// numbers than 512 become 512.
    public var maximumDepth: Int {
        didSet { maximumDepth = min(maximumDepth, Self.deepest) }
    }
    static let deepest = 512
    /// The maximum length of the text, in bytes. The default is 64 MiB; the initializer reduces larger numbers than
    /// 268,435,455.
    public var maximumBytes: Int
    /// Whether a key that occurs twice in an object is an error. The default is false: the last value counts, as with
    /// other peers.
    public var refusesDuplicateKeys: Bool
    /// The maximum number of values, keys included; arrays and objects count twice. Each takes eight bytes of memory.
    package var maximumValues = Int.max

    /// Creates limits. Every parameter has the default of the property of the same name.
    public init(
        maximumDepth: Int = 128,
        maximumBytes: Int = 64 << 20,
        refusesDuplicateKeys: Bool = false
    ) {
        self.maximumDepth = min(maximumDepth, Self.deepest)
        self.maximumBytes = min(maximumBytes, JSONTape.maximumTextBytes)
        self.refusesDuplicateKeys = refusesDuplicateKeys
    }

    /// The default limits: 128 levels, 64 MiB, duplicate keys allowed.
    public static let standard = JSONLimits()
    /// The limits for text that contains documents some levels down, whose own depth is checked separately.
    package static let envelope = JSONLimits(maximumDepth: standard.maximumDepth + 8)

    /// The same limits without one for nesting.
    var withoutDepth: JSONLimits {
        var limits = self
        limits.hasDepthLimit = false
        return limits
    }
    var hasDepthLimit = true
}
