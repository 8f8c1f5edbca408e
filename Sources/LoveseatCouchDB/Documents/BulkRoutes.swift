import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Requests about many documents (protocol/couchdb.md §4.4–§4.6).
extension CouchDBServer {
    // MARK: _bulk_docs

    /// A batch that was read.
    private struct Batch: Sendable {
        var documents: [PreparedDocument] = []
        var locals: [JSONElement] = []
        var isNewEdit = true
    }

    func bulkDocuments(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try exchange.allow("POST")
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
                self.clients.note(.push, entry, exchange, amount)
            }
            let localRows = try await self.saveLocals(batch.locals, isNewEdit: batch.isNewEdit, entry)
            return .json(201, .array(rows + (batch.isNewEdit ? localRows : [])))
        }
    }

    private func batch(
        _ bytes: [UInt8],
        _ contents: InlineContents,
        _ entry: Databases.Entry,
        _ pins: BlobPins
    ) throws -> Batch {
        let body = try Self.parse(bytes)
        guard body.kind == .object else {
            throw CouchDBError.badRequest("Request body must be a JSON object")
        }
        guard let list = body["docs"] else {
            throw CouchDBError.badRequest("POST body must include `docs` parameter.")
        }
        guard list.kind == .array else { throw CouchDBError.badRequest("`docs` parameter must be an array.") }
        try Self.checkCount(list, atMost: 500_000)
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
        var incoming: [(IncomingDocument, String)] = []
        incoming.reserveCapacity(list.count)
        for element in list.items {
            if let id = element["_id"]?.string, id.beginsExactly(with: "_local/") {
                try IncomingDocument.check(id)
                batch.locals.append(element)
                continue
            }
            let document = try IncomingDocument(element, takenOut: contents.takenOut)
            let id = document.id ?? Self.newUUID()
            try IncomingDocument.check(id)
            try check(document, id)
            if !batch.isNewEdit, document.history.isEmpty {
                throw CouchDBError.badRequest(
                    "When `new_edits: false`, the document needs `_rev` or `_revisions` specified"
                )
            }
            incoming.append((document, id))
        }
        // Nothing is stored of a batch that is refused as a whole.
        batch.documents = try incoming.map { try prepare($0, $1, entry, contents, pins) }
        return batch
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
            let announced = CollectionAccess.Change(announcing: document, id: id)
            if let refusal = try entry.refusal(beforeContentOf: announced) {
                var prepared = PreparedDocument(document, id: id)
                prepared.refusal = refusal
                return prepared
            }
        }
        return try DocumentSaving.prepare(document, id: id, contents, pins: pins)
    }

    private func write(_ batch: Batch, _ entry: Databases.Entry) async throws -> [JSONValue] {
        guard !batch.documents.isEmpty else { return [] }
        return try await entry.write(batch.documents.map(\.change)) { transaction, verdicts in
            let refusals = zip(batch.documents, verdicts).map { $0.refusal ?? $1 }
            let accepted = zip(batch.documents, refusals).filter { $1 == nil }.map(\.0)
            var results = try Self.save(accepted, batch.isNewEdit, entry, transaction)[...]
            var rows: [JSONValue] = []
            for (document, refusal) in zip(batch.documents, refusals) {
                if let refusal {
                    rows.append(Self.row(for: refusal, of: document, batch.isNewEdit))
                    continue
                }
                guard let result = results.popFirst() else { break }
                if let row = try Self.row(for: result, of: document, batch.isNewEdit) { rows.append(row) }
            }
            return rows
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

    /// The row of a refused document. A refused revision that is replicated is never sent again: a conflict would be.
    private static func row(
        for refusal: CouchDBError,
        of document: PreparedDocument,
        _ isNewEdit: Bool
    ) -> JSONValue {
        var row: JSONValue = [
            "id": .string(document.id), "error": .string(isNewEdit ? refusal.error : "forbidden"),
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
            // A stub of something unknown refuses the batch, as in CouchDB.
            let refusal = (error as? CouchDBError).map { $0.status != 412 } ?? false
            guard refusal || error is StoreWriteTransaction.EditRefusal || error is RevisionTree.InsertRefusal
            else { throw error }
            return Self.row(for: Self.error(error), of: document, isNewEdit)
        }
    }

    // MARK: _revs_diff

    func revisionsDifference(_ name: String, _ entry: Databases.Entry, _ exchange: Exchange) async throws
        -> Reply
    {
        try exchange.allow("POST")
        try Self.requireJSON(exchange)
        let isOld = name == "_missing_revs"
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
                for ((id, revisions), record) in zip(page, records) {
                    let branches = try record.flatMap { try entry.branches(of: $0) }
                    if let answer = Self.missing(revisions, in: branches, isOld: isOld) {
                        missing[id] = answer
                    }
                }
            }
            let amount = ReplicatingClients.Amount(checked: wanted.count, missing: missing.count)
            self.clients.note(.push, entry, exchange, amount)
            let result = JSONValue.object(missing)
            return .json(200, isOld ? ["missing_revs": result] : result)
        }
    }

    private static func revisionLists(_ body: JSONElement) throws -> [(String, [RevisionID])] {
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
