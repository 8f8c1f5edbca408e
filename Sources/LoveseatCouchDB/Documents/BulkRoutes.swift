import LoveseatAssertions
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// `_bulk_docs` (protocol/couchdb.md §4.4).
struct BulkDocumentsResource: Resource {
    let server: CouchDBServer

    /// A batch, of which only the text was read. Its documents are read and stored in parts.
    private struct Batch: Sendable {
        let list: JSONElement
        /// Whether something in it must not be decoded.
        let isDeep: Bool
        var isNewEdit = true
    }

    /// The documents of a part of a batch, ready to be stored.
    private struct Part: Sendable {
        /// In the order of the request, refused ones included.
        var documents: [PreparedDocument] = []
        var locals: [LocalDocumentResource.LocalEdit] = []
        /// Whether each document of the request is a local one.
        var isLocal: [Bool] = []

        /// The rows in the order of the request, if there is one for each document.
        func inOrder(_ rows: [JSONValue], _ localRows: [JSONValue], isNewEdit: Bool) -> [JSONValue] {
            guard isNewEdit, rows.count + localRows.count == isLocal.count else { return rows + localRows }
            var (rows, localRows) = (rows[...], localRows[...])
            return isLocal.compactMap { $0 ? localRows.popFirst() : rows.popFirst() }
        }
    }

    private var locals: LocalDocumentResource { LocalDocumentResource(server) }

    /// How many documents and bytes of a batch are stored in one transaction, but for the last document: others wait so long.
    private static let (partCount, partBytes) = (500, 512 << 10)
    /// A batch with so many documents at most is stored at once, as a single document is.
    private static let smallBatch = 20

    func bulkDocuments(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try Self.requireJSON(exchange)
        return try await withDocuments(exchange, entry, isBatch: true) { bytes, contents in
            let pins = BlobPins(entry.store.blobs, hashesMD5: true)
            defer { withExtendedLifetime(pins) {} }
            let batch = try await self.work(exchange, size: bytes.count, done: bytes.count) {
                try Self.batch(bytes)
            }
            try exchange.memory.reserve(RequestJSON.indexSize(of: batch.list))
            var items = batch.list.items
            var incoming = try await self.checked(batch, &items, contents, exchange)
            var (text, done): ([UInt8], Int) = ([UInt8(ascii: "[")], 0)
            var amount = ReplicatingClients.Amount()
            while !incoming.isEmpty {
                let part = try await self.part(exchange, done: done, size: bytes.count) {
                    try self.prepare(incoming, batch.isNewEdit, entry, contents, pins)
                }
                let (rows, answered) = try await self.writing(exchange, batch.list.count, done: done) {
                    try await self.write(part, batch.isNewEdit, entry)
                }
                for row in rows {
                    if text.count > 1 { text.append(UInt8(ascii: ",")) }
                    text += JSONText(canonical: row).bytes
                }
                // A replicated document has a row only if it was refused. Local documents do not count.
                amount.written += part.documents.count - answered
                amount.failures += answered
                done += incoming.count
                let next = Self.nextPart(of: &items)
                if next.isEmpty { break }
                incoming = try await self.part(exchange, done: done) { try self.read(next, batch, contents) }
            }
            if !batch.isNewEdit, done > 0 {
                server.clients.note(.push, entry, exchange, amount)
            }
            return .json(201, bytes: text + [UInt8(ascii: "]")])
        }
    }

    /// Writes a part of a batch of `count` documents: at once if they are few, and else when it is their turn.
    private func writing<Value>(
        _ exchange: Exchange,
        _ count: Int,
        done: Int,
        _ write: () async throws -> Value
    ) async throws -> Value {
        guard count > Self.smallBatch, !server.settings.worksInPlace else { return try await write() }
        return try await server.caches.writers.turn(of: exchange.peer.address, done: done, write)
    }

    private static func batch(_ bytes: [UInt8]) throws -> Batch {
        let (body, isDeep) = try RequestJSON.parseBatch(bytes)
        guard body.kind == .object else {
            throw CouchDBError.badRequest("Request body must be a JSON object")
        }
        guard let list = body["docs"] else {
            throw CouchDBError.badRequest("POST body must include `docs` parameter.")
        }
        guard list.kind == .array else { throw CouchDBError.badRequest("`docs` parameter must be an array.") }
        try RequestJSON.checkCount(list, atMost: RequestJSON.maximumItems)
        if body["all_or_nothing"]?.bool == true {
            throw CouchDBError(417, "expectation_failed", "all_or_nothing is not supported")
        }
        var batch = Batch(list: list, isDeep: isDeep)
        if let flag = body["new_edits"] {
            guard let flag = flag.bool else {
                throw CouchDBError.badRequest("`new_edits` parameter must be a boolean.")
            }
            batch.isNewEdit = flag
        }
        return batch
    }

    /// The next documents of a batch, as many as are stored in one transaction.
    private static func nextPart(of items: inout JSONElement.Items) -> [JSONElement] {
        var (part, bytes): ([JSONElement], Int) = ([], 0)
        while part.count < partCount, bytes < partBytes, let item = items.next() {
            part.append(item)
            bytes += item.bytes.count
        }
        return part
    }

    /// Reads all documents of a batch, since nothing of it is stored if one of them refuses it as a whole. Only the first part is kept: all
    /// parts would take several times the memory of the text.
    private func checked(
        _ batch: Batch,
        _ items: inout JSONElement.Items,
        _ contents: InlineContents,
        _ exchange: Exchange
    ) async throws -> [Incoming] {
        let first = Self.nextPart(of: &items)
        let incoming = try await work(exchange, size: first.reduce(0) { $0 + $1.bytes.count }) {
            try read(first, batch, contents)
        }
        var (rest, done) = (items, first.count)
        while true {
            let next = Self.nextPart(of: &rest)
            if next.isEmpty { return incoming }
            try await part(exchange, done: done) {
                for case .document(let document, _) in try self.read(next, batch, contents) {
                    try DocumentSaving.checkContents(of: document)
                }
            }
            done += next.count
        }
    }

    private func read(_ elements: [JSONElement], _ batch: Batch, _ contents: InlineContents) throws
        -> [Incoming]
    {
        try elements.map { element in
            let id = element["_id"]?.string
            let isTooDeep =
                batch.isDeep && element.isNested(deeperThan: JSONLimits.standard.maximumDepth)
            if let id, id.beginsExactly(with: "_local/") {
                return .local(try locals.edit(id, element, isTooDeep: isTooDeep))
            }
            do throws(CouchDBError) {
                guard !isTooDeep else { throw .tooDeep }
                let document = try IncomingDocument(element, takenOut: contents.takenOut)
                let id = document.id ?? CouchDBServer.newUUID()
                try IncomingDocument.check(id)
                try server.settings.check(document, id)
                if !batch.isNewEdit, document.history.isEmpty { throw .missingRevision }
                return .document(document, id)
            } catch {
                guard !error.refusesBatch else { throw error }
                return .refused(Self.refused(element, error, batch.isNewEdit))
            }
        }
    }

    /// Stores the contents of documents. None is stored of documents that are refused as a whole.
    private func prepare(
        _ incoming: [Incoming],
        _ isNewEdit: Bool,
        _ entry: Databases.Entry,
        _ contents: InlineContents,
        _ pins: BlobPins
    ) throws -> Part {
        var part = Part()
        for incoming in incoming {
            if case .local(let edit) = incoming {
                part.locals.append(edit)
                part.isLocal.append(true)
                continue
            }
            part.isLocal.append(false)
            switch incoming {
            case .local: break
            case .refused(let document): part.documents.append(document)
            case .document(let document, let id):
                do {
                    part.documents.append(try prepare(document, id, entry, contents, pins))
                } catch let error as CouchDBError where !error.refusesBatch {
                    part.documents.append(
                        PreparedDocument(
                            refusal: Self.refusal(for: error, isNewEdit: isNewEdit) ?? error,
                            id: id,
                            history: document.history
                        )
                    )
                }
            }
        }
        return part
    }

    /// A document of a batch that was read.
    private enum Incoming: Sendable {
        case document(IncomingDocument, String)
        case refused(PreparedDocument)
        case local(LocalDocumentResource.LocalEdit)
    }

    /// A document that is refused alone, with what can be read of its ID and revision.
    private static func refused(_ element: JSONElement, _ error: CouchDBError, _ isNewEdit: Bool)
        -> PreparedDocument
    {
        // Either may be the reason of the refusal. The sender also knows the document by `_rev`, if its history cannot be read.
        let named = element["_rev"]?.string.flatMap { try? RevisionText.parse($0) }
        let history = element["_revisions"].flatMap { try? RevisionText.history($0).first } ?? named
        return PreparedDocument(
            refusal: refusal(for: error, isNewEdit: isNewEdit) ?? error,
            id: element["_id"]?.string ?? "",
            history: history.map { [$0] } ?? []
        )
    }

    /// Stores the content of a document, unless the document is refused.
    private func prepare(
        _ document: IncomingDocument,
        _ id: String,
        _ entry: Databases.Entry,
        _ contents: InlineContents,
        _ pins: BlobPins
    ) throws -> PreparedDocument {
        if !document.attachments.isEmpty {
            let announced = AccessRuling.Change(announcing: document, id: id)
            if let refusal = try entry.refusal(beforeContentOf: announced) {
                throw refusal
            }
        }
        return try DocumentSaving.prepare(document, id: id, contents, pins: pins)
    }

    /// Writes a part of a batch, and returns its rows. `answered`: how many of them are not of local documents.
    private func write(_ part: Part, _ isNewEdit: Bool, _ entry: Databases.Entry) async throws -> (
        rows: [JSONValue], answered: Int
    ) {
        let documents = part.documents.filter { $0.refusal == nil }
        var written = try await write(documents, isNewEdit, entry)[...]
        let rows = part.documents.compactMap { document in
            if let refusal = document.refusal { return Self.row(for: refusal, of: document, isNewEdit) }
            guard let row = written.popFirst() else { return Self.unknown(document, isNewEdit) }
            return row
        }
        let localRows = try await locals.save(part.locals, isNewEdit: isNewEdit, entry)
        return (part.inOrder(rows, localRows, isNewEdit: isNewEdit), rows.count)
    }

    /// The row of a document whose result is not known.
    private static func unknown(_ document: PreparedDocument, _ isNewEdit: Bool) -> JSONValue {
        impossible("a document of a batch has no result")
        // Without a row it would count as stored.
        return row(for: .unknownResult, of: document, isNewEdit)
    }

    /// Writes documents.
    ///
    /// - Returns: for each its row; nil for a replicated one without an error.
    private func write(_ documents: [PreparedDocument], _ isNewEdit: Bool, _ entry: Databases.Entry)
        async throws -> [JSONValue?]
    {
        guard !documents.isEmpty else { return [] }
        return try await entry.write(documents.map(\.change)) { transaction, verdicts, _ in
            let accepted = zip(documents, verdicts).filter { $1 == nil }.map(\.0)
            var results = try Self.save(accepted, isNewEdit, entry, transaction)[...]
            return try zip(documents, verdicts).map { document, verdict in
                if let verdict {
                    let refusal = Self.refusal(for: verdict, isNewEdit: isNewEdit) ?? verdict
                    return Self.row(for: refusal, of: document, isNewEdit)
                }
                guard let result = results.popFirst() else { return Self.unknown(document, isNewEdit) }
                return try Self.row(for: result, of: document, isNewEdit)
            }
        }
    }

    private static func save(
        _ documents: [PreparedDocument],
        _ isNewEdit: Bool,
        _ entry: Databases.Entry,
        _ transaction: StoreWriteTransaction
    ) throws -> [Result<RevisionID, any Error>] {
        guard isNewEdit else {
            return try DocumentSaving.saveReplicated(documents, in: entry.handle, transaction)
        }
        return documents.map { document in
            Result {
                try DocumentSaving.save(document, isNewEdit: true, in: entry.handle, transaction)
            }
        }
    }

    /// Why a document is refused; nil for an error that is not of this document alone.
    ///
    /// A replicated revision is always `forbidden`: after any other word its peer sends it again and again (protocol/couchdb.md §3.1).
    static func refusal(for error: any Error, isNewEdit: Bool) -> CouchDBError? {
        if let error = error as? CouchDBError {
            guard !error.refusesBatch, (400..<500).contains(error.status) else { return nil }
        } else {
            guard error is StoreWriteTransaction.EditRefusal || error is RevisionTree.InsertRefusal
            else { return nil }
        }
        let refusal = CouchDBServer.error(error)
        return isNewEdit ? refusal : .forbidden(refusal.reason)
    }

    /// The row of a refused document.
    private static func row(
        for refusal: CouchDBError,
        of document: PreparedDocument,
        _ isNewEdit: Bool
    ) -> JSONValue {
        var row: JSONValue = [
            "id": document.id.isEmpty ? nil : .string(document.id), "error": .string(refusal.error),
            "reason": .string(refusal.reason),
        ]
        if !isNewEdit, let revision = document.history.first { row["rev"] = .string(revision.text) }
        return row
    }

    /// The row of a document; nil for a replicated one without an error.
    private static func row(
        for result: Result<RevisionID, any Error>,
        of document: PreparedDocument,
        _ isNewEdit: Bool
    ) throws -> JSONValue? {
        do {
            let revision = try result.get()
            return isNewEdit
                ? ["ok": true, "id": .string(document.id), "rev": .string(revision.text)] : nil
        } catch {
            guard let refusal = Self.refusal(for: error, isNewEdit: isNewEdit) else { throw error }
            return Self.row(for: refusal, of: document, isNewEdit)
        }
    }
}
