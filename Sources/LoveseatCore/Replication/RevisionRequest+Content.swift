import LoveseatModel
import LoveseatReplication
import LoveseatStorage

extension RevisionRequest {
    /// The current revision of a document, as the peer is to get it.
    func revision(of record: DocumentRecord, in tree: RevisionTree?) -> OutgoingRevision {
        guard let tree else {
            return .found(
                SendableRevision(
                    revision: record.revision,
                    history: [],
                    isDeleted: record.isDeleted,
                    body: record.body
                )
            )
        }
        if peer == .hub, let copy = copy(of: record, in: tree) { return copy }
        let line = tree.line(record.revision)
        var content = SendableRevision(
            revision: record.revision,
            history: RevisionHistory.toSend(
                Array(line.dropFirst()),
                of: record.revision,
                known: known.compactMap(\.treeID),
                limit: maxHistory
            ),
            isDeleted: record.isDeleted,
            body: record.body
        )
        content.isUncertain = peer == .hub && known.isEmpty && !tree.isLine
        if wantsDelta, !record.isDeleted { content.deltaBase = deltaBase(in: tree) }
        if peer == .loveseat {
            if let origin = line.last, origin != record.revision, !content.history.contains(origin) {
                content.origin = origin
            }
            // The history of a single line says all but the vectors, without which the peer would give the same state another version.
            if tree.isTold || !tree.vectors.isEmpty { content.knowledge = tree.intactKnowledge }
        }
        return .found(content)
    }

    /// A hub accepts only descendants of its own revision. If ours is not one, our content goes on top of the hub's as a copy. Nothing has
    /// to be recorded before it is sent, because the copy says in its name what it is.
    ///
    /// - Returns: nil if none is needed, or the hub's revision is not here.
    private func copy(of record: DocumentRecord, in tree: RevisionTree) -> OutgoingRevision? {
        guard let hub = known.first?.treeID, record.revision != hub, let theirs = tree.node(hub),
            isCopyOnly || !tree.isAncestor(hub, of: record.revision), let current = tree.current
        else { return nil }
        if current.saysTheSame(as: theirs) { return .same }
        let copy = tree.copy(of: record, over: hub, mayBeOriginal: !isCopyOnly)
        guard let copy else { return nil }
        var content = SendableRevision(
            revision: copy.id,
            history: RevisionHistory.toSend(
                tree.line(hub),
                of: copy.id,
                known: known.compactMap(\.treeID),
                limit: maxHistory
            ),
            isDeleted: record.isDeleted,
            body: record.body
        )
        content.copy = .init(original: copy.original, parent: hub)
        return .found(content)
    }

    /// The first revision that the peer has and whose body is here (replication.md §10.1), unless it is a deletion.
    private func deltaBase(in tree: RevisionTree) -> SendableRevision.DeltaBase? {
        let nodes = known.lazy.compactMap { $0.treeID.flatMap { tree.node($0) } }
        guard let node = nodes.first(where: { $0.body != nil }), !node.isDeleted, let body = node.body,
            !node.isDamaged
        else { return nil }
        return SendableRevision.DeltaBase(revision: .revision(node.id), body: body)
    }
}
