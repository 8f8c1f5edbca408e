/// Text in UTF-8 that was validated as one JSON value.
///
/// Documents are stored and transferred in this form, without being parsed again. Two texts are equal if their bytes
/// are; compare their ``canonical`` forms to ignore white space and the order of members.
public struct JSONText: Hashable, Sendable, CustomStringConvertible {
    /// The text, in UTF-8.
    public let bytes: [UInt8]

    /// Validates bytes as JSON text in UTF-8.
    ///
    /// - Throws: ``LoveseatError``: `invalidJSON`, with a ``LoveseatError/jsonError``, if the bytes are not JSON or exceed a limit.
    public init(_ bytes: [UInt8], limits: JSONLimits = .standard) throws(LoveseatError) {
        _ = try JSONElement(parsing: bytes, limits: limits)
        self.bytes = bytes
    }

    /// Validates a string as JSON text.
    ///
    /// - Throws: ``LoveseatError``: `invalidJSON`, with a ``LoveseatError/jsonError``, if the string is not JSON or exceeds a limit.
    public init(_ string: String, limits: JSONLimits = .standard) throws(LoveseatError) {
        try self.init(Array(string.utf8), limits: limits)
    }

    /// Takes bytes that were validated before, such as those of the database.
    package init(trusted bytes: [UInt8]) { self.bytes = bytes }

    /// The text of an object without members, `{}`.
    public static let emptyObject = JSONText(trusted: [UInt8(ascii: "{"), UInt8(ascii: "}")])

    /// The text as a string.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}
