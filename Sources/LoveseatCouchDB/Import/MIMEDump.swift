import Crypto
import LoveseatAssertions
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Reads a dump of CouchDB-Python's `couchdb-dump`: a `multipart/mixed` message with a part for each document. A document with
/// attachments is a `multipart/mixed` message of its own, with its JSON first. The content of attachments goes straight to the disk.
struct MIMEDump {
    private enum Place {
        case between
        /// The JSON of a document.
        case document([UInt8])
        case attachment(name: String, type: String?, BlobWriter)
    }

    /// The longest head of the message, in bytes.
    private static let maximumHead = 16 << 10

    private let blobs: BlobFiles
    private let maximumDocument: Int
    /// The head of the message, until it is complete.
    private var head: [UInt8] = []
    private var outer: MultipartParser?
    /// The message of the current document, if it has attachments.
    private var inner: MultipartParser?
    private var place = Place.between
    private var md5: (wanted: String, hash: Insecure.MD5)?
    private var text: [UInt8]?
    private var attachments: [(name: String, type: String?, digest: BlobDigest, length: Int)] = []
    /// Keeps the blobs of the current document from being collected.
    private var pins: BlobPins
    private var isComplete = false

    init(blobs: BlobFiles, maximumDocument: Int) {
        (self.blobs, self.maximumDocument, pins) = (blobs, maximumDocument, BlobPins(blobs))
    }

    /// Reads the next bytes, and calls `found` with each document that they complete.
    ///
    /// - Throws: what `found` throws; ``CouchDBError``; `MultipartError`; an error of the disk.
    mutating func receive(_ bytes: [UInt8], _ found: (FetchedRevision) throws -> Void) throws {
        var rest = bytes[...]
        if outer == nil {
            head += rest
            guard let end = head.firstRange(of: [13, 10, 13, 10]) else {
                guard head.count <= Self.maximumHead else { throw Self.noDump }
                return
            }
            var type: String?
            for line in String(decoding: head[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n") {
                let parts = line.split(separator: ":", maxSplits: 1)
                if parts.count == 2, parts[0].lowercased() == "content-type" { type = String(parts[1]) }
            }
            guard let type = type.flatMap({ MediaType($0) }), type.matches("multipart", "mixed"),
                let boundary = type.boundary
            else { throw Self.noDump }
            outer = Self.parser(boundary, parts: .max)
            rest = head[end.upperBound...]
            head = []
        }
        for event in try outer?.receive(rest) ?? [] { try handle(event, found) }
    }

    /// - Throws: ``CouchDBError`` if the dump is cut off.
    func finish() throws(CouchDBError) {
        guard isComplete else { throw .badRequest("the dump ends too early: it was cut off") }
    }

    private static let noDump = CouchDBError.badRequest(
        "neither JSON nor multipart/mixed: it is not a dump of a CouchDB database"
    )

    private static func parser(_ boundary: String, parts: Int) -> MultipartParser {
        var limits = MultipartParser.Limits()
        limits.parts = parts
        limits.foldsAtLineFeeds = true
        return MultipartParser(boundary: boundary, limits: limits)
    }

    private mutating func handle(
        _ event: MultipartParser.Event,
        _ found: (FetchedRevision) throws -> Void
    ) throws {
        switch event {
        case .partBegan(let headers):
            (text, attachments, pins) = (nil, [], BlobPins(blobs))
            if let type = headers.contentType, type.matches("multipart", "mixed"),
                let boundary = type.boundary
            {
                inner = Self.parser(boundary, parts: 10_000)
            } else {
                beginDocument(headers)
            }
        case .data(let bytes):
            guard inner != nil else { return try add(bytes) }
            for event in try inner?.receive(bytes) ?? [] { try handleInner(event) }
        case .partEnded:
            if inner != nil {
                guard try inner?.finish().wasClosed == true else {
                    throw CouchDBError.badRequest("it is cut off")
                }
                inner = nil
            } else {
                try endPart()
            }
            try found(FetchedRevision(document: try document(), blobs: pins))
        case .ended: isComplete = true
        }
    }

    private mutating func handleInner(_ event: MultipartParser.Event) throws {
        switch event {
        case .partBegan(let headers):
            guard text != nil else { return beginDocument(headers) }
            guard let name = headers["Content-ID"].flatMap({ EncodedWords.decode($0) }) else {
                throw CouchDBError.badRequest("an attachment has no name")
            }
            beginHash(headers)
            place = .attachment(name: name, type: headers["Content-Type"], try blobs.writer())
        case .data(let bytes): try add(bytes)
        case .partEnded: try endPart()
        case .ended: break
        }
    }

    private mutating func beginDocument(_ headers: PartHeaders) {
        beginHash(headers)
        place = .document([])
    }

    private mutating func beginHash(_ headers: PartHeaders) {
        md5 = headers["Content-MD5"].map { ($0, Insecure.MD5()) }
    }

    private mutating func add(_ bytes: ArraySlice<UInt8>) throws {
        md5?.hash.update(data: bytes)
        switch place {
        case .between: break
        case .document(var text):
            place = .between
            text += bytes
            guard text.count <= maximumDocument else { throw CouchDBError.tooLarge("the document") }
            place = .document(text)
        case .attachment(_, _, let writer): try writer.write(bytes)
        }
    }

    private mutating func endPart() throws {
        let sum = md5.map { (wanted: $0.wanted, found: Base64.encode(Array($0.hash.finalize()))) }
        guard sum.map({ $0.wanted == $0.found }) ?? true else {
            throw CouchDBError.badRequest("a part is damaged: its Content-MD5 is another one")
        }
        switch place {
        case .between: break
        case .document(let bytes): text = bytes
        case .attachment(let name, let type, let writer):
            let (digest, length) = try pins.finish(writer)
            attachments.append((name, type, digest, Int(length)))
        }
        (place, md5) = (.between, nil)
    }

    /// The document whose parts came, with what its parts say of its attachments.
    private mutating func document() throws -> PreparedDocument {
        var json = try RequestJSON.parse(text ?? []).value
        var table: JSONObject = [:]
        for attachment in attachments {
            try IncomingAttachment.check(attachment.name)
            var entry: JSONValue = ["follows": true, "length": JSONValue(attachment.length)]
            if let type = attachment.type { entry["content_type"] = .string(type) }
            table[attachment.name] = entry
        }
        guard json.object != nil else { throw CouchDBError.badRequest("a part is not a document") }
        json["_attachments"] = table.isEmpty ? nil : .object(table)
        let incoming = try IncomingDocument(JSONElement(JSONText(canonical: json)))
        var prepared = PreparedDocument(incoming, id: incoming.id ?? CouchDBServer.newUUID())
        for attachment in incoming.attachments {
            guard let part = attachments.last(where: { $0.name.isExactly(attachment.name) }) else {
                impossible("attachment \(attachment.name) came in no part")
                continue
            }
            let ready = try DocumentSaving.ready(
                attachment,
                digest: part.digest,
                storedLength: part.length,
                pins
            )
            prepared.add(ready, part.digest)
        }
        (text, attachments) = (nil, [])
        try DocumentSaving.checkCompressedBlobs(of: prepared.body, pins)
        return prepared
    }
}
