import Crypto
import HummingbirdCore
import LoveseatAssertions
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import NIOCore

/// Receives a document and its attachments in parts, which go straight to the disk (protocol/couchdb.md §6.3).
final class PartsReceiver {
    private enum Place {
        case before
        case document([UInt8])
        case attachment(IncomingAttachment, BlobWriter)
        /// A part that nothing refers to.
        case other
    }

    private var parser: MultipartParser
    private let limit: Int
    private let pins: BlobPins
    private var place = Place.before
    private var waiting: [IncomingAttachment] = []
    private(set) var document: IncomingDocument?
    private var received: [ExactText: (digest: BlobDigest, length: Int, isInflated: Bool)] = [:]
    private var isEnded = false
    /// The MD5 of the attachment that is being received, if its sender names one and it is not stored as it comes.
    private var md5: Insecure.MD5?
    /// The bytes of the attachment that came.
    private var count = 0
    /// Inflates the attachment that is being received if it is a blob of the body, which has the digest of its content as it is.
    private var inflater: GzipInflater?
    /// The maximum that it may inflate to, in bytes.
    private var maximumInflated: UInt64 = 0

    /// Reads the document, and checks it before its attachments are received.
    private let read: ([UInt8]) throws -> IncomingDocument

    init(
        boundary: String,
        pins: BlobPins,
        limit: Int,
        read: @escaping ([UInt8]) throws -> IncomingDocument
    ) {
        self.read = read
        parser = MultipartParser(boundary: boundary)
        self.pins = pins
        self.limit = limit
    }

    /// Whether attachments may be inflated, which then become up to a thousand times larger.
    var inflates: Bool { document?.attachments.contains { $0.encoding != nil } ?? false }
    /// How much to receive at a time, in bytes. It is not known what follows the document.
    var pieceSize: Int { document == nil || inflates ? 16 << 10 : 256 << 10 }
    /// How many bytes attachments were inflated to.
    private(set) var inflated = 0

    func receive(_ bytes: [UInt8]) throws {
        for event in try parser.receive(bytes[...]) { try handle(event) }
    }

    /// Ends the message, and returns the document.
    func finish(id: String) throws -> PreparedDocument {
        for event in try parser.finish().events { try handle(event) }
        guard let document else { throw CouchDBError.badRequest("the message has no document") }
        if let missing = waiting.first {
            throw CouchDBError.badRequest("attachment \(missing.name) does not follow in a part")
        }
        var prepared = PreparedDocument(document, id: id)
        for attachment in document.attachments {
            if let (digest, length, isInflated) = received[ExactText(attachment.name)] {
                let ready = try DocumentSaving.ready(
                    attachment,
                    digest: digest,
                    storedLength: length,
                    isInflated: isInflated,
                    pins
                )
                prepared.add(ready, digest)
                continue
            }
            switch attachment.content {
            case .stub, .follows, .takenOut: try prepared.addStub(attachment, pins)
            case .inline(let text):
                let content = try DocumentSaving.decode(text, attachment.name)
                let digest = try pins.store(content)
                let ready = try DocumentSaving.ready(
                    attachment,
                    digest: digest,
                    storedLength: content.count,
                    pins
                )
                prepared.add(ready, digest)
            }
        }
        try DocumentSaving.checkCompressedBlobs(of: prepared.body, pins)
        return prepared
    }

    private func handle(_ event: MultipartParser.Event) throws {
        switch event {
        case .partBegan(let headers): try begin(headers)
        case .data(let bytes):
            switch place {
            case .document(var text):
                place = .other
                text += bytes
                guard text.count <= limit else { throw CouchDBError.tooLarge("the document is too large") }
                place = .document(text)
            case .attachment(let attachment, let writer):
                let wanted = attachment.encodedLength ?? attachment.length ?? Int.max
                guard count + bytes.count <= wanted else {
                    throw CouchDBError.badRequest("attachment \(attachment.name) is longer than expected")
                }
                count += bytes.count
                md5?.update(data: bytes)
                try write(bytes, of: attachment, to: writer)
            case .before, .other: break
            }
        case .partEnded: try end()
        case .ended: isEnded = true
        }
    }

    private func write(_ bytes: ArraySlice<UInt8>, of attachment: IncomingAttachment, to writer: BlobWriter)
        throws
    {
        guard let inflater else { return try writer.write(bytes) }
        do {
            try bytes.withUnsafeBytes { piece in
                try inflater.inflate(piece) { inflated in
                    guard writer.length + UInt64(inflated.count) <= maximumInflated else {
                        throw CouchDBError.badRequest(
                            "attachment \(attachment.name) inflates to more than expected"
                        )
                    }
                    try writer.write(inflated)
                    self.inflated += inflated.count
                }
            }
        } catch let error as LoveseatError where error.code == .corruptData {
            throw CouchDBError.badRequest("attachment \(attachment.name) is not gzip")
        }
    }

    private func begin(_ headers: PartHeaders) throws {
        guard document != nil else {
            guard headers.contentType?.matches("application", "json") ?? false else {
                throw CouchDBError(415, "bad_content_type", "the first part must be application/json")
            }
            place = .document([])
            return
        }
        // By the name, or else by the order.
        var index = headers.filename.flatMap { name in waiting.firstIndex { $0.name.isExactly(name) } }
        if index == nil { index = waiting.indices.first }
        guard let index else {
            place = .other
            return
        }
        let attachment = waiting.remove(at: index)
        count = 0
        inflater = nil
        if attachment.encoding == "gzip", let body = document?.body,
            let blob = BlobAttachments.blob(attachment.name, in: body), !blob.isCompressed,
            // It may be other content than the blob's.
            let length = attachment.length.map({ UInt64(clamping: $0) }) ?? blob.length
        {
            inflater = try GzipInflater()
            maximumInflated = length
        }
        let isNamedByMD5 = attachment.digest?.hasPrefix("md5-") == true
        md5 = isNamedByMD5 && inflater != nil ? Insecure.MD5() : nil
        place = .attachment(attachment, try pins.writer(isNamedByMD5: isNamedByMD5 && inflater == nil))
    }

    private func end() throws {
        switch place {
        case .document(let text):
            let document = try read(text)
            self.document = document
            waiting = document.attachments.filter { if case .follows = $0.content { true } else { false } }
        case .attachment(let attachment, let writer):
            let wanted = attachment.encodedLength ?? attachment.length
            guard wanted == nil || count == wanted, inflater?.isEnded ?? true else {
                throw CouchDBError.badRequest("attachment \(attachment.name) is shorter than expected")
            }
            let isInflated = inflater != nil
            inflater = nil
            let (digest, length) = try pins.finish(writer)
            let named = attachment.digest
            let md5 = md5.flatMap { MD5Digest(bytes: Array($0.finalize())) } ?? writer.md5
            guard named?.hasPrefix("md5-") != true || (md5?.text).isExactly(named),
                isInflated || named?.hasPrefix("sha1-") != true || named.isExactly(digest.text)
            else {
                throw CouchDBError.badRequest("attachment \(attachment.name) has another digest")
            }
            received[ExactText(attachment.name)] = (digest, Int(length), isInflated)
        case .before, .other: break
        }
        place = .other
    }
}

extension DocumentResource {
    func putParts(_ id: String, _ boundary: String, _ entry: Databases.Entry, _ exchange: Exchange)
        async throws
        -> Reply
    {
        let pins = BlobPins(entry.store.blobs, hashesMD5: true)
        defer { withExtendedLifetime(pins) {} }
        let receiver = PartsReceiver(
            boundary: boundary,
            pins: pins,
            limit: server.settings.maximumDocumentSize
        ) { text in
            let sent = try SentDocument(text)
            return try self.refusing(exchange) {
                let document = try sent.document()
                try self.server.settings.check(document, id)
                try entry.requireRight(to: AccessRuling.Change(announcing: document, id: id))
                return document
            }
        }
        for try await part in exchange.requestedBody() {
            var part = part
            while part.readableBytes > 0 {
                let length = min(receiver.pieceSize, part.readableBytes)
                guard let piece = part.readBytes(length: length) else {
                    impossible("\(length) bytes cannot be read of \(part.readableBytes)")
                    break
                }
                try await work(exchange, size: receiver.inflates ? .max : 0, done: receiver.inflated) {
                    try receiver.receive(piece)
                }
            }
        }
        let prepared = try receiver.finish(id: id)
        return try await finish(prepared, entry, exchange)
    }
}
