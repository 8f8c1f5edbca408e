import LoveseatModel

/// What becomes of proposals that the peer refused as conflicts (replication.md §8).
extension PushSession {
    mutating func compare(
        _ change: LocalChange,
        server: RevisionID?,
        _ effects: inout [ReplicationEffect]
    ) {
        nextKey += 1
        comparing[nextKey] = (change, server)
        effects.append(
            .store(
                .compare(
                    collection: collection,
                    documentID: change.documentID,
                    revision: change.revision,
                    with: server
                ),
                then: .compared(collection: collection, key: nextKey)
            )
        )
    }

    mutating func compared(_ key: Int, _ answer: RevisionComparison, _ effects: inout [ReplicationEffect]) {
        guard let (change, server) = comparing.removeValue(forKey: key) else { return }
        guard case .proposing(let pulls, _) = mode else { return }
        let ancestor =
            server.flatMap { answer.supersedes ? $0 : nil } ?? (server == nil ? answer.remoteAncestor : nil)
        if !answer.isCurrent {
            // A newer revision took its place, with a sequence of its own.
            finish(change, synced: nil, &effects)
        } else if let ancestor, ancestor != change.remoteAncestor, !answer.hasConflict {
            var again = change
            again.remoteAncestor = ancestor
            offer([again], &effects)
        } else if pulls {
            parked[change.documentID] = change
            release(change.documentID, succeeded: nil, &effects)
        } else {
            report(change, conflict(change), &effects)
            finish(change, synced: nil, &effects)
        }
        pump(&effects)
    }

    func conflict(_ change: LocalChange) -> LoveseatError {
        LoveseatError(
            .httpConflict,
            "document \"\(change.documentID)\" conflicts with a newer revision at the peer"
        )
    }

    /// The pull, or somebody who resolved a conflict, changed a document.
    mutating func documentMoved(_ id: String, _ effects: inout [ReplicationEffect]) {
        guard let change = parked.removeValue(forKey: id) else { return }
        busy[id] = .some(nil)
        compare(change, server: nil, &effects)
    }

    /// Documents whose conflict nothing has explained; they are proposed again next time.
    mutating func reportParked(_ effects: inout [ReplicationEffect]) {
        for change in parked.values.sorted(by: { $0.sequence < $1.sequence }) {
            report(change, conflict(change), &effects)
        }
        parked = [:]
    }
}
