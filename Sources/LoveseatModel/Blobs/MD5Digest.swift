/// The digest by which peers of CouchDB's wire name content: `md5-` and the Base64 of its MD5. Files and documents have a ``BlobDigest``.
package struct MD5Digest: Hashable, Sendable {
    static let length = 16

    /// The digest as attachments contain it.
    package let text: String

    /// Creates a digest from `md5-` followed by 24 Base64 characters, or returns nil for anything else.
    package init?(_ text: String) {
        guard text.hasPrefix("md5-"), let bytes = Base64.decode(text.dropFirst(4)) else { return nil }
        self.init(bytes: bytes)
    }

    /// Creates a digest from the sixteen bytes of an MD5, or returns nil for another number of bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.length else { return nil }
        text = "md5-" + Base64.encode(bytes)
    }

    /// The sixteen bytes.
    package var bytes: [UInt8] { Base64.decode(text.dropFirst(4)) ?? [] }
}
