import HummingbirdCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage
import NIOCore

/// Writes a changes feed. Rows are read a page at a time, so that a slow client holds neither a snapshot nor much memory.
struct ChangesFeed: Sendable {
    let request: ChangesRequest
    let entry: Databases.Entry
    let resource: ChangesResource
    let exchange: Exchange

    /// The parts that all feeds of the server share.
    private var shared: ChangesPages { resource.server.caches.pages }

    /// The maximum numbers of rows of a page, and of bytes that are read for it, but for its last row. They are kept until the client has read
    /// them, if they are in the feed.
    private static let pageRows = 500
    private var pageBytes: Int { request.withDocuments ? PacedWriter.maximumBytes : 1 << 20 }

    /// A part of the feed, as it is written.
    private struct Page: Sendable {
        var text: [UInt8] = []
        /// The documents whose attachments are read from their blobs, each with its place in the text.
        var documents: [(offset: Int, document: RenderedDocument)] = []
        /// The documents that are in it with their content.
        var ids: [String] = []
        var count = 0
        /// How far it was read, passed-over rows included.
        var through: UInt64
        var isLast = true
    }

    // MARK: Reading

    /// Makes a page, when it is its turn. `isFirst`: nothing was written before it. `done`: how many pages were made one after the other.
    private func page(after position: UInt64, limit: Int, isFirst: Bool = true, done: Int) async throws
        -> Page
    {
        let page = try await resource.naming(exchange, entry, done: done) { names in
            try self.page(after: position, limit: limit, isFirst: isFirst, names)
        }
        if request.withDocuments { try await entry.grant(page.ids) }
        return page
    }

    private func page(after position: UInt64, limit: Int, isFirst: Bool, _ names: ContentNames) throws -> Page
    {
        var page = Page(through: position)
        let entry = entry.renewed()
        var records: [DocumentRecord] = []
        try entry.store.readRows { view in
            guard view.contains(entry.handle) else { throw CouchDBError.noDatabase }
            var bytes = 0
            var seen = 0
            func add(_ record: DocumentRecord) throws -> Bool {
                guard records.count < min(limit, Self.pageRows), bytes < pageBytes, seen < 20_000
                else {
                    page.isLast = false
                    return false
                }
                seen += 1
                page.through = record.sequence
                guard request.filter.passes(record) else { return true }
                bytes += record.size.all + 100
                records.append(record)
                return true
            }
            if request.isDescending {
                try view.changesBackwards(in: entry.handle, before: position, visit: add)
            } else {
                // Each row is read as it is at that moment. A change that is saved after this comes with the next page, even if this page
                // shows it already.
                let last = try view.lastSequence(entry.handle)
                try view.changes(in: entry.handle, since: position, visit: add)
                if page.isLast { page.through = max(page.through, last) }
            }
        }
        // The policy and the rendering come after the transaction.
        let visible = try entry.visible(records)
        for record in visible {
            if request.feed.hasSeparators, page.count > 0 || !isFirst {
                page.text += ",\n".utf8
            }
            try append(record, entry, names, to: &page)
            page.count += 1
        }
        if request.withDocuments { page.ids = visible.map(\.id) }
        return page
    }

    private func append(
        _ record: DocumentRecord,
        _ entry: Databases.Entry,
        _ names: ContentNames,
        to page: inout Page
    ) throws {
        if request.feed == .eventsource { page.text += "data: ".utf8 }
        page.text += "{\"seq\":".utf8
        page.text += entry.sequenceText(record.sequence).utf8
        page.text += ",\"id\":".utf8
        page.text += JSONText(canonical: .string(record.id)).bytes
        page.text += ",\"changes\":[".utf8
        // If several leaves are deletions, CouchDB's peers choose another winner among them.
        let needsTree =
            ((request.allLeaves || record.isDeleted) && record.encodedTree != nil) || request.withDocuments
        let branches = needsTree ? try entry.branches(of: record) : nil
        append(branches?.winner.id ?? record.revision, to: &page)
        if request.allLeaves, let branches {
            for leaf in branches.leaves.dropFirst() {
                page.text.append(UInt8(ascii: ","))
                append(leaf.id, to: &page)
            }
        }
        page.text.append(UInt8(ascii: "]"))
        if record.isDeleted { page.text += ",\"deleted\":true".utf8 }
        if request.withDocuments, let branches {
            page.text += ",\"doc\":".utf8
            let document = DocumentRenderer(options: request.options, blobs: entry.store.blobs, names: names)
                .render(branches.winner, of: record.id, in: branches)
            if document.isPlain {
                page.text += document.bytes
            } else {
                page.documents.append((page.text.count, document))
            }
        }
        page.text.append(UInt8(ascii: "}"))
        switch request.feed {
        case .normal, .longpoll: break
        case .continuous: page.text.append(UInt8(ascii: "\n"))
        case .eventsource: page.text += "\nid: \(entry.sequenceName(record.sequence))\n\n".utf8
        }
    }

    private func append(_ revision: RevisionID, to page: inout Page) {
        page.text += "{\"rev\":\"".utf8
        page.text += revision.text.utf8
        page.text += "\"}".utf8
    }

    private func pending(after sequence: UInt64) throws -> Int {
        guard request.filter.countsRest, !request.isDescending, entry.access == nil else { return 0 }
        return try entry.store.readRows { try $0.changeCount(in: entry.handle, after: sequence) }
    }

    // MARK: Writing

    private func write(_ page: Page, to writer: inout any ResponseBodyWriter) async throws {
        var written = 0
        let stream = ContentStream(blobs: entry.store.blobs)
        for (offset, document) in page.documents {
            try await writer.write(page.text[written..<offset])
            try await stream.write(document, to: &writer)
            written = offset
        }
        if written < page.text.count { try await writer.write(page.text[written...]) }
    }

    /// Writes the next part of a feed that goes on. Clients that follow in the same form share its text.
    private func writeNext(
        after position: UInt64,
        limit: Int,
        done: Int,
        to writer: inout any ResponseBodyWriter
    ) async throws -> (count: Int, through: UInt64, isLast: Bool) {
        let key = sharedKey(at: position, limit: limit)
        let version = entry.store.changes.version
        if let found = key.flatMap({ shared.page($0, version: version) }) {
            if found.text.readableBytes > 0 { try await writer.write(found.text) }
            return (found.count, found.through, found.isLast)
        }
        let page = try await page(after: position, limit: limit, done: done)
        guard let key, page.documents.isEmpty else {
            try await write(page, to: &writer)
            return (page.count, page.through, page.isLast)
        }
        let text = ByteBuffer(bytes: page.text)
        shared.keep(
            ChangesPages.Page(text: text, count: page.count, through: page.through, isLast: page.isLast),
            as: key,
            version: version
        )
        if text.readableBytes > 0 { try await writer.write(text) }
        return (page.count, page.through, page.isLast)
    }

    /// The key under which a part is shared; nil if it is for this client alone.
    private func sharedKey(at position: UInt64, limit: Int) -> ChangesPages.Key? {
        guard entry.access == nil, !request.isDescending, limit >= Self.pageRows, case .none = request.filter,
            !exchange.wantsStoredNames
        else { return nil }
        return ChangesPages.Key(
            collection: entry.handle.number,
            position: position,
            isEvents: request.feed == .eventsource,
            allLeaves: request.allLeaves,
            withDocuments: request.withDocuments,
            options: request.options
        )
    }

    private var start: UInt64 {
        guard request.isDescending else { return request.since }
        return UInt64(Int64.max)
    }

    /// Writes everything there is.
    ///
    /// - Returns: the number of rows, and how far they reach.
    private func writeRows(
        after position: UInt64,
        to writer: inout any ResponseBodyWriter
    ) async throws -> (count: Int, through: UInt64) {
        var (position, count, done) = (position, 0, 0)
        while count < request.limit {
            let rest = request.limit - count
            let page = try await page(after: position, limit: rest, isFirst: count == 0, done: done)
            done += 1
            try await write(page, to: &writer)
            count += page.count
            position = page.through
            if page.isLast { break }
        }
        return (count, position)
    }

    func writeAll(to writer: inout any ResponseBodyWriter) async throws {
        try await writer.write("{\"results\":[\n")
        let (_, through) = try await writeRows(after: start, to: &writer)
        try await finish(through, to: &writer)
    }

    private func finish(_ through: UInt64, to writer: inout any ResponseBodyWriter) async throws {
        let last = through == UInt64(Int64.max) ? entry.store.lastSequence(entry.handle) : through
        // The feed ends normally even if the database was closed or deleted. The number is for people only.
        let pending = (try? pending(after: last)) ?? 0
        try await writer.write("\n],\n\"last_seq\":\(entry.sequenceText(last)),\"pending\":\(pending)}\n\n")
    }

    /// Waits for the first row.
    func writeLongpoll(to writer: inout any ResponseBodyWriter, _ channel: any Channel) async throws {
        let events = FeedEvents(entry, channel)
        defer { events.end() }
        try await writer.write("{\"results\":[\n")
        var position = start
        var (count, through) = try await writeRows(after: position, to: &writer)
        if !request.isDescending, request.limit > 0 || count == 0 {
            var iterator = events.stream.makeAsyncIterator()
            events.schedule(request)
            while count == 0 {
                position = through
                switch await iterator.next() {
                case .changed: (count, through) = try await writeRows(after: position, to: &writer)
                case .tick:
                    // The tick may have replaced the event of a change.
                    (count, through) = try await writeRows(after: position, to: &writer)
                    guard count == 0 else { break }
                    guard request.heartbeat != nil else { return try await finish(through, to: &writer) }
                    try await writer.write("\n")
                    events.schedule(request)
                case nil: return try await finish(through, to: &writer)
                }
            }
        }
        try await finish(through, to: &writer)
    }

    /// Writes rows until the client goes, the limit is reached, or nothing happens for long.
    func writeContinuous(to writer: inout any ResponseBodyWriter, _ channel: any Channel) async throws {
        let events = FeedEvents(entry, channel)
        defer { events.end() }
        let isEvents = request.feed == .eventsource
        try await writer.write(ByteBuffer())
        var iterator = events.stream.makeAsyncIterator()
        var (position, count) = (start, 0)
        feed: while true {
            var (hasMore, done) = (count < request.limit, 0)
            while hasMore {
                // Nothing is made for a client that does not read.
                try await writer.write(ByteBuffer())
                let rest = request.limit - count
                let page: (count: Int, through: UInt64, isLast: Bool)
                do { page = try await writeNext(after: position, limit: rest, done: done, to: &writer) } catch
                {
                    // A database that was closed or deleted ends the feed well: a client asks again from its last row. Anything else cuts it.
                    guard CouchDBServer.isEndOfDatabase(error) else { throw error }
                    break feed
                }
                count += page.count
                done += 1
                position = page.through
                hasMore = !page.isLast && count < request.limit
            }
            guard count < request.limit, !request.isDescending else { break }
            events.schedule(request)
            switch await iterator.next() {
            case .changed: continue
            case .tick:
                guard request.heartbeat != nil else { break feed }
                try await writer.write(isEvents ? "event: heartbeat\ndata: \n\n" : "\n")
            case nil: break feed
            }
        }
        if !isEvents {
            let last = position == UInt64(Int64.max) ? entry.store.lastSequence(entry.handle) : position
            // As at the end of the other feeds.
            let pending = (try? pending(after: last)) ?? 0
            try await writer.write("{\"last_seq\":\(entry.sequenceText(last)),\"pending\":\(pending)}\n")
        }
    }
}
