import HummingbirdCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Single documents (protocol/couchdb.md §4.1).
struct DocumentResource: Resource {
    let server: CouchDBServer

    func answer(_ id: String, _ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply {
        switch exchange.method {
        case "PUT": try await putDocument(id, entry, exchange)
        case "DELETE": try await deleteDocument(id, entry, exchange)
        case "COPY": try await copyDocument(id, entry, exchange)
        default: try await document(id, entry, exchange)
        }
    }

    /// Functions of design documents, which are stored and not run.
    func designFunction(_ path: Endpoint.DocumentPath, _ entry: Databases.Entry, _ exchange: Exchange)
        async throws -> Reply
    {
        let (id, rest, function) = (path.id, path.rest, path.rest.first ?? "")
        let known: Set = ["_view", "_show", "_list", "_update", "_rewrite", "_info", "_search"]
        guard known.contains(function) else { throw CouchDBError.missing }
        guard let (branches, _) = try await branches(of: id, in: entry, for: exchange),
            !branches.winner.isDeleted
        else {
            throw CouchDBError.missing
        }
        if function == "_view", rest.count > 1, let body = branches.winner.body,
            JSONElement(body)["views"]?[rest[1]] == nil
        {
            throw CouchDBError.notFound("missing_named_view")
        }
        throw CouchDBError.notImplemented(
            "this listener stores design documents, and does not run their functions"
        )
    }

    private func document(_ id: String, _ entry: Databases.Entry, _ exchange: Exchange) async throws -> Reply
    {
        let query = exchange.query
        var options = try DocumentOptions(query)
        if let text = query["open_revs"], text != "[]" {
            return try await openRevisions(id, text, options, entry, exchange)
        }
        let named = try query["rev"].map { try RevisionText.parse($0) }
        let revisions = named.map { [$0] } ?? []
        let needed = options.neededAncestors(with: revisions)
        guard
            var (branches, sequence) = try await branches(
                of: id,
                with: revisions,
                needed,
                in: entry,
                for: exchange
            )
        else {
            throw CouchDBError.missing
        }
        let branch: DocumentBranch
        if let revision = named {
            guard let found = try found(revision, branches, isLatest: query.isSet("latest")) else {
                throw CouchDBError.missing
            }
            branch = found
            (options.withRevisionInfo, options.withConflicts) = (false, false)
            (options.withDeletedConflicts, options.withSequence) = (false, false)
        } else {
            branch = branches.winner
            guard !branch.isDeleted else { throw CouchDBError.deleted }
            if options.withRevisionInfo,
                let whole = try await self.branches(
                    of: id,
                    with: branch.history,
                    .all,
                    in: entry,
                    for: exchange
                )
            {
                (branches, sequence) = whole
            }
        }
        let accept = AcceptHeader(exchange.header("Accept"))
        let isMultipart =
            (options.withAttachments || options.attachmentsSince != nil) && accept.documentFormat == .related
        let rendered = try await naming(exchange, entry) { names in
            DocumentRenderer(
                options: options,
                form: isMultipart ? .parts : .inline,
                blobs: entry.store.blobs,
                names: names
            ).render(branch, of: id, in: branches, sequence: entry.sequence(sequence))
        }
        try exchange.memory.reserve(rendered.textLength)
        try await entry.grant([id])
        let reply: Reply
        if isMultipart, !rendered.parts.isEmpty {
            reply = try related(rendered, entry)
        } else {
            reply = answer(rendered, entry)
        }
        let hasMore =
            options.dependsOnMore
            && (options.withRevisionInfo || options.withSequence || branches.leaves.count > 1)
        return hasMore ? reply : reply.revalidated(branch.id.text, for: exchange)
    }

    /// A revision with its content, or the leaf that came after it.
    private func found(_ id: RevisionID, _ branches: DocumentBranches, isLatest: Bool) throws
        -> DocumentBranch?
    {
        if isLatest, let leaf = branches.leaves(above: id).first { return leaf }
        return branches.revision(id).flatMap { $0.body == nil ? nil : $0 }
    }

    func answer(_ document: RenderedDocument, _ entry: Databases.Entry) -> Reply {
        if document.isPlain { return .json(200, bytes: document.bytes) }
        let stream = ContentStream(blobs: entry.store.blobs)
        return .stream { writer in
            try await stream.write(document, to: &writer)
            try await writer.write("\n")
        }
    }

    /// A document with its attachments as parts (protocol/couchdb.md §6.3).
    private func related(_ document: RenderedDocument, _ entry: Databases.Entry) throws -> Reply {
        let layout = try MultipartReply.related(document)
        return MultipartReply.reply(layout, blobs: entry.store.blobs)
    }

    // MARK: Open revisions

    private func openRevisions(
        _ id: String,
        _ text: String,
        _ options: DocumentOptions,
        _ entry: Databases.Entry,
        _ exchange: Exchange
    ) async throws -> Reply {
        let named = text == "all" ? [] : try exchange.query.revisions("open_revs") ?? []
        let needed = options.neededAncestors(with: named)
        let branches = try await branches(of: id, with: named, needed, in: entry, for: exchange)?.0
        let found: [Result<DocumentBranch, MissingRevision>]
        if text == "all" {
            guard let branches else { throw CouchDBError.missing }
            found = branches.leaves.map { .success($0) }
        } else {
            let isLatest = exchange.query.isSet("latest")
            var (seen, sent): (Set<RevisionID>, Set<RevisionID>) = ([], [])
            found = named.filter { seen.insert($0).inserted }.flatMap { revision in
                // The latest revisions of two that are named may be the same.
                Self.found(revision, in: branches, isLatest: isLatest).filter { result in
                    guard case .success(let branch) = result else { return true }
                    return sent.insert(branch.id).inserted
                }
            }
        }
        // The text of one revision is there at a time, and its copy for the connection.
        let largest = found.map { (try? $0.get().body?.bytes.count) ?? 0 }.max() ?? 0
        try exchange.memory.reserve(2 * largest)
        if branches != nil { try await entry.grant([id]) }
        if options.withRevisions {
            server.clients.note(.pull, entry, exchange, ReplicatingClients.Amount(read: 1))
        }
        let accept = AcceptHeader(exchange.header("Accept"))
        let isMultipart = accept.openRevisionsFormat == .mixed
        var options = options
        (options.withRevisionInfo, options.withConflicts) = (false, false)
        (options.withDeletedConflicts, options.withSequence) = (false, false)
        // In parts the content always comes.
        if isMultipart, options.attachmentsSince == nil { options.withAttachments = true }
        let chosen = options
        /// Renders an item when it is its turn: a document may have thousands of leaves.
        @Sendable func rendered(_ place: Int, done: Int) async throws -> Result<
            RenderedDocument, MissingRevision
        > {
            try await self.naming(exchange, entry, done: done) { names in
                let renderer = DocumentRenderer(
                    options: chosen,
                    form: isMultipart ? .parts : .inline,
                    blobs: entry.store.blobs,
                    names: names
                )
                return found[place].flatMap { branch in
                    guard let branches else { return .failure(MissingRevision(text: branch.id.text)) }
                    return .success(renderer.render(branch, of: id, in: branches))
                }
            }
        }
        if isMultipart {
            // The headers of the answer have its length, so that all texts are made before it is sent. Beyond the first megabyte they are
            // not kept, but made again.
            var (layout, bytes) = (try MultipartReply.mixed(), 0)
            for place in found.indices {
                switch try await rendered(place, done: bytes) {
                case .failure(let missing): try MultipartReply.append(missing, to: &layout)
                case .success(let document):
                    let count = document.textLength
                    bytes += count
                    if bytes <= 1 << 20 { try exchange.memory.reserve(count) }
                    try MultipartReply.append(document, later: bytes > 1 << 20 ? place : nil, to: &layout)
                }
            }
            return MultipartReply.reply(layout, blobs: entry.store.blobs) { place in
                try await rendered(place, done: .max).get().bytes
            }
        }
        let stream = ContentStream(blobs: entry.store.blobs)
        return .stream { writer in
            try await writer.write("[")
            var done = 0
            for place in found.indices {
                if place > 0 { try await writer.write(",") }
                switch try await rendered(place, done: done) {
                case .failure(let missing): try await writer.write(missing.json.bytes)
                case .success(let document):
                    done += document.textLength
                    try await writer.write("{\"ok\":")
                    try await stream.write(document, to: &writer)
                    try await writer.write("}")
                }
            }
            try await writer.write("]\n")
        }
    }

    /// The revisions to send for one that was asked for.
    static func found(_ revision: RevisionID, in branches: DocumentBranches?, isLatest: Bool) -> [Result<
        DocumentBranch, MissingRevision
    >] {
        if let branches {
            let latest = isLatest ? branches.leaves(above: revision) : []
            if !latest.isEmpty { return latest.map { .success($0) } }
            if let known = branches.revision(revision), known.body != nil { return [.success(known)] }
        }
        return [.failure(MissingRevision(text: revision.text))]
    }
}

/// Documents, as several resources read them.
extension Resource {
    /// A document's leaves, and its sequence. `revisions`: those whose contents are needed, whether or not they were replaced.
    ///
    /// A document may have a thousand large leaves. The request takes the memory for them before they are read, and keeps it until its answer
    /// was sent.
    ///
    /// - Throws: `service_unavailable` if all requests together hold too much.
    func branches(
        of id: String,
        with revisions: [RevisionID] = [],
        _ needed: NeededAncestors? = nil,
        in entry: Databases.Entry,
        for exchange: Exchange
    ) async throws -> (DocumentBranches, UInt64)? {
        guard let size = try entry.store.readRows({ try $0.size(of: id, in: entry.handle) }) else {
            return nil
        }
        try exchange.memory.reserve(size.decoded)
        let found = try await work(exchange, size: size.all) {
            try branches(of: id, with: revisions, needed ?? .named(revisions), in: entry)
        }
        guard let found else { return nil }
        // Each leaf has its ancestors, and most of them are the same.
        let ancestors = found.0.leaves.reduce(0) { $0 + $1.history.count }
        try exchange.memory.reserve(ancestors * MemoryLayout<RevisionID>.stride)
        return found
    }

    private func branches(
        of id: String,
        with revisions: [RevisionID],
        _ needed: NeededAncestors,
        in entry: Databases.Entry
    ) throws -> (DocumentBranches, UInt64)? {
        func read() throws -> DocumentRecord? {
            try entry.store.readRows { try $0.record(id, in: entry.handle) }
        }
        guard let record = try read(),
            let found = try server.caches.branches.branches(of: record, needed, in: entry)
        else { return nil }
        guard Self.lacks(revisions, found), let record = try read(),
            let whole = try entry.branches(of: record, needed, withReplaced: true)
        else { return (found, record.sequence) }
        return (whole, record.sequence)
    }

    /// Whether one of the revisions is here, but its content is not.
    static func lacks(_ revisions: [RevisionID], _ branches: DocumentBranches) -> Bool {
        revisions.contains { branches.contains($0) && branches.state(of: $0)?.hasContent != true }
    }
}

/// A revision that is not here, or whose content is not.
struct MissingRevision: Error, Sendable {
    let text: String
    var json: JSONText { JSONText(canonical: ["missing": .string(text)]) }
}
