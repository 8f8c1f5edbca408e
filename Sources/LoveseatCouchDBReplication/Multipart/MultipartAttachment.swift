/// An attachment as a part of a multipart/related body.
package struct MultipartAttachment: Hashable, Sendable {
    /// The name in the document.
    package var name: String
    /// The media type. One that a header cannot carry is sent as `application/octet-stream`; the document has the original.
    package var contentType: String
    /// The number of bytes in the body, after encoding.
    package var length: Int
    /// The content encoding, such as `gzip`; nil if the bytes are sent as they are.
    package var encoding: String?

    /// Creates the description of an attachment.
    package init(name: String, contentType: String, length: Int, encoding: String? = nil) {
        self.name = name
        self.contentType = contentType
        self.length = length
        self.encoding = encoding
    }
}

extension PartHeaders {
    private static let maximumTypeLength = 1_024
    private static let maximumEncodingLength = 64

    private init(_ fields: [(String, String)]) {
        self.init()
        self.fields = fields.map { Field(name: $0.0, value: $0.1) }
    }

    /// The headers of a JSON part.
    ///
    /// The type has no `charset`: CouchDB's replicator accepts exactly this value.
    package static let json = PartHeaders([("Content-Type", "application/json")])

    /// The headers of a JSON part that reports an error about a revision.
    package static let jsonError = PartHeaders([("Content-Type", "application/json; error=\"true\"")])

    /// Creates the headers of an attachment. Nothing in them can end a header line early.
    package init(_ attachment: MultipartAttachment) {
        let type = attachment.contentType
        let isSendable = HeaderText.isPrintable(type) && type.utf8.count <= Self.maximumTypeLength
        var fields = [
            ("Content-Disposition", ContentDisposition.attachment(named: attachment.name)),
            ("Content-Type", isSendable ? type.trimmedBlanks : "application/octet-stream"),
            ("Content-Length", String(attachment.length)),
        ]
        if let encoding = attachment.encoding, HeaderText.isToken(encoding),
            encoding.utf8.count <= Self.maximumEncodingLength
        {
            fields.append(("Content-Encoding", encoding))
        }
        self.init(fields)
    }

    /// The headers of a part that is a multipart body itself.
    init(nested contentType: String, extra: PartHeaders) {
        self = extra
        fields.append(Field(name: "Content-Type", value: contentType))
    }
}
