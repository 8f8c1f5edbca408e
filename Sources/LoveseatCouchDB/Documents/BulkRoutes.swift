import LoveseatAssertions
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// `_bulk_docs` (protocol/couchdb.md §4.4).
struct BulkDocumentsResource: Resource {
    let server: CouchDBServer

    /// A batch that was read.
    private struct Batch: Sendable {
        /// In the order of the request, refused ones included.
        var documents: [PreparedDocument] = []
        var locals: [LocalDocumentResource.LocalEdit] = []
        /// Whether each document of the request is a local one.
        var isLocal: [Bool] = []
        var isNewEdit = true

        /// The rows in the order of the request, if there is one for each document.
        func inOrder(_ rows: [JSONValue], _ localRows: [JSONValue]) -> [JSONValue] {
            guard isNewEdit, rows.count + localRows.count == isLocal.count else { return rows + localRows }
            var (rows, localRows) = (rows[...], localRows[...])
            return isLocal.compactMap { $0 ? localRows.popFirst() : rows.popFirst() }
        }
    }

    private var locals: LocalDocumentResource { LocalDocumentResource(server) }

    func bulkDocuments(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try Self.requireJSON(exchange)
        return try await withDocuments(exchange, entry, isBatch: true) { bytes, contents in
            let pins = BlobPins(entry.store.blobs)
            defer { withExtendedLifetime(pins) {} }
            let batch = try await self.work(exchange, size: bytes.count, done: bytes.count) {
                try self.batch(bytes, contents, entry, pins)
            }
            let rows = try await self.write(batch, entry)
            if !batch.isNewEdit, !batch.documents.isEmpty {
                let amount = ReplicatingClients.Amount(
                    written: batch.documents.count - rows.count,
                    failures: rows.count
                )
                server.clients.note(.push, entry, exchange, amount)
            }
            let localRows = try await self.locals.save(batch.locals, isNewEdit: batch.isNewEdit, entry)
            return .json(201, .array(batch.inOrder(rows, localRows)))
        }
    }

    private func batch(
        _ bytes: [UInt8],
        _ contents: InlineContents,
        _ entry: Databases.Entry,
        _ pins: BlobPins
    ) throws -> Batch {
        let (body, isDeep) = try RequestJSON.parseBatch(bytes)
        guard body.kind == .object else {
            throw CouchDBError.badRequest("Request body must be a JSON object")
        }
        guard let list = body["docs"] else {
            throw CouchDBError.badRequest("POST body must include `docs` parameter.")
        }
        guard list.kind == .array else { throw CouchDBError.badRequest("`docs` parameter must be an array.") }
        try RequestJSON.checkCount(list, atMost: 500_000)
        if body["all_or_nothing"]?.bool == true {
            throw CouchDBError(417, "expectation_failed", "all_or_nothing is not supported")
        }
        var batch = Batch()
        if let flag = body["new_edits"] {
            guard let flag = flag.bool else {
                throw CouchDBError.badRequest("`new_edits` parameter must be a boolean.")
            }
            batch.isNewEdit = flag
        }
        var incoming: [Incoming] = []
        incoming.reserveCapacity(list.count)
        for element in list.items {
            let id = element["_id"]?.string
            let isTooDeep = isDeep && element.isNested(deeperThan: JSONLimits.standard.maximumDepth)
            let isLocal = id?.beginsExactly(with: "_local/") == true
            batch.isLocal.append(isLocal)
            if let id, isLocal {
                batch.locals.append(try locals.edit(id, element, isTooDeep: isTooDeep))
                continue
            }
            do throws(CouchDBError) {
                guard !isTooDeep else { throw .tooDeep }
                let document = try IncomingDocument(element, takenOut: contents.takenOut)
                let id = document.id ?? CouchDBServer.newUUID()
                try IncomingDocument.check(id)
                try server.settings.check(document, id)
                if !batch.isNewEdit, document.history.isEmpty { throw .missingRevision }
                incoming.append(.document(document, id))
            } catch {
                guard !error.refusesBatch else { throw error }
                incoming.append(.refused(Self.refused(element, error, batch.isNewEdit)))
            }
        }
        // Nothing is stored of a batch that is refused as a whole.
        batch.documents = try incoming.map { incoming in
            switch incoming {
            case .refused(let document): return document
            case .document(let document, let id):
                do { return try prepare(document, id, entry, contents, pins) } catch let error as CouchDBError
                    where !error.refusesBatch
                {
                    return PreparedDocument(
                        refusal: Self.refusal(for: error, isNewEdit: batch.isNewEdit) ?? error,
                        id: id,
                        history: document.history
                    )
                }
            }
        }
        return batch
    }

    /// A document of a batch that was read.
    private enum Incoming {
        case document(IncomingDocument, String)
        case refused(PreparedDocument)
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

    private func write(_ batch: Batch, _ entry: Databases.Entry) async throws -> [JSONValue] {
        let documents = batch.documents.filter { $0.refusal == nil }
        var rows = try await write(documents, batch.isNewEdit, entry)[...]
        return batch.documents.compactMap { document in
            if let refusal = document.refusal { return Self.row(for: refusal, of: document, batch.isNewEdit) }
            guard let row = rows.popFirst() else { return Self.unknown(document, batch.isNewEdit) }
            return row
        }
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

/// `_revs_diff` and `_missing_revs` (protocol/couchdb.md §4.5).
struct RevisionsResource: Resource {
    let server: CouchDBServer

    /// `isOld`: whether the answer has the form of `_missing_revs`.
    func revisionsDifference(_ entry: Databases.Entry, _ exchange: Exchange, isOld: Bool) async throws
        -> Reply
    {
        try Self.requireJSON(exchange)
        return try await withBody(exchange) { bytes in
            let body = try await self.parsed(bytes, exchange)
            guard body.kind == .object else {
                throw CouchDBError.badRequest("Request body must be a JSON object")
            }
            let wanted = try Self.revisionLists(body)
            var missing = JSONObject()
            for start in stride(from: 0, to: wanted.count, by: Self.differencePage) {
                let page = Array(wanted[start..<min(start + Self.differencePage, wanted.count)])
                let records = try await entry.store.readFromTask(within: nil) { view in
                    try page.map { try view.record($0.0, in: entry.handle) }
                }
                let entry = entry.renewed()
                for ((id, revisions), record) in zip(page, records) {
                    let branches = try record.flatMap { try entry.branches(of: $0) }
                    if let answer = Self.missing(revisions, in: branches, isOld: isOld) {
                        missing[id] = answer
                    }
                }
            }
            let amount = ReplicatingClients.Amount(checked: wanted.count, missing: missing.count)
            server.clients.note(.push, entry, exchange, amount)
            let result = JSONValue.object(missing)
            return .json(200, isOld ? ["missing_revs": result] : result)
        }
    }

    /// The revisions in a body that names some of each document.
    static func revisionLists(_ body: JSONElement) throws -> [(String, [RevisionID])] {
        var lists: [(String, [RevisionID])] = []
        lists.reserveCapacity(body.count)
        for (id, list) in body.members {
            guard list.kind == .array else { throw CouchDBError.badRequest("Invalid list of revisions") }
            var revisions: [RevisionID] = []
            for item in list.items {
                guard let text = item.string else { throw CouchDBError.invalidRevision }
                revisions.append(try RevisionText.parse(text))
            }
            lists.append((id, revisions))
        }
        return lists
    }

    /// How many documents are read at a time.
    private static let differencePage = 200

    /// The answer about a document; nil if nothing is missing.
    private static func missing(_ revisions: [RevisionID], in branches: DocumentBranches?, isOld: Bool)
        -> JSONValue?
    {
        let missing = revisions.filter { !(branches?.contains($0) ?? false) }
        guard let highest = missing.map(\.generation).max() else { return nil }
        let list = JSONValue.array(missing.map { .string($0.text) })
        guard !isOld else { return list }
        var entry: JSONValue = ["missing": list]
        let ancestors = branches?.leaves.filter { $0.id.generation < highest } ?? []
        if !ancestors.isEmpty {
            entry["possible_ancestors"] = .array(ancestors.map { .string($0.id.text) })
        }
        return entry
    }
}
