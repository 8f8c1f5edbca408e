import HummingbirdCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_all_docs` (protocol/couchdb.md §4.3).
struct AllDocumentsResource: Resource {
    let server: CouchDBServer

    /// The documents that are listed.
    enum ListRange { case all, design }

    /// The parameters of a request for a list of documents.
    private struct ListRequest: Sendable {
        let range: ListRange
        var listing = StoreReadTransaction.Listing()
        var keys: [JSONElement]?
        var withDocuments = false
        var withSequence = false
        var options = DocumentOptions()
        /// Whether nothing can be found.
        var isEmpty = false

        init(_ query: Query, _ range: ListRange) throws(CouchDBError) {
            self.range = range
            if query.isSet("reduce") { throw .queryParse("Reduce is invalid for map-only views.") }
            withDocuments = try query.flag("include_docs") ?? false
            withSequence = try query.flag("update_seq") ?? false
            options.withConflicts = query.isSet("conflicts")
            options.withAttachments = query.isSet("attachments")
            options.withEncoding = query.isSet("att_encoding_info")
            listing.isDescending = try query.flag("descending") ?? false
            listing.includesLast = try query.flag("inclusive_end") ?? true
            listing.skip = try query.count("skip") ?? 0
            listing.limit = try query.count("limit") ?? .max
            let key = try query.json("key")
            let start = try query.json("startkey", "start_key")
            let end = try query.json("endkey", "end_key")
            if let keys = try query.json("keys") {
                guard keys.kind == .array else { throw .badRequest("`keys` parameter must be an array.") }
                guard key == nil, start == nil, end == nil else {
                    throw .queryParse("`keys` is incompatible with `key`, `start_key` and `end_key`")
                }
                self.keys = Array(keys.items)
            }
            if let key {
                listing.first = key.string
                listing.last = key.string
                isEmpty = key.string == nil
            }
            bound(start, isStart: true)
            bound(end, isStart: false)
            if range == .design {
                listing.first = listing.first ?? (listing.isDescending ? "_design0" : "_design/")
                listing.last = listing.last ?? (listing.isDescending ? "_design/" : "_design0")
            }
        }

        /// Sets one end. Values other than strings come before all IDs.
        private mutating func bound(_ element: JSONElement?, isStart: Bool) {
            // A list may be open at either end.
            guard let element else { return }
            if let id = element.string {
                if isStart { listing.first = id } else { listing.last = id }
                return
            }
            if isStart == listing.isDescending { isEmpty = true }
        }
    }

    func allDocuments(_ entry: Databases.Entry, _ exchange: Exchange, range: ListRange) async throws -> Reply
    {
        var query = exchange.query
        if exchange.method == "POST" {
            try Self.requireJSON(exchange)
            let body = try await json(exchange)
            if let body, body.kind != .object {
                throw CouchDBError.badRequest("Request body must be a JSON object")
            }
            if let keys = body?["keys"], keys.kind != .array {
                throw CouchDBError.badRequest("`keys` body member must be an array.")
            }
            query = query.adding(body)
        }
        let request = try ListRequest(query, range)
        return .stream { writer in
            try await self.list(request, entry, &writer)
            try await writer.write("\n")
        }
    }

    func allDocumentQueries(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        guard let queries = try await json(exchange)?["queries"], queries.kind == .array else {
            throw CouchDBError.badRequest("`queries` parameter must be an array.")
        }
        try RequestJSON.checkCount(queries, atMost: 10_000)
        var requests: [ListRequest] = []
        for element in queries.items {
            requests.append(try ListRequest(exchange.query.adding(element), .all))
        }
        let all = requests
        return .stream { writer in
            try await writer.write("{\"results\":[")
            for (index, request) in all.enumerated() {
                if index > 0 { try await writer.write(",") }
                try await self.list(request, entry, &writer)
            }
            try await writer.write("]}\n")
        }
    }

    private func list(
        _ request: ListRequest,
        _ entry: Databases.Entry,
        _ writer: inout any ResponseBodyWriter
    )
        async throws
    {
        try await writer.write(try head(request, entry))
        var isFirst = true
        if let keys = request.keys {
            let chosen = Array(
                (request.listing.isDescending ? keys.reversed() : keys).dropFirst(request.listing.skip)
                    .prefix(
                        request.listing.limit
                    )
            )
            for start in stride(from: 0, to: chosen.count, by: 100) {
                let rows = try await rows(
                    Array(chosen[start..<min(start + 100, chosen.count)]),
                    request,
                    entry
                )
                try await write(rows, &isFirst, entry, &writer)
            }
        } else if !request.isEmpty {
            var listing = request.listing
            var left = listing.limit
            // Rows that the client may not see are not skipped by the database.
            var toSkip = entry.access == nil ? 0 : listing.skip
            if entry.access != nil { listing.skip = 0 }
            while left > 0 {
                listing.limit = entry.access == nil ? min(left, 200) : 200
                let (found, seen, last) = try await page(listing, request, entry)
                let rows = Array(found.dropFirst(toSkip).prefix(left))
                toSkip -= min(toSkip, found.count)
                try await write(rows, &isFirst, entry, &writer)
                left -= rows.count
                guard let last, seen == listing.limit else { break }
                listing.first = last
                listing.includesFirst = false
                listing.skip = 0
            }
        }
        try await writer.write("\n]}")
    }

    private func head(_ request: ListRequest, _ entry: Databases.Entry) throws -> String {
        guard entry.access == nil else {
            return head(
                total: try server.caches.visibleCounts.counts(of: entry).live,
                offset: nil,
                request,
                entry
            )
        }
        let (total, offset) = try entry.store.readRows { view in
            var total = try view.count(entry.handle)
            if request.range == .design {
                total =
                    try view.count(in: entry.handle, before: "_design0", isDescending: false)
                    - view.count(in: entry.handle, before: "_design/", isDescending: false)
            }
            guard request.keys == nil else { return (total, nil as Int?) }
            var before = 0
            if let first = request.listing.first {
                before = try view.count(
                    in: entry.handle,
                    before: first,
                    isDescending: request.listing.isDescending
                )
            }
            return (total, min(total, before.addingSaturated(request.listing.skip)))
        }
        return head(total: total, offset: offset, request, entry)
    }

    private func head(total: Int, offset: Int?, _ request: ListRequest, _ entry: Databases.Entry) -> String {
        let sequence =
            request.withSequence
            ? ",\"update_seq\":\(entry.sequenceText(entry.store.lastSequence(entry.handle)))" : ""
        return
            "{\"total_rows\":\(total),\"offset\":\(offset.map { "\($0)" } ?? "null")\(sequence),\"rows\":[\n"
    }

    private typealias Row = (start: String, document: RenderedDocument?, end: String)

    private func page(
        _ listing: StoreReadTransaction.Listing,
        _ request: ListRequest,
        _ entry: Databases.Entry
    ) async throws -> (rows: [Row], seen: Int, last: String?) {
        let entry = entry.renewed()
        var records: [DocumentRecord] = []
        try entry.store.readRows { view in
            try view.list(listing, in: entry.handle) { record in
                records.append(record)
                return true
            }
        }
        let visible = try entry.visible(records)
        if request.withDocuments { try await entry.grant(visible.map(\.id)) }
        let rows = try visible.map {
            try row(JSONText(canonical: .string($0.id)).description, $0, request, entry)
        }
        return (rows, records.count, records.last?.id)
    }

    private func rows(_ keys: [JSONElement], _ request: ListRequest, _ entry: Databases.Entry) async throws
        -> [Row]
    {
        let entry = entry.renewed()
        let records = try entry.store.readRows { view in
            try keys.map { key in try key.string.flatMap { try view.record($0, in: entry.handle) } }
        }
        if request.withDocuments {
            try await entry.grant(try entry.visible(records.compactMap(\.self)).map(\.id))
        }
        return try zip(keys, records).map { key, record in
            let text = JSONText(canonical: key).description
            guard let record, try entry.visible([record]).count == 1 else {
                return ("{\"key\":\(text),\"error\":\"not_found\"}", nil, "")
            }
            guard record.isDeleted else {
                return try self.row(text, record, request, entry)
            }
            let revision = try entry.branches(of: record)?.winner.id ?? record.revision
            let value = "{\"rev\":\"\(revision.text)\",\"deleted\":true}"
            return (
                "{\"id\":\(text),\"key\":\(text),\"value\":\(value)", nil,
                request.withDocuments ? ",\"doc\":null}" : "}"
            )
        }
    }

    private func row(
        _ id: String,
        _ record: DocumentRecord,
        _ request: ListRequest,
        _ entry: Databases.Entry
    ) throws -> Row {
        let start = "{\"id\":\(id),\"key\":\(id),\"value\":{\"rev\":\"\(record.revision.text)\"}"
        guard request.withDocuments, let branches = try entry.branches(of: record) else {
            return (start, nil, "}")
        }
        let document = DocumentRenderer(options: request.options, blobs: entry.store.blobs).render(
            branches.winner,
            of: record.id,
            in: branches
        )
        return (start + ",\"doc\":", document, "}")
    }

    private func write(
        _ rows: [Row],
        _ isFirst: inout Bool,
        _ entry: Databases.Entry,
        _ writer: inout any ResponseBodyWriter
    ) async throws {
        var text: [UInt8] = []
        let stream = ContentStream(blobs: entry.store.blobs)
        for row in rows {
            if !isFirst { text += Array(",\n".utf8) }
            isFirst = false
            text += Array(row.start.utf8)
            if let document = row.document { try await stream.add(document, to: &text, &writer) }
            text += Array(row.end.utf8)
        }
        if !text.isEmpty { try await writer.write(text) }
    }
}
