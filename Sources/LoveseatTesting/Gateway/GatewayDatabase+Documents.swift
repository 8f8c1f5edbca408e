private import Crypto
package import LoveseatBLIP
package import LoveseatModel
import LoveseatStorage

extension GatewayDatabase {
    /// A revision to be saved.
    struct Write {
        let id: String
        var revision: String
        /// Its ancestors, newest first.
        var history: [String]
        let isDeleted: Bool
        let body: JSONObject
        var attachments: [String: JSONObject] = [:]
        /// The bytes that came with it, by digest.
        var contents: [String: [UInt8]] = [:]
        var mayBranch = false
        /// The state that a client with versions pushed. If it has a version, the revision goes on top of the current one.
        var state: StateHistory?

        /// Whether the revision's place in the tree follows from its version.
        var isVersion: Bool { state?.vector.isEmpty == false }

        /// Puts the revision of a pushed version on top of the current one, under an ID of the gateway's (version-vectors.md §15).
        mutating func place(over document: GatewayDocument?) {
            // Others have their places.
            if !isVersion { return }
            let current = document?.current
            revision = GatewayDatabase.revision(parent: current ?? "", body: body, isDeleted: isDeleted)
            history = document.map { [$0.current] + $0.ancestors(of: $0.current) } ?? []
        }
    }

    static let conflict = ReplyError("HTTP", 409, "Document revision conflict")

    /// Saves a revision with the history that a client gives it (gateway.md 36, 55, 57).
    ///
    /// `user`: nil for an administrator.
    mutating func save(_ write: Write, in keyspace: String, by user: String?) throws(ReplyError) {
        // A REST request may name a collection that does not exist.
        guard let syncFunction = keyspaces[keyspace]?.syncFunction else { return }
        let existing = keyspaces[keyspace]?.documents[write.id]
        if let state = write.state, write.isVersion, try !isNews(state, over: existing) { return }
        var write = write
        write.place(over: existing)
        if existing?.revisions[write.revision] != nil { return }
        let ancestor = write.history.first { existing?.revisions[$0] != nil }
        if let existing, !write.mayBranch, !write.isVersion {
            try check(write, ancestor: ancestor, against: existing)
        }
        let call = try runSyncFunction(
            write,
            over: ancestor == nil ? nil : existing,
            syncFunction,
            in: keyspace,
            by: user
        )

        let before = accessOfAll()
        lastSequence += 1
        var document = existing ?? GatewayDocument(id: write.id)
        graft(write, onto: &document)
        document.revisions[write.revision]?.vector = vector(of: write, over: existing)
        document.revisions[write.revision]?.channels = call.channels
        if let old = existing?.current, document.revisions[old]?.isCached == false, !options.keepsOldBodies {
            document.revisions[old]?.body = nil
        }
        document.sequence = lastSequence
        document.current = options.allowsConflicts ? document.winner : write.revision
        document.expires = false
        move(&document, into: document.leaf?.channels ?? [])
        if document.current == write.revision {
            document.grantedChannels = merged(document.grantedChannels, call.access)
            document.grantedRoles = merged(document.grantedRoles, call.roles)
        }
        for (digest, bytes) in write.contents { document.attachments[digest] = bytes }
        document.prune(to: options.revisionDepth)
        keyspaces[keyspace]?.documents[write.id] = document
        noteChangedAccess(since: before)
    }

    /// Only children of the current revision are taken, and what revives a deleted document (gateway.md 55).
    private func check(_ write: Write, ancestor: String?, against existing: GatewayDocument)
        throws(ReplyError)
    {
        guard let ancestor else {
            if existing.isDeleted, !write.isDeleted { return }
            throw Self.conflict
        }
        if ancestor != existing.current || (existing.isDeleted && write.isDeleted) { throw Self.conflict }
    }

    private func runSyncFunction(
        _ write: Write,
        over existing: GatewayDocument?,
        _ syncFunction: SyncFunction,
        in keyspace: String,
        by user: String?
    ) throws(ReplyError) -> SyncCall {
        func whole(_ body: JSONObject, _ isDeleted: Bool) -> JSONObject {
            var body = body
            body["_id"] = .string(write.id)
            if isDeleted { body["_deleted"] = true }
            return body
        }
        var call = SyncCall(
            document: whole(write.body, write.isDeleted),
            oldDocument: existing.map { whole($0.leaf?.body ?? [:], $0.isDeleted) },
            user: user,
            userChannels: user.map { Set(channels(of: $0, in: keyspace).keys) } ?? [],
            userRoles: user.map { Set(rolesOf($0).keys) } ?? []
        )
        do { try syncFunction(&call) } catch SyncRefusal.forbidden(let text) {
            throw ReplyError("HTTP", 403, text)
        } catch {
            throw ReplyError("HTTP", 500, "Exception in JS sync function")
        }
        return call
    }

    private func graft(_ write: Write, onto document: inout GatewayDocument) {
        let line = [write.revision] + write.history
        let known = line.firstIndex { document.revisions[$0] != nil } ?? line.count
        for index in (0..<known).reversed() {
            let parent = line.indices.contains(index + 1) ? line[index + 1] : nil
            document.revisions[line[index]] = GatewayDocument.Revision(parent: parent)
        }
        document.revisions[write.revision]?.isDeleted = write.isDeleted
        document.revisions[write.revision]?.body = write.body
        document.revisions[write.revision]?.attachments = write.attachments
        document.revisions[write.revision]?.isCached = true
    }

    private func move(_ document: inout GatewayDocument, into channels: Set<String>) {
        for (name, removal) in document.channels where removal == nil && !channels.contains(name) {
            document.channels[name] = GatewayDocument.Removal(
                sequence: lastSequence,
                revision: document.current,
                version: document.vector.current,
                isDeleted: document.isDeleted
            )
            if let last = document.memberships[name]?.indices.last {
                document.memberships[name]?[last].end = lastSequence
            }
        }
        for name in channels where document.channels[name] != .some(nil) {
            document.channels.updateValue(nil, forKey: name)
            document.memberships[name, default: []].append(Period(start: lastSequence))
        }
    }

    private func merged(_ old: [String: [String: Int]], _ new: [String: Set<String>])
        -> [String: [String: Int]]
    {
        var merged: [String: [String: Int]] = [:]
        for (name, granted) in new {
            for item in granted { merged[name, default: [:]][item] = old[name]?[item] ?? lastSequence }
        }
        return merged
    }

    // MARK: REST

    /// Adds a branch beside the current revision, above the oldest that is known of it (`new_edits=false`).
    package mutating func branch(_ id: String, _ body: JSONObject, in path: String = "_default")
        throws(ReplyError)
    {
        let keyspace = Self.keyspace(path)
        guard options.allowsConflicts, let document = keyspaces[keyspace]?.documents[id] else {
            throw Self.conflict
        }
        let root = document.ancestors(of: document.current).last ?? document.current
        let revision = Self.revision(parent: root, body: body, isDeleted: false)
        let write = Write(
            id: id,
            revision: revision,
            history: [root],
            isDeleted: false,
            body: body,
            mayBranch: true
        )
        try save(write, in: keyspace, by: nil)
    }

    /// Names a revision made over REST.
    static func revision(parent: String, body: JSONObject, isDeleted: Bool) -> String {
        var body = body
        if isDeleted { body["_deleted"] = true }
        let text = JSONText(canonical: .object(body)).bytes
        let digest = Insecure.MD5.hash(
            data: [UInt8(truncatingIfNeeded: parent.utf8.count)] + Array(parent.utf8) + text
        )
        let generation = (UInt32(parent.prefix { $0 != "-" }) ?? 0) + 1
        return RevisionID(generation: generation, digest: digest).text
    }

    /// Saves or deletes a document over REST; returns its new revision.
    ///
    /// `user`: nil for an administrator. `parent`: the revision that the author says is current; nil for a new document.
    @discardableResult
    package mutating func edit(
        _ id: String,
        _ body: JSONObject,
        isDeleted: Bool = false,
        parent: String?,
        by user: String? = nil,
        in path: String = "_default"
    ) throws(ReplyError) -> String {
        let keyspace = Self.keyspace(path)
        let existing = keyspaces[keyspace]?.documents[id]
        if let existing {
            let isRevival = parent == nil && existing.isDeleted && !isDeleted
            guard isRevival || parent == existing.current else { throw Self.conflict }
        } else if parent != nil, !isDeleted {
            throw Self.conflict
        }
        var content = body
        for name in ["_id", "_rev", "_deleted", "_exp", "_attachments"] { content[name] = nil }
        let revision = Self.revision(parent: existing?.current ?? "", body: content, isDeleted: isDeleted)
        let generation = Int(RevisionID(revision)?.generation ?? 1)
        var write = Write(
            id: id,
            revision: revision,
            history: existing.map { [$0.current] + $0.ancestors(of: $0.current) } ?? [],
            isDeleted: isDeleted,
            body: content
        )
        for (name, entry) in body["_attachments"]?.object ?? [:] {
            guard let (stub, bytes) = Self.attachment(entry, over: existing, name, generation) else {
                continue
            }
            write.attachments[name] = stub
            if let bytes, let digest = stub["digest"]?.string { write.contents[digest] = bytes }
        }
        try save(write, in: keyspace, by: user)
        if body["_exp"] != nil { keyspaces[keyspace]?.documents[id]?.expires = true }
        return revision
    }

    /// An attachment as REST writes it: with its bytes, or a stub of what is there.
    private static func attachment(
        _ entry: JSONValue,
        over existing: GatewayDocument?,
        _ name: String,
        _ generation: Int
    ) -> (JSONObject, [UInt8]?)? {
        guard let data = entry["data"]?.string else {
            return existing?.leaf?.attachments[name].map { ($0, nil) }
        }
        guard let bytes = Base64.decode(data) else { return nil }
        var stub: JSONObject = [:]
        stub["content_type"] = entry["content_type"]
        stub["digest"] = .string("sha1-" + Base64.encode(Hashing.sha1(bytes)))
        stub["length"] = JSONValue(bytes.count)
        stub["revpos"] = JSONValue(generation)
        stub["stub"] = true
        return (stub, bytes)
    }

    /// The current revision of a document, tombstones included; nil if there is none.
    package func currentRevision(of id: String, in path: String = "_default") -> (
        text: String, isDeleted: Bool
    )? {
        keyspaces[Self.keyspace(path)]?.documents[id].map { ($0.current, $0.isDeleted) }
    }

    /// The time of a document is over: a tombstone takes its place.
    package mutating func expire(_ id: String, in path: String = "_default") throws(ReplyError) {
        let keyspace = Self.keyspace(path)
        // The document may be deleted or purged before its time is over.
        guard let document = keyspaces[keyspace]?.documents[id], !document.isDeleted else { return }
        let write = Write(
            id: id,
            revision: Self.revision(parent: document.current, body: [:], isDeleted: false),
            history: [document.current] + document.ancestors(of: document.current),
            isDeleted: true,
            body: [:]
        )
        try save(write, in: keyspace, by: nil)
    }
}
