import Crypto
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_local` documents, in which replicators keep their checkpoints (protocol/couchdb.md §4.2, corrections 21).
struct LocalDocumentResource: Resource {
    let server: CouchDBServer

    private func key(_ id: String, _ entry: Databases.Entry) -> String {
        prefix(entry) + id.dropping("_local/")
    }

    /// Where clients have rights of their own, they have local documents of their own.
    private func prefix(_ entry: Databases.Entry) -> String {
        guard let access = entry.access else { return entry.localKey("") }
        return "couchdb-of:\(entry.handle.number)/\(PercentCoding.encode(access.peerName))/"
    }

    func answer(_ id: String, _ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        switch exchange.method {
        case "PUT":
            try requireStart(exchange)
            return try await withBody(exchange) { bytes in
                let document = try IncomingDocument(
                    try Self.localRevision(in: try await self.parsed(bytes, exchange)).1
                )
                return try await self.save(id, document, entry, exchange, bytes: bytes)
            }
        case "DELETE":
            let key = key(id, entry)
            let wasThere = try await entry.store.writeFromTask(within: nil) { transaction in
                guard try transaction.peerCheckpoint(key) != nil else { return false }
                try transaction.checkpointTables.removeLocalDocument(key)
                return true
            }
            guard wasThere else { throw CouchDBError.missing }
            return .json(200, ["ok": true, "id": .string(id), "rev": "0-0"])
        default: return try getLocal(id, entry, exchange)
        }
    }

    /// Refuses the checkpoint of a client that does not know yet that the listener was started again: it would confirm what may be lost.
    private func requireStart(_ exchange: Exchange) throws(CouchDBError) {
        if let known = exchange.header(CouchDBServer.startHeader), !known.isExactly(server.start) {
            throw .conflict
        }
    }

    private func getLocal(_ id: String, _ entry: Databases.Entry, _ exchange: Exchange) throws -> Reply {
        let key = key(id, entry)
        guard exchange.query["rev"] == nil, exchange.query["open_revs"] == nil,
            let (revision, body) = try entry.store.readRows({ try $0.peerCheckpoint(key) })
        else { throw CouchDBError.missing }
        var value = JSONElement(body).value
        value["_id"] = .string(id)
        value["_rev"] = .string("0-\(revision)")
        var text = JSONText(canonical: value).bytes
        if exchange.query.isSet("revs") {
            let revisions = RevisionText.revisions(start: 0, [.string("\(revision)")])
            text = text.dropLast() + Array(",\"_revisions\":\(revisions)}".utf8)
        }
        // Browsers keep answers by their ETags: it changes with every content.
        let etag = Array(SHA256.hash(data: body.bytes + Array(":\(revision)".utf8))).prefix(16)
        return Reply.json(200, bytes: text).revalidated(
            etag.map { String($0, radix: 16) }.joined(),
            for: exchange
        )
    }

    /// Takes `0-N` out of a local document, which other documents cannot have as a revision.
    static func localRevision(in element: JSONElement) throws -> (Int?, JSONElement) {
        guard case .object(var object) = element.value else {
            throw CouchDBError.badRequest("Document must be a JSON object")
        }
        let revision = try object["_rev"].map { try number(of: $0.string) }
        object["_rev"] = nil
        return (revision, JSONElement(JSONText(canonical: .object(object))))
    }

    /// The highest number of a local document's revision. An edit of it would have one that cannot be named.
    private static let highestNumber = (1 << 53) - 1

    static func number(of text: String?) throws(CouchDBError) -> Int {
        guard let text, text.hasPrefix("0-"), let number = Int(text.dropFirst(2)),
            (0...highestNumber).contains(number)
        else {
            throw .invalidRevision
        }
        return number
    }

    /// Saves a local document as CouchDB does: the revision that it names, and one more; without one, the first.
    func save(
        _ id: String,
        _ document: IncomingDocument,
        _ entry: Databases.Entry,
        _ exchange: Exchange,
        bytes: [UInt8]? = nil
    ) async throws -> Reply {
        var base = try bytes.map { try Self.localRevision(in: try RequestJSON.parse($0)).0 } ?? nil
        if let text = exchange.query["rev"] { base = try Self.number(of: text) }
        if let text = exchange.header("If-Match") { base = try Self.number(of: text.filter { $0 != "\"" }) }
        let keepsRevision = try exchange.query.flag("new_edits") == false
        let revision = try await store(
            id,
            document,
            base,
            keepsRevision: keepsRevision,
            entry
        )
        return .json(
            document.isDeleted ? 200 : 201,
            ["ok": true, "id": .string(id), "rev": .string("0-\(revision)")],
            headers: [("Location", exchange.location([entry.name, "_local", String(id.dropFirst(7))]))]
        )
    }

    private func store(
        _ id: String,
        _ document: IncomingDocument,
        _ base: Int?,
        keepsRevision: Bool,
        _ entry: Databases.Entry
    ) async throws -> Int {
        try server.settings.check(document, id)
        let key = key(id, entry)
        let revision = document.isDeleted ? 0 : keepsRevision ? base ?? 1 : (base ?? 0) + 1
        guard revision <= Self.highestNumber else { throw CouchDBError.invalidRevision }
        try await entry.store.writeFromTask(within: nil) { transaction in
            if document.isDeleted {
                try transaction.checkpointTables.removeLocalDocument(key)
            } else {
                try transaction.checkpointTables.saveLocalDocument(key, revision: revision, document.body)
            }
        }
        return revision
    }

    /// A local document of a batch, or why it is refused alone.
    struct LocalEdit: Sendable {
        let id: String
        let content: Result<(base: Int?, document: IncomingDocument), CouchDBError>
    }

    /// - Throws: ``CouchDBError`` if it refuses the whole batch.
    func edit(_ id: String, _ element: JSONElement, isTooDeep: Bool) throws -> LocalEdit {
        do {
            guard !isTooDeep else { throw CouchDBError.tooDeep }
            try IncomingDocument.check(id)
            let (base, rest) = try Self.localRevision(in: element)
            let document = try IncomingDocument(rest)
            try server.settings.check(document, id)
            return LocalEdit(id: id, content: .success((base, document)))
        } catch let error as CouchDBError where !error.refusesBatch {
            return LocalEdit(id: id, content: .failure(error))
        }
    }

    /// Saves the local documents of a batch, and returns its rows: of replicated ones those that are refused.
    func save(_ edits: [LocalEdit], isNewEdit: Bool, _ entry: Databases.Entry) async throws
        -> [JSONValue]
    {
        var rows: [JSONValue] = []
        for edit in edits {
            do {
                let (base, document) = try edit.content.get()
                let revision = try await store(edit.id, document, base, keepsRevision: !isNewEdit, entry)
                guard isNewEdit else { continue }
                rows.append(["ok": true, "id": .string(edit.id), "rev": .string("0-\(revision)")])
            } catch let error as CouchDBError {
                let refusal = BulkDocumentsResource.refusal(for: error, isNewEdit: isNewEdit) ?? error
                rows.append([
                    "id": .string(edit.id), "error": .string(refusal.error),
                    "reason": .string(refusal.reason),
                ])
            }
        }
        return rows
    }

    /// `_local_docs`.
    func localDocuments(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        let body = exchange.method == "POST" ? try await json(exchange, isNeeded: false) : nil
        let query = exchange.query.adding(body)
        let prefix = prefix(entry)
        let limit = min(try query.count("limit") ?? 10_000, 10_000)
        let all = try entry.store.readRows { try $0.localDocuments(prefix: prefix, limit: limit) }
        let withDocuments = query.isSet("include_docs")
        let rows: [JSONValue] = all.map { id, revision, body in
            let id = "_local/" + id
            var row: JSONValue = [
                "id": .string(id), "key": .string(id), "value": ["rev": .string("0-\(revision)")],
            ]
            if withDocuments {
                var value = JSONElement(body).value
                value["_id"] = .string(id)
                value["_rev"] = .string("0-\(revision)")
                row["doc"] = value
            }
            return row
        }
        return .json(200, ["total_rows": nil, "offset": nil, "rows": .array(rows)])
    }
}
