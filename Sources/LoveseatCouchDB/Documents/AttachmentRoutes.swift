import HTTPTypes
import HummingbirdCore
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import NIOCore

/// Attachments by themselves (protocol/couchdb.md §6.2).
struct AttachmentResource: Resource {
    let server: CouchDBServer

    func answer(_ id: String, _ name: String, _ entry: Databases.Entry, _ exchange: Exchange)
        async throws
        -> Reply
    {
        switch exchange.method {
        case "PUT": try await putAttachment(id, name, entry, exchange)
        case "DELETE": try await deleteAttachment(id, name, entry, exchange)
        default: try await getAttachment(id, name, entry, exchange)
        }
    }

    private func getAttachment(_ id: String, _ name: String, _ entry: Databases.Entry, _ exchange: Exchange)
        async throws
        -> Reply
    {
        let named = try exchange.query["rev"].map { try RevisionText.parse($0) }
        guard
            let branches = try await branches(
                of: id,
                with: named.map { [$0] } ?? [],
                in: entry,
                for: exchange
            )?.0
        else {
            throw CouchDBError.missing
        }
        var branch: DocumentBranch? = branches.winner
        if let named {
            branch = branches.revision(named)
        } else if branches.winner.isDeleted {
            throw CouchDBError.deleted
        }
        guard let branch, let body = branch.body else { throw CouchDBError.missing }
        let all =
            StoredAttachment.all(in: body) + BlobAttachments.all(in: body, generation: branch.id.generation)
        guard let attachment = all.first(where: { $0.name.isExactly(name) }) else {
            throw CouchDBError.noAttachment
        }
        guard entry.store.blobs.length(attachment.digest) != nil else { throw CouchDBError.noAttachment }
        let tag = try await naming(exchange, entry) { $0.tag(attachment.digest) }
        return reply(attachment, tag, entry, exchange)
    }

    private func reply(
        _ attachment: StoredAttachment,
        _ tag: String,
        _ entry: Databases.Entry,
        _ exchange: Exchange
    ) -> Reply {
        let stream = ContentStream(blobs: entry.store.blobs)
        let digest = attachment.digest
        var headers = [
            ("Content-Type", HeaderValue.safe(attachment.contentType)),
            ("Content-Security-Policy", "sandbox"),
        ]
        if let encoding = attachment.encoding {
            headers.append(("Accept-Ranges", "none"))
            guard Self.accepts(encoding, exchange.header("Accept-Encoding")) || encoding != "gzip" else {
                var reply = Reply(200, headers: headers)
                reply.body = .stream(length: nil) { try await stream.writeInflated(digest, to: &$0) }
                return reply.revalidated(tag, for: exchange)
            }
            headers.append(("Content-Encoding", HeaderValue.safe(encoding)))
            let length = attachment.storedLength
            var reply = Reply(200, headers: headers)
            reply.body = .stream(length: length) {
                try await stream.write(digest, range: 0..<length, to: &$0)
            }
            return reply.revalidated(tag, for: exchange)
        }
        headers.append(("Accept-Ranges", "bytes"))
        let length = Int(entry.store.blobs.length(digest) ?? 0)
        switch ByteRanges(exchange.header("Range"), length: length) {
        case .all:
            var reply = Reply(200, headers: headers)
            reply.body = .stream(length: length) {
                try await stream.write(digest, range: 0..<length, to: &$0)
            }
            return reply.revalidated(tag, for: exchange)
        case .unsatisfiable:
            var error = CouchDBError(
                416,
                "requested_range_not_satisfiable",
                "Requested range not satisfiable"
            )
            error.headers = [["Content-Range", "bytes */\(length)"]]
            return Reply(error)
        case .one(let range):
            headers.append(("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"))
            var reply = Reply(206, headers: headers)
            reply.body = .stream(length: range.count) {
                try await stream.write(digest, range: range, to: &$0)
            }
            return reply.revalidated(tag, for: exchange)
        }
    }

    private static func accepts(_ encoding: String, _ header: String?) -> Bool {
        guard let header else { return false }
        return header.lowercased().split(separator: ",").contains { item in
            let parts = item.split(separator: ";").map { $0.filter { $0 != " " } }
            guard let name = parts.first, name == encoding || name == "*" else { return false }
            return !parts.dropFirst().contains { $0 == "q=0" || $0 == "q=0.0" }
        }
    }

    private func putAttachment(_ id: String, _ name: String, _ entry: Databases.Entry, _ exchange: Exchange)
        async throws
        -> Reply
    {
        try IncomingAttachment.check(name)
        let type = exchange.headers[.contentType] ?? "application/octet-stream"
        try IncomingAttachment.check(contentType: type, of: name)
        if let encoding = exchange.header("Content-Encoding")?.lowercased(), encoding != "gzip",
            encoding != "identity"
        {
            throw CouchDBError(
                415,
                "bad_content_type",
                "Only gzip and identity content-encodings are supported"
            )
        }
        let revision = try DocumentResource.namedRevision(exchange, nil)
        var announced: JSONValue = ["content_type": .string(type)]
        if let length = exchange.headers[.contentLength].flatMap({ Int($0) }) {
            announced["length"] = JSONValue(length)
        }
        var proposed = try await proposal(id, revision, entry, exchange)
        proposed.attachments[name] = announced
        try entry.requireRight(to: proposed)
        let pins = BlobPins(entry.store.blobs, hashesMD5: true)
        defer { withExtendedLifetime(pins) {} }
        let (digest, length) = try await receive(exchange, entry, pins)
        let isCompressed = exchange.header("Content-Encoding")?.lowercased() == "gzip"
        let inflated =
            isCompressed
            ? try await work(exchange, size: .max) {
                try GzipContent.length(of: digest, in: entry.store.blobs)
            }
            : nil
        var stored = StoredAttachment(
            name: name,
            contentType: type,
            digest: digest,
            length: inflated ?? length,
            position: 1
        )
        // Content that is not gzip is stored as if the client had not said that it is.
        if inflated != nil { (stored.encoding, stored.encodedLength) = ("gzip", length) }
        let attachment = stored
        var change = try await proposal(id, revision, entry, exchange)
        change.attachments[name] = stored.stored
        let made = try await self.change(change, revision, entry, revives: true) { table, generation in
            var attachment = attachment
            attachment.position = generation
            table[name] = attachment.stored
        }
        return .json(
            201,
            ["ok": true, "id": .string(id), "rev": .string(made.text)],
            headers: [("Location", exchange.location([entry.name, id, name]))]
        )
    }

    /// Stores a body. Returns its length in bytes, too.
    private func receive(_ exchange: Exchange, _ entry: Databases.Entry, _ pins: BlobPins) async throws -> (
        BlobDigest, Int
    ) {
        let writer = try entry.store.blobs.writer(hashesMD5: true)
        for try await part in exchange.requestedBody() { try writer.write(part.readableBytesView) }
        let (digest, length) = try pins.finish(writer)
        return (digest, Int(length))
    }

    private func deleteAttachment(
        _ id: String,
        _ name: String,
        _ entry: Databases.Entry,
        _ exchange: Exchange
    )
        async throws -> Reply
    {
        let revision = try DocumentResource.namedRevision(exchange, nil)
        guard let branches = try await branches(of: id, in: entry, for: exchange)?.0 else {
            guard revision == nil else { throw CouchDBError(409, "not_found", "missing_rev") }
            throw CouchDBError.missing
        }
        guard let revision else { throw CouchDBError.conflict }
        guard let body = branches.leaves.first(where: { $0.id == revision })?.body else {
            throw CouchDBError.conflict
        }
        guard StoredAttachment.all(in: body).contains(where: { $0.name.isExactly(name) }) else {
            throw CouchDBError.noAttachment
        }
        let proposed = try await proposal(id, revision, entry, exchange)
        let made = try await change(proposed, revision, entry, revives: false) { table, _ in
            table[name] = nil
        }
        return .json(200, ["ok": true, "id": .string(id), "rev": .string(made.text)])
    }

    /// The change that a policy is asked about when a leaf's attachments change: the body stays.
    private func proposal(
        _ id: String,
        _ revision: RevisionID?,
        _ entry: Databases.Entry,
        _ exchange: Exchange
    ) async throws
        -> AccessRuling.Change
    {
        let known = try await branches(of: id, in: entry, for: exchange)?.0
        var proposed = AccessRuling.Change(
            id: id,
            history: revision.map { [$0] } ?? [],
            isDeleted: false,
            body: revision.flatMap { known?.revision($0)?.body } ?? .emptyObject
        )
        proposed.received = Set(BlobReference.all(in: proposed.body).map(\.digest))
        return proposed
    }

    /// Changes a leaf's attachments.
    private func change(
        _ proposed: AccessRuling.Change,
        _ revision: RevisionID?,
        _ entry: Databases.Entry,
        revives: Bool,
        _ change: @escaping @Sendable (inout JSONObject, Int) -> Void
    ) async throws -> RevisionID {
        let id = proposed.id
        return try await entry.write(proposed) { transaction, document in
            let record = try document.record()
            let branches = try record.map { try DocumentBranches(of: $0) }
            if let revision, branches?.contains(revision) != true {
                throw CouchDBError(409, "not_found", "missing_rev")
            }
            let leaf = revision.flatMap { revision in branches?.leaves.first { $0.id == revision } }
            let base = leaf?.isDeleted == false ? leaf?.id : record?.revision
            guard revision == nil || leaf != nil else { throw CouchDBError.conflict }
            var body = JSONElement(leaf?.isDeleted == false ? leaf?.body ?? .emptyObject : .emptyObject).value
            var table = body["_attachments"]?.object ?? [:]
            change(&table, Int(base?.generation ?? 0) + 1)
            body["_attachments"] = table.isEmpty ? nil : .object(table)
            return try transaction.insertEdit(
                over: leaf?.isDeleted == true ? nil : revision,
                of: id,
                replacing: record,
                in: entry.handle,
                body: JSONText(canonical: BlobAttachments.absorbed(body)),
                isDeleted: false
            )
        }
    }
}

/// The ranges that a `Range` header asks for.
enum ByteRanges {
    case all
    case one(Range<Int>)
    case unsatisfiable

    init(_ header: String?, length: Int) {
        guard let header, header.hasPrefix("bytes=") else {
            self = .all
            return
        }
        // Several ranges are answered with everything.
        let text = header.dropFirst(6).filter { $0 != " " }
        guard !text.contains(",") else {
            self = .all
            return
        }
        let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            self = .all
            return
        }
        if parts[0].isEmpty {
            guard let count = Int(parts[1]), count > 0, length > 0 else {
                self = .unsatisfiable
                return
            }
            self = .one(max(0, length - count)..<length)
            return
        }
        guard let first = Int(parts[0]), first >= 0, first < length else {
            self = .unsatisfiable
            return
        }
        guard !parts[1].isEmpty else {
            self = first == 0 ? .all : .one(first..<length)
            return
        }
        // A number beyond all lengths means the end.
        let isNumber = parts[1].utf8.allSatisfy { (0x30...0x39).contains($0) }
        guard let last = Int(parts[1]) ?? (isNumber ? Int.max : nil), last >= first else {
            self = .unsatisfiable
            return
        }
        self = .one(first..<min(last, length - 1) + 1)
    }
}

/// Values of headers that clients chose.
enum HeaderValue {
    /// The value, or a general media type if it cannot be sent.
    static func safe(_ text: String) -> String {
        text.utf8.count <= BlobReference.maximumContentType
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } ? text : "application/octet-stream"
    }
}
