import HTTPTypes
import HummingbirdCore
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

extension CouchDBServer.Settings {
    /// - Throws: `document_too_large`; `bad_request` for a content type that clients could not read.
    func check(_ document: IncomingDocument, _ id: String) throws(CouchDBError) {
        guard document.body.bytes.count <= maximumDocumentSize else { throw .tooLarge(id) }
        guard id.utf8.count <= 8_000 else {
            throw CouchDBError(400, "illegal_docid", "Document id is too long")
        }
        for attachment in document.attachments {
            guard let type = attachment.contentType else { continue }
            try IncomingAttachment.check(contentType: type, of: attachment.name)
        }
    }
}

/// Requests that write one document (protocol/couchdb.md §4.1).
extension DocumentResource {
    func createDocument(in entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try Self.requireJSON(exchange)
        let reply = try await withDocuments(exchange, entry, isBatch: false) { bytes, contents in
            let sent = try await self.parsedDocument(bytes, exchange)
            if let id = sent.element["_id"]?.string, id.beginsExactly(with: "_local/") {
                guard !sent.isTooDeep else { throw CouchDBError.tooDeep }
                let local = try IncomingDocument(try LocalDocumentResource.localRevision(in: sent.element).1)
                let locals = LocalDocumentResource(self.server)
                return try await locals.save(id, local, entry, exchange, bytes: bytes)
            }
            let document = try await self.document(sent, contents, exchange)
            let id = document.id ?? CouchDBServer.newUUID()
            return try await self.save(document, id, contents, entry, exchange)
        }
        return reply
    }

    func putDocument(_ id: String, _ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        if let type = exchange.headers[.contentType].flatMap({ MediaType($0) }),
            type.matches("multipart", "related")
        {
            guard let boundary = type.boundary else { throw CouchDBError.badRequest("no boundary") }
            return try await putParts(id, boundary, entry, exchange)
        }
        return try await withDocuments(exchange, entry, isBatch: false) { bytes, contents in
            let sent = try await self.parsedDocument(bytes, exchange)
            let document = try await self.document(sent, contents, exchange)
            if let other = document.id { try IncomingDocument.check(other) }
            return try await self.save(document, id, contents, entry, exchange)
        }
    }

    private func save(
        _ document: IncomingDocument,
        _ id: String,
        _ contents: InlineContents,
        _ entry: Databases.Entry,
        _ exchange: Exchange
    ) async throws -> Reply {
        try IncomingDocument.check(id)
        let pins = BlobPins(entry.store.blobs, hashesMD5: true)
        let size = document.body.bytes.count
        let prepared = try await work(exchange, size: size, done: size) {
            try refusing(exchange) {
                try server.settings.check(document, id)
                if !document.attachments.isEmpty {
                    try entry.requireRight(to: AccessRuling.Change(announcing: document, id: id))
                }
                return try DocumentSaving.prepare(document, id: id, contents, pins: pins)
            }
        }
        defer { withExtendedLifetime(pins) {} }
        return try await finish(prepared, entry, exchange)
    }

    private func isNewEdit(_ exchange: Exchange) throws(CouchDBError) -> Bool {
        try exchange.query.flag("new_edits") ?? true
    }

    /// Runs a step of saving a document that was sent alone.
    ///
    /// - Throws: for a refused document, the error of its row in a batch. A replicator counts `forbidden` as the failure of one document,
    ///   and stops after most other answers.
    func refusing<Value>(_ exchange: Exchange, _ body: () throws -> Value) throws -> Value {
        let isNewEdit = try isNewEdit(exchange)
        do { return try body() } catch { throw Self.refusalAlone(error, isNewEdit: isNewEdit) }
    }

    /// The error with which a document that was sent alone is refused.
    private static func refusalAlone(_ error: any Error, isNewEdit: Bool) -> any Error {
        // Replicators do not retry a document that was sent alone and is too large, just as one that is forbidden.
        if let error = error as? CouchDBError, error.status == 413 { return error }
        return BulkDocumentsResource.refusal(for: error, isNewEdit: isNewEdit) ?? error
    }

    /// The text of a document that was sent alone.
    struct SentDocument: Sendable {
        let element: JSONElement
        /// Whether it must not be decoded.
        let isTooDeep: Bool

        init(_ text: [UInt8]) throws(CouchDBError) {
            (element, isTooDeep) = try RequestJSON.parseBatch(text)
        }

        /// - Throws: ``CouchDBError`` for what is not a document.
        func document(takenOut: TakenOutContents? = nil) throws(CouchDBError) -> IncomingDocument {
            guard !isTooDeep else { throw .tooDeep }
            return try IncomingDocument(element, takenOut: takenOut)
        }
    }

    /// Parses the text of a document, as ``work(_:size:done:_:)`` does.
    private func parsedDocument(_ bytes: [UInt8], _ exchange: Exchange) async throws -> SentDocument {
        let sent = try await work(exchange, size: bytes.count, done: bytes.count) { try SentDocument(bytes) }
        try exchange.memory.reserve(RequestJSON.indexSize(of: sent.element))
        return sent
    }

    /// The document in a body, as ``work(_:size:done:_:)`` finds it.
    private func document(_ sent: SentDocument, _ contents: InlineContents, _ exchange: Exchange) async throws
        -> IncomingDocument
    {
        let size = sent.element.bytes.count
        return try await work(exchange, size: size, done: size) {
            try refusing(exchange) { try sent.document(takenOut: contents.takenOut) }
        }
    }

    /// Saves a document whose content is stored, and answers.
    func finish(_ document: PreparedDocument, _ entry: Databases.Entry, _ exchange: Exchange) async throws
        -> Reply
    {
        var document = document
        let isNewEdit = try isNewEdit(exchange)
        if let named = try Self.namedRevision(exchange, document.history.first) {
            if document.history.first != named { document.history = [named] }
        }
        let prepared = document
        let revision: RevisionID
        do {
            revision = try await entry.write(prepared.change) {
                try DocumentSaving.save(prepared, isNewEdit: isNewEdit, in: entry.handle, $0, over: $1)
            }
        } catch { throw Self.refusalAlone(error, isNewEdit: isNewEdit) }
        if !isNewEdit { server.clients.note(.push, entry, exchange, ReplicatingClients.Amount(written: 1)) }
        return saved(document.id, revision, isDeleted: document.isDeleted, entry, exchange)
    }

    private func saved(
        _ id: String,
        _ revision: RevisionID,
        isDeleted: Bool,
        _ entry: Databases.Entry,
        _ exchange: Exchange
    ) -> Reply {
        let path = id.beginsExactly(with: "_design/") ? ["_design", id.dropping("_design/")] : [id]
        return .json(
            isDeleted ? 200 : 201,
            ["ok": true, "id": .string(id), "rev": .string(revision.text)],
            headers: [("ETag", "\"\(revision.text)\""), ("Location", exchange.location([entry.name] + path))]
        )
    }

    /// The revision that a request names in its URL, in `If-Match`, or in its body.
    static func namedRevision(_ exchange: Exchange, _ inBody: RevisionID?) throws(CouchDBError) -> RevisionID?
    {
        var revision = inBody
        if let text = exchange.query["rev"], !text.isEmpty {
            let other = try RevisionText.parse(text)
            guard revision == nil || revision == other else {
                throw .badRequest("Document rev from request body and query string have different values")
            }
            revision = other
        }
        if let header = exchange.header("If-Match") {
            let other = try RevisionText.parse(header.filter { $0 != "\"" })
            guard revision == nil || revision == other else {
                throw .badRequest("Document rev and etag have different values")
            }
            revision = other
        }
        return revision
    }

    func deleteDocument(_ id: String, _ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        let revision = try Self.namedRevision(exchange, nil)
        if entry.access != nil, try await branches(of: id, in: entry, for: exchange) == nil {
            throw CouchDBError.missing
        }
        let change = AccessRuling.Change(
            id: id,
            history: revision.map { [$0] } ?? [],
            isDeleted: true,
            body: .emptyObject
        )
        let made = try await entry.write(change) { transaction, document in
            guard let record = try document.record() else { throw CouchDBError.missing }
            guard !record.isDeleted else { throw CouchDBError.deleted }
            guard let revision else { throw CouchDBError.conflict }
            return try transaction.insertEdit(
                over: revision,
                of: id,
                replacing: record,
                in: entry.handle,
                body: .emptyObject,
                isDeleted: true
            )
        }
        return saved(id, made, isDeleted: true, entry, exchange)
    }

    func copyDocument(_ id: String, _ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        guard let header = exchange.header("Destination") else {
            throw CouchDBError.badRequest("Destination header is mandatory for COPY.")
        }
        guard !header.contains("://") else {
            throw CouchDBError.badRequest("Destination URL must be relative.")
        }
        let parts = header.split(separator: "?", maxSplits: 1)
        guard let target = parts.first.flatMap({ PercentCoding.decode($0) }) else {
            throw CouchDBError.badRequest("Destination is not percent-encoded UTF-8")
        }
        try IncomingDocument.check(target)
        guard !target.beginsExactly(with: "_local/") else {
            throw CouchDBError.badRequest("a document cannot be copied to a local one")
        }
        let query = try Query(parts.count > 1 ? parts[1] : "")
        let over = try query["rev"].map { text throws(CouchDBError) in try RevisionText.parse(text) }
        let source = try exchange.query["rev"].map { text throws(CouchDBError) in try RevisionText.parse(text)
        }
        guard let (branches, _) = try await branches(of: id, in: entry, for: exchange) else {
            throw CouchDBError.missing
        }
        let branch = source.map { branches.revision($0) } ?? branches.winner
        guard let body = branch?.body, branch?.isDeleted == false else { throw CouchDBError.missing }
        var change = AccessRuling.Change(
            id: target,
            history: over.map { [$0] } ?? [],
            isDeleted: false,
            body: body
        )
        // The client may read them.
        change.received = Set(BlobReference.all(in: body).map(\.digest))
        let made = try await entry.write(change) {
            try $0.insertEdit(
                over: over,
                of: target,
                replacing: try $1.record(),
                in: entry.handle,
                body: body,
                isDeleted: false
            )
        }
        return saved(target, made, isDeleted: false, entry, exchange)
    }
}
