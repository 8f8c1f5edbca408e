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
    }

    /// The answer to an entry.
    private struct Found: Sendable {
        var id: JSONValue
        var items: [Result<RenderedDocument, Refusal>] = []
    }

    private struct Refusal: Error, Sendable { let json: JSONValue }

    /// How many documents are read at a time.
    private static let page = 64

    func bulkGet(_ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        try Self.requireJSON(exchange)
        let wanted = try await withBody(exchange) { bytes in
            try await self.work(exchange, size: bytes.count, done: bytes.count) { try Self.wanted(bytes) }
        }
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
            let renderer = DocumentRenderer(options: options, form: .parts, blobs: entry.store.blobs)
            return try await parts(wanted, renderer, isLatest, isMixed: format == .mixed, entry)
        }
        let renderer = DocumentRenderer(options: options, blobs: entry.store.blobs)
        let stream = ContentStream(blobs: entry.store.blobs)
        return .stream { writer in
            try await writer.write("{\"results\":[")
            for start in stride(from: 0, to: wanted.count, by: Self.page) {
                let page = wanted[start..<min(start + Self.page, wanted.count)]
                let found = try await self.find(Array(page), renderer, isLatest, entry)
                try await Self.write(found, isFirst: start == 0, stream, &writer)
            }
            try await writer.write("]}\n")
        }
    }

    private static func wanted(_ bytes: [UInt8]) throws -> [Wanted] {
        let body = try RequestJSON.parse(bytes)
        guard body.kind == .object, let list = body["docs"] else {
            throw CouchDBError.badRequest("Missing JSON list of 'docs'.")
        }
        guard list.kind == .array else { throw CouchDBError.badRequest("'docs' must be a list") }
        try RequestJSON.checkCount(list, atMost: 100_000)
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

    private func find(
        _ page: [Wanted],
        _ renderer: DocumentRenderer,
        _ isLatest: Bool,
        _ entry: Databases.Entry
    ) async throws -> [Found] {
        let entry = entry.renewed()
        let records = try entry.store.readRows { view in
            var last: DocumentRecord?
            return try page.map { wanted in
                guard wanted.error == nil, let id = wanted.id else { return nil as DocumentRecord? }
                if let last, last.id.isExactly(id) { return last }
                last = try view.record(id, in: entry.handle)
                return last
            }
        }
        var sent: [String] = []
        // Revisions of one document are asked for one after the other.
        var last: (record: DocumentRecord, branches: DocumentBranches?)?
        let found = try zip(page, records).map { wanted, record in
            guard let id = wanted.id, wanted.error == nil else { return Self.refused(wanted) }
            if let record, last.map({ $0.record !== record }) ?? true {
                last = (record, try server.caches.branches.branches(of: record, in: entry))
            }
            if let record, case .success(let revision)? = wanted.revision, let branches = last?.branches,
                Self.lacks([revision], branches)
            {
                last = (record, try entry.branches(of: record, withReplaced: true))
            }
            let branches = record == nil ? nil : last?.branches
            if branches != nil { sent.append(id) }
            return self.answer(wanted, id, branches, renderer, isLatest)
        }
        try await entry.grant(sent)
        return found
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
        let renderer = DocumentRenderer(options: options, form: renderer.form, blobs: renderer.blobs)
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
        _ renderer: DocumentRenderer,
        _ isLatest: Bool,
        isMixed: Bool,
        _ entry: Databases.Entry
    ) async throws -> Reply {
        guard wanted.count <= 1_000 else {
            throw CouchDBError(413, "too_large", "ask for at most 1000 documents in parts")
        }
        var generator = SystemRandomNumberGenerator()
        var layout = try MultipartReply.Layout(
            isMixed ? .mixed : .related,
            boundary: MultipartBoundary.random(using: &generator)
        )
        for found in try await find(wanted, renderer, isLatest, entry) {
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
        return MultipartReply.reply(layout, blobs: entry.store.blobs)
    }
}
