/// Bytes that are known to be one JSON value.
///
/// What is stored and what travels: forwarding a document moves these bytes and parses nothing.
public struct JSONText: Hashable, Sendable, CustomStringConvertible {
    /// The text, in UTF-8.
    public let bytes: [UInt8]

    /// Checks bytes, throwing where and why they are not JSON.
    public init(_ bytes: [UInt8], limits: JSONLimits = .standard) throws(JSONError) {
        _ = try JSONElement(parsing: bytes, limits: limits)
        self.bytes = bytes
    }

    /// Checks a string.
    public init(_ string: String, limits: JSONLimits = .standard) throws(JSONError) {
        try self.init(Array(string.utf8), limits: limits)
    }

    /// Takes bytes that were checked before, such as those of the database.
    package init(trusted bytes: [UInt8]) { self.bytes = bytes }

    /// `{}`.
    public static let emptyObject = JSONText(trusted: [UInt8(ascii: "{"), UInt8(ascii: "}")])

    /// The text as a string.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}
