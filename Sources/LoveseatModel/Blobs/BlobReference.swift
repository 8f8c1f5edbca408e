/// The digest that names a blob's content: `sha1-` and the Base64 of its SHA-1.
public struct BlobDigest: Hashable, Sendable, CustomStringConvertible {
    /// The digest as documents contain it: `sha1-` and 28 Base64 characters.
    public let text: String

    /// Creates a digest from `sha1-` followed by 28 Base64 characters, or returns nil for anything else.
    public init?(_ text: String) {
        guard text.hasPrefix("sha1-"), text.utf8.count == 33, let bytes = Base64.decode(text.dropFirst(5)),
            bytes.count == 20
        else { return nil }
        self.text = text
    }

    /// Makes one of the twenty bytes of a SHA-1.
    package init(sha1: some Sequence<UInt8>) { text = "sha1-" + Base64.encode(Array(sha1)) }

    /// Reads the name of a blob's file: forty hexadecimal digits.
    package init?(fileName: String) {
        let digits = fileName.utf8.compactMap { hexadecimalDigit($0) }
        guard digits.count == 40, fileName.utf8.count == 40 else { return nil }
        self.init(sha1: stride(from: 0, to: 40, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
    }

    /// The twenty bytes.
    package var bytes: [UInt8] { Base64.decode(text.dropFirst(5)) ?? [] }

    /// The digest in hexadecimal, which is also the name of the blob's file.
    package var hexadecimalText: String { bytes.hexadecimalText }

    /// The digest as ``text``.
    public var description: String { text }
}

/// A reference to a blob, as documents contain it: an object with `"@type": "blob"` and the content's digest, length and media type.
public struct BlobReference: Hashable, Sendable {
    /// The digest that identifies the content.
    public let digest: BlobDigest
    /// The length of the content in bytes; nil if the document does not contain it.
    public let length: UInt64?
    /// The media type, such as `image/jpeg`; nil if the document does not contain it.
    public let contentType: String?

    /// The maximum length of a media type, in bytes. It is sent as a header, which clients limit.
    package static let maximumContentType = 256

    /// `gzip` for content that is stored compressed, as attachments of a CouchDB are; nil for content that is stored as it is.
    package let encoding: String?
    /// The length of the stored bytes if they are compressed.
    package let encodedLength: Int?

    package init(
        digest: BlobDigest,
        length: UInt64?,
        contentType: String?,
        encoding: String? = nil,
        encodedLength: Int? = nil
    ) {
        self.digest = digest
        self.length = length
        self.contentType = contentType
        self.encoding = encoding
        self.encodedLength = encodedLength
    }

    /// Whether the content is inflated when it is read.
    package var isCompressed: Bool { encoding == "gzip" }

    /// The length of the stored bytes, in bytes; nil if the document does not contain it.
    package var storedLength: UInt64? {
        isCompressed ? encodedLength.flatMap { UInt64(exactly: $0) } : length
    }

    /// Creates a reference from a document's property, or returns nil if the property is not an object with `"@type":
    /// "blob"` and a valid digest.
    public init?(_ value: JSONValue?) {
        guard let value, value["@type"]?.string == "blob", let text = value["digest"]?.string,
            let digest = BlobDigest(text)
        else { return nil }
        self.init(
            digest: digest,
            length: value["length"]?.int.flatMap { UInt64(exactly: $0) },
            contentType: value["content_type"]?.string,
            encoding: value["encoding"]?.string,
            encodedLength: value["encoded_length"]?.int
        )
    }

    /// Reads an entry of an `_attachments` table; nil if it names no content.
    package init?(attachment: JSONElement) {
        guard let digest = attachment["digest"]?.string.flatMap({ BlobDigest($0) }) else { return nil }
        self.init(
            digest: digest,
            length: attachment["length"]?.int.flatMap { UInt64(exactly: $0) },
            contentType: attachment["content_type"]?.string,
            encoding: attachment["encoding"]?.string,
            encodedLength: attachment["encoded_length"]?.int
        )
    }

    /// The reference as a value to put into a document's property.
    public var json: JSONValue {
        var value: JSONValue = ["@type": "blob", "digest": .string(digest.text)]
        if let length { value["length"] = JSONValue(length) }
        if let contentType { value["content_type"] = .string(contentType) }
        if let encoding { value["encoding"] = .string(encoding) }
        if let encodedLength { value["encoded_length"] = JSONValue(encodedLength) }
        return value
    }

    /// Every blob that a body refers to, each digest once. This includes an `_attachments` table, as 1.x apps make them.
    package static func all(in text: JSONText) -> [BlobReference] {
        // Most documents have none, and a search for words is a hundred times faster than an index. An escape could hide a word, so text
        // with escapes is parsed.
        guard text.bytes.contains("@type", "_attachments", "\\u") else { return [] }
        var found: [BlobReference] = []
        let root = JSONElement(text)
        var stack = [root]
        while let element = stack.popLast() {
            switch element.kind {
            case .array: stack.append(contentsOf: element.items)
            case .object where element["@type"]?.string == "blob":
                if let blob = BlobReference(element.value),
                    !found.contains(where: { $0.digest == blob.digest })
                {
                    found.append(blob)
                }
            case .object: stack.append(contentsOf: element.members.map(\.value))
            case .null, .boolean, .number, .string: break
            }
        }
        found.reverse()
        for (_, attachment) in root["_attachments"]?.members.map({ $0 }) ?? [] {
            guard let blob = BlobReference(attachment: attachment),
                !found.contains(where: { $0.digest == blob.digest })
            else { continue }
            found.append(blob)
        }
        return found
    }

    /// Whether the content is worth compressing, by its media type.
    package var isCompressible: Bool {
        guard let type = contentType?.lowercased() else { return false }
        let packed: [StaticString] = ["zip", "zlib", "pkcs", "mpeg", "mp4", "crypt", ".rar", "-rar"]
        let media = ["image/", "audio/", "video/"]
        return !media.contains { type.hasPrefix($0) }
            && !packed.contains { Array(type.utf8).contains(word: $0) }
    }
}

/// Encodes and decodes a reference in the form that documents contain.
extension BlobReference: Codable {
    private enum CodingKeys: String, CodingKey {
        case type = "@type"
        case digest, length, encoding
        case contentType = "content_type"
        case encodedLength = "encoded_length"
    }

    /// Decodes a reference from an object with `"@type": "blob"`.
    ///
    /// - Throws: `DecodingError` for anything else.
    public init(from decoder: any Decoder) throws {
        let stub = try decoder.container(keyedBy: CodingKeys.self)
        guard try stub.decode(String.self, forKey: .type) == "blob",
            let digest = BlobDigest(try stub.decode(String.self, forKey: .digest))
        else {
            throw DecodingError.dataCorruptedError(
                forKey: .digest,
                in: stub,
                debugDescription: "no blob's stub"
            )
        }
        self.init(
            digest: digest,
            length: try stub.decodeIfPresent(UInt64.self, forKey: .length),
            contentType: try stub.decodeIfPresent(String.self, forKey: .contentType),
            encoding: try stub.decodeIfPresent(String.self, forKey: .encoding),
            encodedLength: try stub.decodeIfPresent(Int.self, forKey: .encodedLength)
        )
    }

    /// Encodes the reference as an object with `"@type": "blob"`.
    ///
    /// - Throws: Errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var stub = encoder.container(keyedBy: CodingKeys.self)
        try stub.encode("blob", forKey: .type)
        try stub.encode(digest.text, forKey: .digest)
        try stub.encodeIfPresent(length, forKey: .length)
        try stub.encodeIfPresent(contentType, forKey: .contentType)
        try stub.encodeIfPresent(encoding, forKey: .encoding)
        try stub.encodeIfPresent(encodedLength, forKey: .encodedLength)
    }
}
