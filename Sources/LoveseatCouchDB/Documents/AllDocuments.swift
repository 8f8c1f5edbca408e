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
        var keys: JSONElement?
        var withDocuments = false
        var withSequence = false
        var options = DocumentOptions()
        /// Whether nothing can be found.
        var isEmpty = false
        /// The maximum number of bytes that are read at a time, but for the last row. They are kept until the client has read them, if they
        /// are in the answer.
        var pageBytes: Int { withDocuments ? PacedWriter.maximumBytes : 1 << 20 }

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
                try RequestJSON.checkCount(keys, atMost: RequestJSON.maximumItems)
                self.keys = keys
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
            try await self.list(request, entry, exchange, &writer)
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
        try exchange.memory.reserve(requests.count * MemoryLayout<ListRequest>.stride)
        let all = requests
        return .stream { writer in
            try await writer.write("{\"results\":[")
            for (index, request) in all.enumerated() {
                if index > 0 { try await writer.write(",") }
                try await self.list(request, entry, exchange, &writer)
            }
            try await writer.write("]}\n")
        }
    }

    /// The maximum number of rows that are read at a time.
    private static let pageRows = 200

    private func list(
        _ request: ListRequest,
        _ entry: Databases.Entry,
        _ exchange: Exchange,
        _ writer: inout any ResponseBodyWriter
    )
        async throws
    {
        try await writer.write(try head(request, entry))
        var (isFirst, done) = (true, 0)
        if let keys = request.keys {
            var chosen = KeyQueue(keys, request.listing)
            while chosen.next != nil {
                let (rows, sent, rest) = try await naming(exchange, entry, done: done) { names in
                    var rest = chosen
                    let found = try read(&rest, request.pageBytes, entry)
                    let (rows, sent) = try self.rows(found, request, entry, names)
                    return (rows, sent, rest)
                }
                chosen = rest
                done += rows.count
                try await entry.grant(sent)
                try await write(rows, &isFirst, entry, &writer)
            }
        } else if !request.isEmpty {
            var listing = request.listing
            var left = listing.limit
            // Rows that the client may not see are not skipped by the database.
            var toSkip = entry.access == nil ? 0 : listing.skip
            if entry.access != nil { listing.skip = 0 }
            while left > 0 {
                listing.limit = entry.access == nil ? min(left, Self.pageRows) : Self.pageRows
                let page = listing
                let (found, sent, last) = try await naming(exchange, entry, done: done) { names in
                    try self.page(page, request, entry, names)
                }
                done += Self.pageRows
                try await entry.grant(sent)
                let rows = Array(found.dropFirst(toSkip).prefix(left))
                toSkip -= min(toSkip, found.count)
                try await write(rows, &isFirst, entry, &writer)
                left -= rows.count
                guard let last else { break }
                listing.first = last
                listing.includesFirst = false
                listing.skip = 0
            }
        }
        try await writer.write("\n]}")
    }

    /// The keys of a request, in the order of their rows.
    private struct KeyQueue {
        private var items: JSONElement.Items?
        /// The keys in descending order, the first one last; empty otherwise.
        private var reversed: [JSONElement] = []
        private var left: Int
        private(set) var next: JSONElement?

        init(_ keys: JSONElement, _ listing: StoreReadTransaction.Listing) {
            left = listing.limit
            let skipped = min(listing.skip, keys.count)
            if listing.isDescending {
                reversed = Array(keys.items.prefix(keys.count - skipped))
            } else {
                items = keys.items
                for _ in 0..<skipped { _ = items?.next() }
            }
            advance()
        }

        mutating func advance() {
            next = left > 0 ? reversed.popLast() ?? items?.next() : nil
            if left > 0 { left -= 1 }
        }
    }

    /// Reads the documents of the next keys.
    private func read(_ keys: inout KeyQueue, _ pageBytes: Int, _ entry: Databases.Entry) throws -> [(
        key: JSONElement, record: DocumentRecord?
    )] {
        try entry.store.readRows { view in
            var found: [(key: JSONElement, record: DocumentRecord?)] = []
            var bytes = 0
            while let key = keys.next, found.count < Self.pageRows, bytes < pageBytes {
                let record = try key.string.flatMap { try view.record($0, in: entry.handle) }
                bytes += record?.size.all ?? 0
                found.append((key, record))
                keys.advance()
            }
            return found
        }
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

    /// `sent`: the documents that are in the rows. `last`: the ID after which there may be more.
    private func page(
        _ listing: StoreReadTransaction.Listing,
        _ request: ListRequest,
        _ entry: Databases.Entry,
        _ names: ContentNames
    ) throws -> (rows: [Row], sent: [String], last: String?) {
        let entry = entry.renewed()
        var (records, bytes): ([DocumentRecord], Int) = ([], 0)
        try entry.store.readRows { view in
            try view.list(listing, in: entry.handle) { record in
                records.append(record)
                bytes += record.size.all
                return bytes < request.pageBytes
            }
        }
        let isLast = records.count < listing.limit && bytes < request.pageBytes
        let visible = try entry.visible(records)
        let rows = try visible.map {
            try row(JSONText(canonical: .string($0.id)).description, $0, request, entry, names)
        }
        return (rows, request.withDocuments ? visible.map(\.id) : [], isLast ? nil : records.last?.id)
    }

    private func rows(
        _ found: [(key: JSONElement, record: DocumentRecord?)],
        _ request: ListRequest,
        _ entry: Databases.Entry,
        _ names: ContentNames
    ) throws -> (rows: [Row], sent: [String]) {
        let entry = entry.renewed()
        let visible = request.withDocuments ? try entry.visible(found.compactMap(\.record)) : []
        let rows = try found.map { key, record -> Row in
            let text = JSONText(canonical: key).description
            guard let record, try entry.visible([record]).count == 1 else {
                return ("{\"key\":\(text),\"error\":\"not_found\"}", nil, "")
            }
            guard record.isDeleted else {
                return try self.row(text, record, request, entry, names)
            }
            let revision = try entry.branches(of: record)?.winner.id ?? record.revision
            let value = "{\"rev\":\"\(revision.text)\",\"deleted\":true}"
            return (
                "{\"id\":\(text),\"key\":\(text),\"value\":\(value)", nil,
                request.withDocuments ? ",\"doc\":null}" : "}"
            )
        }
        return (rows, visible.map(\.id))
    }

    private func row(
        _ id: String,
        _ record: DocumentRecord,
        _ request: ListRequest,
        _ entry: Databases.Entry,
        _ names: ContentNames
    ) throws -> Row {
        let start = "{\"id\":\(id),\"key\":\(id),\"value\":{\"rev\":\"\(record.revision.text)\"}"
        guard request.withDocuments, let branches = try entry.branches(of: record) else {
            return (start, nil, "}")
        }
        let document = DocumentRenderer(options: request.options, blobs: entry.store.blobs, names: names)
            .render(branches.winner, of: record.id, in: branches)
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
