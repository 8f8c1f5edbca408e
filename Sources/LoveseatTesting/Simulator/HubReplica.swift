import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A hub's replica. It still serves an announced deletion after another document has taken its place, as Couchbase Lite does: the deletion
/// is a leaf, and leaves have their bodies. Loveseat itself tells a foreign client that the deletion is obsolete.
final class HubReplica: ReplicaLayer {
    let inner: any Replica
    private let collection: Int
    private let hub: SimulatedPeer

    init(_ inner: any Replica, _ collection: Int, hub: SimulatedPeer) {
        (self.inner, self.collection, self.hub) = (inner, collection, hub)
    }

    func revisions(_ requests: [RevisionRequest]) throws(LoveseatError) -> [OutgoingRevision] {
        let found = try alive().revisions(requests)
        return zip(requests, found).map { request, outgoing in
            guard case .obsolete = outgoing, let tree = hub.tree(request.documentID, in: collection),
                let node = tree.node(request.revision), node.isDeleted, tree.isLeaf(node.id)
            else { return outgoing }
            let history = RevisionHistory.toSend(
                Array(tree.line(node.id).dropFirst()),
                of: node.id,
                known: request.known.compactMap(\.treeID),
                limit: request.maxHistory
            )
            return .found(
                SendableRevision(
                    revision: node.id,
                    history: history,
                    isDeleted: true,
                    body: node.body ?? .emptyObject
                )
            )
        }
    }
}
