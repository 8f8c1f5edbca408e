package import LoveseatModel

/// An attachment as it is stored in `_attachments` of a body (protocol/couchdb.md §6.1).
package struct StoredAttachment: Hashable, Sendable {
    package var name: String
    package var contentType: String
    /// Names the stored bytes, which are those of the encoded form.
    package var digest: BlobDigest
    /// The length of the decoded content, in bytes.
    package var length: Int
    /// The generation at which it was added or changed.
    package var position: Int
    /// `gzip`, or nil.
    package var encoding: String?
    /// The length of the stored bytes.
    package var encodedLength: Int?

    /// Names are told apart by their bytes.
    package static func == (one: Self, other: Self) -> Bool {
        one.name.isExactly(other.name) && one.stored == other.stored
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ExactText(name))
        hasher.combine(digest)
    }

    package init(name: String, contentType: String, digest: BlobDigest, length: Int, position: Int) {
        self.name = name
        self.contentType = contentType
        self.digest = digest
        self.length = length
        self.position = position
    }

    package init?(name: String, _ element: JSONElement) {
        guard let digest = element["digest"]?.string.flatMap({ BlobDigest($0) }) else { return nil }
        self.init(
            name: name,
            contentType: element["content_type"]?.string ?? "application/octet-stream",
            digest: digest,
            length: element["length"]?.int ?? 0,
            position: element["revpos"]?.int ?? 1
        )
        encoding = element["encoding"]?.string
        encodedLength = element["encoded_length"]?.int
    }

    /// The number of stored bytes.
    package var storedLength: Int { encoding == nil ? length : encodedLength ?? length }

    /// The attachment's entry in a stored body.
    package var stored: JSONValue {
        var value = description(withEncoding: true)
        value["stub"] = true
        value["length"] = JSONValue(length)
        return value
    }

    /// Returns the members that the entry has in all of its forms. `name`: what the content is called; nil for what it is called here.
    package func description(withEncoding: Bool, naming name: String? = nil) -> JSONValue {
        var value: JSONValue = [
            "content_type": .string(contentType), "digest": .string(name ?? digest.text),
            "revpos": JSONValue(position),
        ]
        if withEncoding, let encoding {
            value["encoding"] = .string(encoding)
            value["encoded_length"] = JSONValue(encodedLength ?? 0)
        }
        return value
    }

    /// The attachments of a stored body, in the order of their names.
    package static func all(in body: JSONText) -> [StoredAttachment] {
        guard body.bytes.contains(word: "_attachments"), let table = JSONElement(body)["_attachments"] else {
            return []
        }
        return table.members.compactMap { StoredAttachment(name: $0.key, $0.value) }
            .sorted { Array($0.name.utf8).lexicographicallyPrecedes(Array($1.name.utf8)) }
    }
}

/// An attachment of a document that a peer sends.
package struct IncomingAttachment: Sendable {
    /// Where its content comes from.
    package enum Content: Sendable {
        /// An ancestor has it.
        case stub
        /// The entry contains it, in Base64. The bytes of the JSON string, with its quotes.
        case inline(JSONElement)
        /// It was in the entry, and ``InlineContentScanner`` took it out: its number, and its length in bytes.
        case takenOut(Int, length: Int)
        /// A part of the message has it.
        case follows
    }

    package let name: String
    package let content: Content
    package let contentType: String?
    package let position: Int?
    package let digest: String?
    package let length: Int?
    package let encoding: String?
    package let encodedLength: Int?

    /// The number of attachments that a document may have.
    package static let maximumCount = 10_000

    static func all(_ table: JSONElement, _ takenOut: TakenOutContents?) throws(CouchDBError)
        -> [IncomingAttachment]
    {
        guard table.kind == .object else {
            throw CouchDBError(400, "doc_validation", "_attachments must be an object")
        }
        guard table.count <= maximumCount else {
            throw .badRequest("a document may have \(maximumCount) attachments")
        }
        var all: [IncomingAttachment] = []
        for (name, entry) in table.members { all.append(try IncomingAttachment(name: name, entry, takenOut)) }
        return all
    }

    private init(name: String, _ entry: JSONElement, _ takenOut: TakenOutContents?) throws(CouchDBError) {
        try Self.check(name)
        self.name = name
        guard entry.kind == .object else { throw .invalidAttachment(name) }
        if entry["stub"]?.bool == true {
            content = .stub
        } else if entry["follows"]?.bool == true {
            content = .follows
        } else if let data = entry["data"], data.kind == .string {
            content = takenOut?.content(data) ?? .inline(data)
        } else {
            throw .invalidAttachment(name)
        }
        contentType = entry["content_type"]?.string
        position = entry["revpos"]?.int
        digest = entry["digest"]?.string
        length = try Self.length("length", in: entry, of: name)
        // Other peers know no other encoding. With any other name, the bytes are stored as they are.
        encoding = entry["encoding"]?.string == "gzip" ? "gzip" : nil
        encodedLength = try Self.length("encoded_length", in: entry, of: name)
    }

    /// Returns a length of the entry; nil if it has none.
    private static func length(_ key: String, in entry: JSONElement, of name: String) throws(CouchDBError)
        -> Int?
    {
        guard let told = entry[key], told.kind != .null else { return nil }
        guard let length = told.int, length >= 0 else {
            throw .badRequest("the \(key) of attachment \(name) must be a number of bytes")
        }
        return length
    }

    /// - Throws: ``CouchDBError`` for a content type that is longer than clients can read.
    package static func check(contentType: String, of name: String) throws(CouchDBError) {
        let maximum = BlobReference.maximumContentType
        guard contentType.utf8.count <= maximum else {
            throw .badRequest("the content type of attachment \(name) is longer than \(maximum) bytes")
        }
    }

    /// - Throws: ``CouchDBError`` for a name that no attachment can have.
    package static func check(_ name: String) throws(CouchDBError) {
        guard !name.isEmpty else { throw .badRequest("Attachment name must not be empty") }
        guard name.utf8.first != UInt8(ascii: "_") else {
            throw .badRequest("Attachment name '\(name)' starts with prohibited character '_'")
        }
    }
}
