import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A hub's database. It still serves an announced deletion after another document has taken its place, as Couchbase Lite does: the deletion
/// is a leaf, and leaves have their bodies. Loveseat itself tells a foreign client that the deletion is obsolete.
final class HubReplica: ReplicaLayer {
    let inner: any RevisionStore
    private let hub: SimulatedPeer

    init(_ inner: any RevisionStore, hub: SimulatedPeer) { (self.inner, self.hub) = (inner, hub) }

    func revisions(_ requests: [RevisionRequest], in collection: Int) throws(LoveseatError)
        -> [OutgoingRevision]
    {
        let found = try alive().revisions(requests, in: collection)
        return zip(requests, found).map { request, outgoing in
            guard case .obsolete = outgoing, let tree = hub.tree(request.documentID, in: collection),
                let node = tree.node(request.revision), node.isDeleted, tree.isLeaf(node.id)
            else { return outgoing }
            let history = RevisionHistory.toSend(
                Array(tree.line(node.id).dropFirst()),
                of: node.id,
                known: request.known,
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
