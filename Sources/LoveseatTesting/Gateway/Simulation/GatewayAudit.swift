import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatStorage

/// Checks that clients hold the documents that their users may see, and knows what no client can know (gateway.md 59).
final class GatewayAudit {
    private let twin: GatewayTwin
    private let name: String
    private let path: String
    let users: [String]
    /// The documents of which a user's clients may hold content that is gone, by user: they were changed while the user did not see them,
    /// or were purged.
    private var untold: [String: Set<String>] = [:]
    private var sequences: [String: Int] = [:]
    /// The copies of the database that it can be put back to.
    private(set) var backups: [Backup] = []
    private var visible: [String: Set<String>] = [:]
    private var channels: [String: [String: Int]] = [:]
    private var lastSequence = 0
    /// The users whose rights a purge changed since they came last. A purge has no sequence, so that any loss until they come again is
    /// dated by a sequence that their clients may have heard of already.
    private var datedByPurge: Set<String> = []
    /// All revisions that the gateway ever had, by document.
    private var had: [String: Set<String>] = [:]

    init(_ twin: GatewayTwin, database: String, path: String, users: [String]) {
        (self.twin, name, self.path, self.users) = (twin, database, path, users)
        note()
    }

    private var database: GatewayDatabase { twin.databases[name] ?? GatewayDatabase() }
    private var keyspace: String { GatewayDatabase.keyspace(path) }

    /// The audit's knowledge of the database as it is now, to go with a backup of it.
    struct Backup {
        let database: GatewayDatabase
        fileprivate let untold: [String: Set<String>]
    }

    func backUp() { backups.append(Backup(database: database, untold: untold)) }

    /// Call after everything that may have changed the database.
    ///
    /// `restored`: the backup that the database was put back to. It knows nothing of the documents that users received since, and takes
    /// none of them away. Documents that it lacks come back with the next push of their clients, unless the clients could not know even
    /// then that a document was gone.
    func note(restored: Backup? = nil) {
        let database = database
        let documents = database.keyspaces[keyspace]?.documents ?? [:]
        for user in users {
            let access = database.channels(of: user, in: keyspace)
            let seen = Set(documents.values.filter { !$0.isDeleted && $0.isVisible(to: access) }.map(\.id))
            let before = visible[user] ?? []
            for document in documents.values where sequences[document.id] != document.sequence {
                if !before.contains(document.id), !seen.contains(document.id) {
                    untold[user, default: []].insert(document.id)
                }
            }
            untold[user, default: []].formUnion(restored?.untold[user] ?? [])
            untold[user, default: []].formUnion(
                sequences.keys.filter { (documents[$0] != nil) == (restored != nil) }
            )
            // A gateway remembers what a user lost only if the user came while having it, and a purge of a document that
            // grants something has no sequence of which a feed could tell.
            let had = channels[user] ?? [:]
            let lost = Set(had.keys).subtracting(access.keys)
            let principal = database.users[user]
            let isRemembered = lost.allSatisfy { channel in
                principal?.known[keyspace]?[channel] != nil
                    || principal?.history[keyspace]?[channel]?.last?.end == database.lastSequence
            }
            if principal?.invalidatedAt == nil {
                datedByPurge.remove(user)
            } else if lastSequence == database.lastSequence, principal?.invalidatedAt == lastSequence {
                datedByPurge.insert(user)
            }
            if !lost.isEmpty, lastSequence == database.lastSequence || !isRemembered {
                untold[user, default: []].formUnion(before.subtracting(seen))
            }
            untold[user, default: []].formUnion(
                documents.values.filter { lost.contains(where: $0.channels.keys.contains) }
                    .filter { document in
                        !seen.contains(document.id)
                            && (datedByPurge.contains(user) || !announces(user, ofLosing: document, database))
                    }
                    .map(\.id)
            )
            // A grant brings what is in its channels now, and nothing of what left them before.
            if access.contains(where: { channel, since in had[channel].map { $0 < since } ?? true }) {
                untold[user, default: []].formUnion(documents.keys)
            }
            untold[user, default: []].subtract(seen)
            (visible[user], channels[user]) = (seen, access)
        }
        for document in documents.values {
            had[document.id, default: []].formUnion(document.revisions.keys)
            if let version = document.vector.current { had[document.id]?.insert(version.text) }
        }
        sequences = documents.mapValues(\.sequence)
        lastSequence = database.lastSequence
    }

    /// Whether there is a place in a user's feed from which it tells that a document is deleted or out of the user's sight.
    ///
    /// It tells that a document left a channel to those who still have the channel, and that a channel was lost only of
    /// documents that came into it before the first change of the user's rights since the user came last. The gateway
    /// dates the loss by that change.
    private func announces(_ user: String, ofLosing document: GatewayDocument, _ database: GatewayDatabase)
        -> Bool
    {
        var database = database
        database.refreshAccess(of: user)
        let access = database.channels(of: user, in: keyspace)
        let leaves = access.contains { channel, since in
            guard let state = document.channels[channel] else { return false }
            return (state?.sequence ?? document.sequence) >= since
        }
        return leaves
            || (database.users[user]?.history[keyspace] ?? [:]).contains { channel, periods in
                guard access[channel] == nil, let end = periods.last?.end else { return false }
                return document.memberships[channel]?.contains { $0.start < end } == true
            }
    }

    /// A user's client saved a document, or pushed a revision that the gateway has already, be it below a deletion (docs/decisions/0001).
    /// If the user does not see the document, nobody tells the client of its later changes.
    func saved(_ id: String, by user: String) {
        if visible[user]?.contains(id) != true { untold[user, default: []].insert(id) }
    }

    /// Whether a document is deleted at the gateway.
    func isDeleted(_ id: String) -> Bool {
        database.keyspaces[keyspace]?.documents[id]?.isDeleted == true
    }

    /// Whether the gateway had a revision before. To send it again changes nothing.
    func hasHad(_ revision: String, of id: String) -> Bool { had[id]?.contains(revision) == true }

    /// Whether the gateway had a revision, which may be abbreviated, or a copy of it.
    func hasHad(_ original: RevisionID, of id: String) -> Bool {
        let name = CopyName(original: original, origin: original)
        return had[id]?.lazy.compactMap { RevisionID($0) }.contains {
            name.isOf($0) || CopyName($0)?.original == name.original
        } == true
    }

    /// Returns the problems with the documents that a client holds in the end.
    func audit(_ client: GatewayClient) throws -> [String] {
        let database = database
        let wanted = database.visibleDocuments(to: client.user, in: path)
        let held = try client.peer.state(of: 0)
        var problems: [String] = []
        for (id, state) in held.sorted(by: { $0.key < $1.key }) {
            guard let blob = JSONElement(state.body).value["blob"]?["digest"]?.string,
                let digest = BlobDigest(blob), !client.peer.store.blobs.contains(digest)
            else { continue }
            problems.append("client \(client.peer.index), \(id): the blob \(blob) is missing")
        }
        for id in Set(wanted.keys).union(held.keys).sorted() {
            if let finding = audit(id, client, wanted[id], held[id], database) {
                problems.append("client \(client.peer.index) of \(client.user), \(id): \(finding)")
            }
        }
        return problems
    }

    private func audit(
        _ id: String,
        _ client: GatewayClient,
        _ wanted: (revision: String, body: JSONObject)?,
        _ held: SimulatedPeer.DocumentState?,
        _ database: GatewayDatabase
    ) -> String? {
        let tree = client.peer.tree(id, in: 0)
        let version = database.vector(of: id, in: path)?.current
        if let wanted, let held, let tree, !held.isDeleted,
            held.body == JSONText(canonical: .object(wanted.body)),
            tree.knows(wanted.revision, version, in: held.revision)
        {
            // The same content, which the client gave the gateway on top of what the gateway had.
            return nil
        }
        if held?.hasConflict == true { return "UNRESOLVED \(held.map(\.description) ?? "")" }
        let document = database.keyspaces[keyspace]?.documents[id]
        // A revision that the gateway has no longer may have gone there as a copy under another name.
        let copies = wanted == nil ? held.flatMap { tree?.copies(of: $0.revision) } ?? [] : []
        let versioned = held.flatMap { tree?.versions.state(of: $0.revision).name?.text }
        let wasThere =
            ([held?.revision.text, versioned].compactMap { $0 } + copies).contains {
                had[id]?.contains($0) == true
            }
            // A document that the gateway has already, under another revision, is not sent.
            || tree?.remotes.values.contains { tree?.isCurrent($0) == true } == true
        // The gateway refused this version when it was offered last. It may have had the version once, until a purge.
        if let held, client.refused[id]?.contains(held.body) == true { return nil }
        if let held, !wasThere, let tree {
            if held.isDeleted, document?.isDeleted ?? true { return nil }
            // Nobody tells a user without access that it was made again since.
            if wanted == nil, client.deletedAlready.contains(id) { return nil }
            // An edit of a document whose deletion the user was never told of meets 409 for ever.
            if document?.isDeleted == true, untold[client.user]?.contains(id) == true { return nil }
            return auditEdit(held, tree, client, wanted?.revision, document, database)
        }
        guard let wanted else {
            guard let held, !held.isDeleted, untold[client.user]?.contains(id) != true else { return nil }
            // A client that got no answer to its push keeps the version, which it takes for its own edit alone.
            guard tree?.remotes.values.contains(where: { tree?.isCurrent($0) == true }) == true else {
                return nil
            }
            return "KEEPS \(held), the gateway has \(document?.current ?? "nothing") of it"
        }
        guard let held, !held.isDeleted else { return "LACKS \(wanted.revision)" }
        let body = JSONText(canonical: .object(wanted.body))
        if held.revision.text == wanted.revision, held.body == body { return nil }
        return "DIFFERS \(held), the gateway has \(wanted.revision) \(body)"
    }

    /// An edit that the gateway does not have must be one that it refuses, also on top of what it has.
    private func auditEdit(
        _ held: SimulatedPeer.DocumentState,
        _ tree: RevisionTree,
        _ client: GatewayClient,
        _ wanted: String?,
        _ document: GatewayDocument?,
        _ database: GatewayDatabase
    ) -> String? {
        func refusal(_ revision: String, _ history: [String], _ state: StateHistory? = nil) -> ReplyError? {
            var trial = database
            var write = GatewayDatabase.Write(
                id: document?.id ?? "new",
                revision: revision,
                history: history,
                isDeleted: held.isDeleted,
                body: JSONElement(held.body).value.object ?? [:]
            )
            write.state = state
            do {
                try trial.save(write, in: keyspace, by: client.user)
                return nil
            } catch { return error }
        }
        let has = document.map { "\($0.current) \($0.currentName)" } ?? "nothing"
        let line = tree.line(held.revision).dropFirst().map(\.text)
        let state =
            client.offers.first == .mobile4 && database.source != nil ? tree.pushed(held.revision) : nil
        guard let first = refusal(state == nil ? held.revision.text : "", line, state) else {
            return "UNPUSHED \(held) \(state?.vector.text ?? ""), the gateway has \(has)"
        }
        guard first.code == 409, let wanted, let document else { return nil }
        let generation = (RevisionID(wanted)?.generation ?? 0) + 1
        let over = state.map { StateHistory($0.vector.including(document.implicitVector)) }
        let isRefused = refusal("\(generation)-00", [wanted] + document.ancestors(of: wanted), over) != nil
        return isRefused ? nil : "UNRESOLVED \(held), the gateway has \(has)"
    }
}

extension RevisionTree {
    /// Whether a gateway's current revision is known, by its ID, or by its version as a part of a revision here.
    fileprivate func knows(_ text: String, _ version: Version?, in current: RevisionID) -> Bool {
        if let revision = RevisionID(text), known(revision) != nil { return true }
        return version.map { version in
            versions.node(named: .version(version)) != nil
                || versions.includes(.version(version), in: current)
        } ?? false
    }

    /// A revision as it would be pushed by its version.
    fileprivate func pushed(_ revision: RevisionID) -> StateHistory {
        let state = versions.state(of: revision)
        if !state.vector.isEmpty { return state }
        return StateHistory(
            versions.announcedState(of: revision).vector,
            revisions: Array(state.revisions.dropFirst())
        )
    }

    /// The revisions that have the content of this one on top of what a hub had.
    fileprivate func copies(of revision: RevisionID) -> [String] {
        let original = original(revision)
        return copies.filter { $0.value == original }.map(\.key.text)
    }

    /// Returns a copy of a revision that may be abbreviated: a candidate, or a copy on top of which somebody has saved something since.
    func copy(of original: RevisionID) -> RevisionID? {
        let name = CopyName(original: original, origin: original)
        let candidate = candidates.first { name.isOf($0.original) }?.node.id
        return candidate ?? copies.filter { name.isOf($0.value) }.map(\.key).max()
    }
}
