package import LoveseatModel

/// The part of a ``Replica`` that decides how to go on with a revision that the peer did not take.
package protocol ReplicaDisagreements: AnyObject {
    /// How to go on with a revision that a hub did not take.
    func reconcile(_ change: LocalChange, _ state: HubState) throws(LoveseatError) -> Reconciliation
    /// Notes that a hub has accepted a copy on top of its revision.
    func adoptCopy(_ copy: RevisionID, of documentID: String, parent: RevisionID) throws(LoveseatError)
    /// Stores the tree with which the peer answered a pushed revision: another one is current there.
    func merge(_ knowledge: TreeKnowledge, of documentID: String, current: RevisionID, takesContent: Bool)
        throws(LoveseatError) -> MergeOutcome
}
