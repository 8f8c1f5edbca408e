import LoveseatModel
import LoveseatReplication

/// Revisions that were asked for and have not come, by document.
///
/// An active side requests a document and a sequence, and expects exactly that. A passive side agrees to a document only, which may have
/// changed by the time it arrives.
struct OutstandingRequests: Sendable {
    private var counts: DocumentMap<Int> = [:]
    /// The proposals over a version, whose revisions have not come.
    private var proposals: DocumentMap<ProposedChange> = [:]
    private(set) var total = 0
    private var refused: [String] = []

    /// The documents, each as often as it was asked for.
    var documentIDs: [String] {
        counts.sorted { $0.key < $1.key }.flatMap { Array(repeating: $0.key.text, count: $0.value) }
    }

    mutating func add(_ documentID: String) {
        counts[ExactText(documentID), default: 0] += 1
        total += 1
    }

    /// Adds a request for a revision that was proposed over a version.
    mutating func add(_ proposal: ProposedChange) {
        add(proposal.documentID)
        // A revision ID is named by peers that were only told of it.
        guard case .version? = proposal.serverRevision else { return }
        // Those of revisions that were refused stay. They are forgotten before they become many.
        if proposals.count > total + ReplicationTuning.refusalsRemembered { proposals = [:] }
        proposals[ExactText(proposal.documentID)] = proposal
    }

    /// Removes and returns the version over which a revision was proposed.
    mutating func removeParent(of revision: RevisionName?, _ documentID: String) -> RevisionName? {
        if proposals.isEmpty { return nil }
        guard let proposal = proposals.removeValue(forKey: ExactText(documentID)),
            let revision, proposal.revision.isEquivalent(to: revision)
        else { return nil }
        return proposal.serverRevision
    }

    /// Removes one request for a document, because it was answered or will not be; false if there was none.
    @discardableResult
    mutating func remove(_ documentID: String) -> Bool {
        guard let count = counts[ExactText(documentID)] else {
            guard let index = refused.firstIndex(where: { $0.isExactly(documentID) }) else { return false }
            refused.remove(at: index)
            return true
        }
        counts[ExactText(documentID)] = count > 1 ? count - 1 : nil
        total -= 1
        return true
    }

    /// Notes that a received revision was refused: the peer may send it once more without being asked (replication.md §9.2).
    mutating func refuse(_ documentID: String) {
        refused.append(documentID)
        if refused.count > ReplicationTuning.refusalsRemembered { refused.removeFirst() }
    }
}
