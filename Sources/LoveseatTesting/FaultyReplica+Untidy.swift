import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The mistakes that only the untidy worlds can show.
extension FaultyReplica {
    /// Leaves out what another session between the two peers was given, or what a clock that was set back makes older than the rest.
    func leaveOut(of page: inout ChangePage) {
        if shared.fault == .leaveToOtherSession {
            let (index, collection, handedOut) = (owner.index, collection, shared.handedOut)
            func name(_ change: LocalChange) -> String {
                "\(index) \(collection) \(change.documentID) \(change.revision)"
            }
            page.changes.removeAll { handedOut.isElsewhere(name($0)) }
            for change in page.changes { handedOut.note(name(change)) }
        } else if shared.fault == .continueByTime, collection < owner.wall.sequencesAtSetback.count {
            let last = owner.wall.sequencesAtSetback[collection]
            page.changes.removeAll { $0.sequence > last }
        }
    }

    /// Whether another collection of the database has a revision of the same name.
    func isInOtherCollection(_ id: String, _ revision: RevisionName) -> Bool {
        guard let revision = revision.treeID else { return false }
        return owner.collections.indices.contains { other in
            other != collection && owner.tree(id, in: other)?.contains(revision) == true
        }
    }

    /// Changes large bodies of documents that have another line here; nil if there are none.
    func withSpoiledConflicts(_ revisions: [IncomingRevision]) -> [IncomingRevision]? {
        guard shared.fault == .spoilLargeConflict else { return nil }
        return revisions.map { revision in
            guard revision.body.bytes.count > 500_000,
                let current = owner.tree(revision.documentID, in: collection)?.current?.id,
                !revision.line.contains(current)
            else { return revision }
            return change(revision, body: Self.flipped(revision.body))
        }
    }

    /// Stores revisions, and removes the blobs that these documents do not refer to any more, whatever other documents do.
    func releasingBlobs(of ids: [String], _ store: () throws(LoveseatError) -> [InsertResult])
        throws(LoveseatError) -> [InsertResult]
    {
        guard shared.fault == .releaseSharedBlobs else { return try store() }
        let before = blobs(of: ids)
        let results = try store()
        let after = blobs(of: ids)
        for digest in before.subtracting(after) { owner.removeBlob(digest) }
        return results
    }

    private func blobs(of ids: [String]) -> Set<BlobDigest> {
        ids.reduce(into: []) { blobs, id in
            // It may not have come yet.
            guard let tree = owner.tree(id, in: collection) else { return }
            for body in tree.nodes.values.compactMap(\.body) {
                blobs.formUnion(BlobReference.all(in: body).filter { $0.length ?? 0 > 0 }.map(\.digest))
            }
        }
    }
}
