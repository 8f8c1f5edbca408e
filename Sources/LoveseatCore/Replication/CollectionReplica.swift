import LoveseatAssertions
package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// One collection of a ``DocumentStore`` as one connection replicates it. The state that the connection's collections share is in
/// ``DatabaseReplicas``.
package final class CollectionReplica: Replica {
    let source: DatabaseReplicas
    let store: DocumentStore
    let collection: CollectionHandle
    let index: Int
    /// The ID of the active side's checkpoint; empty on the passive side.
    private let checkpointID: String
    /// See ``DatabaseReplicas/remote``.
    let remote: Int?
    /// The app's settings; nil if there are none.
    let rule: CollectionRules?
    /// See ``DatabaseReplicas/access``.
    let access: PeerAccess?
    /// Which marks count.
    var ledger = MarkLedger()
    var pushed = PushedNames()
    /// Documents of which a hub now has an older revision than before. It may keep the newer one on a deleted branch, and accept it again
    /// without making it current.
    var fallenBack = NameSet(bytes: MarkLedger.namesKept)
    /// The documents that could not be stored when they were pulled.
    var failed: DocumentSet = []

    init(_ index: Int, of source: DatabaseReplicas) {
        self.source = source
        self.index = index
        (store, remote, access) = (source.store, source.remote, source.access)
        collection = source.collections[index]
        checkpointID = remote == nil ? "" : source.checkpointIDs[index]
        rule = source.rules.indices.contains(index) ? source.rules[index] : nil
    }

    package var connections: Int { max(1, store.connectionCount) }

    package var lastSequence: UInt64 { store.lastSequence(collection) }

    // MARK: Checkpoints and marks

    package func checkpoint() throws(LoveseatError) -> StoredCheckpoint {
        try source.asking {
            var stored = StoredCheckpoint()
            if remote == nil { return stored }
            let earlier = try source.earlierSessions(index)
            if earlier.marks != nil || earlier.checkpoint != nil { ledger.foundOlder() }
            if let marks = earlier.marks {
                stored.marks =
                    marks.checkpoint == checkpointID
                    ? .ours(isCovered: marks.isCovered) : .others(isCovered: marks.isCovered)
            }
            let found = earlier.checkpoint
            stored.body =
                found?.userChanges == source.userChanges ? found?.body : found?.body.withoutPulls
            ledger.found(earlier.removals)
            (stored.wasTakenFrom, stored.wasTakenFromSince) = (
                earlier.removals.hasAny, earlier.removals.isUncovered
            )
            return stored
        }
    }

    private func removalsKey(_ remote: Int) -> String {
        EarlierSessions.removalsKey(of: collection.name, remote: remote)
    }

    private var coveredKey: String { EarlierSessions.coveredKey(checkpointID) }

    /// Records, with the purge, that the peer takes documents away. `purges`: whether any of them was here.
    func noteRemovals(purges: Bool, _ transaction: StoreWriteTransaction) throws {
        // A passive side has no checkpoint that would have to cover it.
        guard let remote else { return }
        let key = removalsKey(remote)
        let before = try transaction.localCheckpoint(key).map(\.number)
        if !purges, before != nil { return }
        try transaction.checkpointTables.saveLocalCheckpoint(
            key,
            JSONText(number: (before ?? 0) + (purges ? 1 : 0))
        )
    }

    package func saveCheckpoint(_ body: JSONText, coversMarks: Bool) throws(LoveseatError) {
        guard let remote else { return impossible("a passive peer saves no checkpoint of its own") }
        let id = checkpointID
        try source.asking {
            try store.write(call: "replication") { transaction in
                try transaction.checkpointTables.saveLocalCheckpoint(
                    id,
                    body,
                    userChanges: source.userChanges
                )
                if let removals = ledger.removals.unsaved {
                    try transaction.checkpointTables.saveLocalCheckpoint(
                        coveredKey,
                        JSONText(number: removals)
                    )
                }
                let completed = Checkpoint(JSONElement(body)).completed.completeUpTo
                guard coversMarks, ledger.hasOfferedDoubted(upTo: completed) else {
                    return try transaction.checkpointTables.doubtMarks(of: remote, in: collection)
                }
                if ledger.isCovered {
                    try transaction.checkpointTables.coverMarks(of: remote, in: collection, by: id)
                }
            }
            ledger.checkpointSaved()
        }
    }

    package func retractCheckpoint(_ body: JSONText) throws(LoveseatError) {
        try source.asking {
            try store.write(call: "replication", durably: true) { transaction in
                try transaction.checkpointTables.saveLocalCheckpoint(
                    checkpointID,
                    body,
                    userChanges: source.userChanges
                )
                if let remote { try transaction.checkpointTables.doubtMarks(of: remote, in: collection) }
            }
        }
    }

    package func beginCheckpoint() throws(LoveseatError) {
        guard let remote else { return impossible("a passive peer begins no checkpoint of its own") }
        let removals = try source.asking {
            try store.readSettings { try $0.localCheckpoint(removalsKey(remote)).map(\.number) }
        }
        ledger.checkpointBegan(removals: removals)
    }

    package func believeMarks(_ marks: MarkTrust) {
        ledger.believe(marks, at: store.lastSequence(collection))
    }

    package func markSynced(_ revisions: [SyncedRevision]) throws(LoveseatError) {
        try source.asking { try mark(revisions.map { RevisionMark($0) }) }
        if remote != nil { pushed.note(revisions) }
    }

    package func peerCheckpoint(_ id: String) throws(LoveseatError) -> PeerCheckpoint? {
        try source.asking {
            try store.readRows { try $0.peerCheckpoint(id) }.map {
                PeerCheckpoint(revision: $0.revision, body: $0.body)
            }
        }
    }

    package func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int)
        throws(LoveseatError) -> Int?
    {
        try source.asking {
            try store.write(call: "replication") { transaction in
                // A checkpoint of a collection that was deleted meanwhile is not valid for the next one of its name.
                if let gone = source.collections.first(where: { !transaction.contains($0) }) {
                    throw LoveseatError(.notOpen, "collection \(gone.name) was deleted")
                }
                return try transaction.checkpointTables.savePeerCheckpoint(id, replacing: revision, body)
            }
        }
    }

    /// Removes marks in doubt from documents that this session does not offer, since they wait for a resolver. Their result is offered as
    /// if the remote had nothing. Otherwise the session's checkpoint would cover marks that were not verified.
    func forgetMarks(_ ids: [String]) throws {
        // A passive side keeps no marks, and of an active one they are rarely in doubt.
        guard let remote, !ids.isEmpty else { return }
        try store.write(call: "replication") { transaction in
            for id in ids { try transaction.forgetMark(id, remote: remote, in: collection) }
        }
    }

    /// Writes marks for the remote, and that no checkpoint covers them yet.
    func marking<T>(_ body: (StoreWriteTransaction) throws -> T) throws -> T {
        let result = try store.write(call: "replication") { transaction in
            if let remote {
                try transaction.checkpointTables.noteMarks(of: remote, in: collection, by: checkpointID)
            }
            return try body(transaction)
        }
        ledger.marksMade()
        return result
    }
}

extension JSONText {
    /// A note of a number.
    init(number: Int) { self.init(canonical: ["number": JSONValue(number)]) }

    var number: Int { JSONElement(self)["number"]?.int ?? 0 }

    /// A checkpoint without its pull: this user may not have the documents that another user pulled.
    fileprivate var withoutPulls: JSONText {
        var value = JSONElement(self).value
        value["remote"] = nil
        return JSONText(canonical: value)
    }
}
