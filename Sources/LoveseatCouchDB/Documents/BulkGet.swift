import HTTPTypes
import HummingbirdCore
import LoveseatAssertions
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// `_bulk_get` (protocol/couchdb.md §4.6).
struct BulkGetResource: Resource {
    let server: CouchDBServer

    /// One entry of a request.
    private struct Wanted: Sendable {
        var id: String?
        var revision: Result<RevisionID, CouchDBError>?
        /// The revision as the client wrote it.
        var text = "undefined"
        var since: [RevisionID]?
        var error: CouchDBError?

        var named: [RevisionID] { if case .success(let revision)? = revision { [revision] } else { [] } }
    }

    /// The answer to an entry.
    private struct Found: Sendable {
        var id: JSONValue
        var items: [Result<RenderedDocument, Refusal>] = []

        /// The number of bytes, without attachments that are read when they are sent.
        var size: Int {
            items.reduce(0) { size, item in
                guard case .success(let document) = item else { return size }
                return size + document.textLength
            }
        }
    }

    private struct Refusal: Error, Sendable { let json: JSONValue }

    /// How many documents are read at a time, and how many bytes, but for the last document.
    private static let (pageCount, pageBytes) = (64, PacedWriter.maximumBytes)
    /// How many bytes the documents of an answer in parts may have, which is made before it is sent.
    private static let partsBytes = 64 << 20

    func bulkGet(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try Self.requireJSON(exchange)
        let wanted = try await withBody(exchange) { bytes in
            try await self.work(exchange, size: bytes.count, done: bytes.count) { try Self.wanted(bytes) }
        }
        try exchange.memory.reserve(wanted.count * MemoryLayout<Wanted>.stride)
        try await reserve(for: wanted, entry, exchange)
        if exchange.query.isSet("revs") {
            server.clients.note(.pull, entry, exchange, ReplicatingClients.Amount(read: wanted.count))
        }
        let accept = AcceptHeader(exchange.header("Accept"))
        let format = exchange.headers[.accept] == nil ? .json : accept.bulkGetFormat
        var options = DocumentOptions()
        options.withRevisions = exchange.query.isSet("revs")
        options.withAttachments = exchange.query.isSet("attachments")
        options.withEncoding = exchange.query.isSet("att_encoding_info")
        let isLatest = exchange.query.isSet("latest")
        guard format == .json else {
            return try await parts(wanted, options, isLatest, isMixed: format == .mixed, entry, exchange)
        }
        let (stream, chosen) = (ContentStream(blobs: entry.store.blobs), options)
        return .stream { writer in
            try await writer.write("{\"results\":[")
            var done = 0
            while done < wanted.count {
                let rest = wanted[done...]
                let (found, sent) = try await self.naming(exchange, entry, done: done) { names in
                    let renderer = DocumentRenderer(
                        options: chosen,
                        blobs: entry.store.blobs,
                        names: names
                    )
                    return try self.find(rest, renderer, isLatest, entry)
                }
                try await entry.grant(sent)
                try await Self.write(found, isFirst: done == 0, stream, &writer)
                done += found.count
            }
            try await writer.write("]}\n")
        }
    }

    /// Takes the memory for the largest document before one is read: each is held until the client has read what comes before it.
    private func reserve(for wanted: [Wanted], _ entry: Databases.Entry, _ exchange: Exchange) async throws {
        var (done, largest, last) = (0, 0, ExactText(""))
        while done < wanted.count {
            let page = wanted[done...].prefix(1_000)
            try await part(exchange, done: done) {
                try entry.store.readRows { view in
                    for id in page.lazy.compactMap(\.id).map({ ExactText($0) }) where id != last {
                        last = id
                        guard let size = try view.size(of: id.text, in: entry.handle) else { continue }
                        // Its text, the text of the page, and its copy for the connection.
                        largest = max(largest, size.decoded + 3 * size.all)
                    }
                }
            }
            done += page.count
        }
        try exchange.memory.reserve(largest)
    }

    private static func wanted(_ bytes: [UInt8]) throws -> [Wanted] {
        let body = try RequestJSON.parse(bytes, maximumValues: RequestJSON.maximumValues)
        guard body.kind == .object, let list = body["docs"] else {
            throw CouchDBError.badRequest("Missing JSON list of 'docs'.")
        }
        guard list.kind == .array else { throw CouchDBError.badRequest("'docs' must be a list") }
        try RequestJSON.checkCount(list, atMost: RequestJSON.maximumItems)
        return try list.items.map { element in
            var wanted = Wanted()
            guard element.kind == .object else {
                wanted.error = .badRequest("document must be a JSON object")
                return wanted
            }
            guard let id = element["id"] else {
                wanted.error = .badRequest("document id missed")
                return wanted
            }
            guard let id = id.string else { throw CouchDBError.badRequest("document id must be a string") }
            wanted.id = id
            do throws(CouchDBError) { try IncomingDocument.check(id) } catch { wanted.error = error }
            if let revision = element["rev"], !revision.isNull {
                wanted.text = revision.string ?? revision.value.description
                do throws(CouchDBError) {
                    wanted.revision = .success(try RevisionText.parse(wanted.text))
                } catch { wanted.error = error }
            }
            if let since = element["atts_since"], since.kind == .array {
                wanted.since = []
                for item in since.items {
                    do throws(CouchDBError) {
                        wanted.since?.append(try RevisionText.parse(item.string ?? ""))
                    } catch {
                        wanted.error = error
                        if wanted.text == "undefined" { wanted.text = item.string ?? "" }
                    }
                }
            }
            return wanted
        }
    }

    /// Finds the documents of the next entries: of one at least, and of as many as are read at a time. `sent`: those that the client gets.
    private func find(
        _ rest: ArraySlice<Wanted>,
        _ renderer: DocumentRenderer,
        _ isLatest: Bool,
        _ entry: Databases.Entry
    ) throws -> (found: [Found], sent: [String]) {
        let entry = entry.renewed()
        let records = try read(rest.prefix(Self.pageCount), entry)
        var sent: [String] = []
        // Revisions of one document are asked for one after the other.
        var last: (record: DocumentRecord, branches: DocumentBranches?, isWhole: Bool)?
        var (found, bytes): ([Found], Int) = ([], 0)
        for (wanted, record) in zip(rest, records) where bytes < Self.pageBytes {
            guard let id = wanted.id, wanted.error == nil else {
                found.append(Self.refused(wanted))
                continue
            }
            var options = renderer.options
            if options.withAttachments { options.attachmentsSince = wanted.since }
            let needed = options.neededAncestors(with: wanted.named)
            if let record {
                let needsLine = try entry.needsWholeLine(of: record, needed)
                if last.map({ $0.record !== record || (needsLine && !$0.isWhole) }) ?? true {
                    last = (
                        record, try server.caches.branches.branches(of: record, needed, in: entry), needsLine
                    )
                }
                if let branches = last?.branches, Self.lacks(wanted.named, branches) {
                    last = (record, try entry.branches(of: record, needed, withReplaced: true), needsLine)
                }
            }
            let branches = record == nil ? nil : last?.branches
            if branches != nil { sent.append(id) }
            let answer = self.answer(wanted, id, branches, renderer, isLatest)
            bytes += answer.size
            found.append(answer)
        }
        return (found, sent)
    }

    private func read(_ page: ArraySlice<Wanted>, _ entry: Databases.Entry) throws -> [DocumentRecord?] {
        try entry.store.readRows { view in
            var (records, bytes): ([DocumentRecord?], Int) = ([], 0)
            var last: DocumentRecord?
            for wanted in page where bytes < Self.pageBytes {
                guard wanted.error == nil, let id = wanted.id else {
                    records.append(nil)
                    continue
                }
                if !(last?.id.isExactly(id) ?? false) {
                    last = try view.record(id, in: entry.handle)
                    bytes += last?.size.all ?? 0
                }
                records.append(last)
            }
            return records
        }
    }

    private static func refused(_ wanted: Wanted) -> Found {
        let error = wanted.error ?? .missing
        let id = wanted.id.map { JSONValue.string($0) } ?? .null
        let json: JSONValue = [
            "id": id, "rev": wanted.text == "undefined" ? .null : .string(wanted.text),
            "error": .string(error.error),
            "reason": .string(error.reason),
        ]
        return Found(id: id, items: [.failure(Refusal(json: json))])
    }

    private func answer(
        _ wanted: Wanted,
        _ id: String,
        _ branches: DocumentBranches?,
        _ renderer: DocumentRenderer,
        _ isLatest: Bool
    ) -> Found {
        var found = Found(id: .string(id))
        var options = renderer.options
        // Without the flag CouchDB's peers discard what comes.
        if options.withAttachments { options.attachmentsSince = wanted.since }
        let renderer = DocumentRenderer(
            options: options,
            form: renderer.form,
            blobs: renderer.blobs,
            names: renderer.names
        )
        var results: [Result<DocumentBranch, MissingRevision>] = []
        if case .success(let revision)? = wanted.revision {
            results = DocumentResource.found(revision, in: branches, isLatest: isLatest)
        } else if let branches {
            results = branches.leaves.map { .success($0) }
        } else {
            results = [.failure(MissingRevision(text: wanted.text))]
        }
        for result in results {
            switch result {
            case .success(let branch):
                guard let branches else {
                    impossible("revision \(branch.id) is found in no document")
                    continue
                }
                found.items.append(.success(renderer.render(branch, of: id, in: branches)))
            case .failure(let missing):
                found.items.append(
                    .failure(
                        Refusal(json: [
                            "id": .string(id), "rev": .string(missing.text), "error": "not_found",
                            "reason": "missing",
                        ])
                    )
                )
            }
        }
        return found
    }

    private static func write(
        _ page: [Found],
        isFirst: Bool,
        _ stream: ContentStream,
        _ writer: inout any ResponseBodyWriter
    ) async throws {
        var text: [UInt8] = []
        for (index, found) in page.enumerated() {
            if index > 0 || !isFirst { text.append(UInt8(ascii: ",")) }
            text += Array("{\"id\":\(found.id.description),\"docs\":[".utf8)
            for (index, item) in found.items.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                switch item {
                case .failure(let refusal): text += Array("{\"error\":\(refusal.json.description)}".utf8)
                case .success(let document):
                    text += Array("{\"ok\":".utf8)
                    try await stream.add(document, to: &text, &writer)
                    text.append(UInt8(ascii: "}"))
                }
            }
            text += Array("]}".utf8)
        }
        try await writer.write(text)
    }

    // MARK: In parts

    private func parts(
        _ wanted: [Wanted],
        _ options: DocumentOptions,
        _ isLatest: Bool,
        isMixed: Bool,
        _ entry: Databases.Entry,
        _ exchange: Exchange
    ) async throws -> Reply {
        guard wanted.count <= 1_000 else {
            throw CouchDBError(413, "too_large", "ask for at most 1000 documents in parts")
        }
        var generator = SystemRandomNumberGenerator()
        var layout = try MultipartReply.Layout(
            isMixed ? .mixed : .related,
            boundary: MultipartBoundary.random(using: &generator)
        )
        var (done, bytes) = (0, 0)
        while done < wanted.count {
            let rest = wanted[done...]
            let (page, sent) = try await naming(exchange, entry, done: done) { names in
                let renderer = DocumentRenderer(
                    options: options,
                    form: .parts,
                    blobs: entry.store.blobs,
                    names: names
                )
                return try find(rest, renderer, isLatest, entry)
            }
            try await entry.grant(sent)
            done += page.count
            let size = page.reduce(0) { $0 + $1.size }
            bytes += size
            try exchange.memory.reserve(size)
            guard bytes <= Self.partsBytes else {
                throw CouchDBError(
                    413,
                    "too_large",
                    "the documents do not fit in memory: ask for fewer at once"
                )
            }
            try Self.append(page, to: &layout)
        }
        return MultipartReply.reply(layout, blobs: entry.store.blobs)
    }

    private static func append(_ page: [Found], to layout: inout MultipartReply.Layout) throws {
        for found in page {
            for item in found.items {
                switch item {
                case .failure(let refusal):
                    let text = JSONText(canonical: refusal.json).bytes
                    try layout.append(.jsonError, .text(text), length: text.count)
                case .success(let document):
                    var headers = PartHeaders()
                    if !document.parts.isEmpty {
                        try headers.append("X-Doc-Id", HeaderValue.safe(found.id.string ?? ""))
                    }
                    try MultipartReply.append(document, headers, to: &layout)
                }
            }
        }
    }
}
