import LoveseatAssertions
import LoveseatModel

extension LiteDatabase {
    /// The answer to an announced revision.
    enum ChangeVerdict: Hashable {
        case unwanted
        case wanted(ancestors: [String])
        /// A passive peer refuses it.
        case conflict
        /// The whole list cannot be answered, because of a mistake of Couchbase Lite (version-vectors.md, correction 14).
        case failure
    }

    /// Judges an announced revision, and notes that the remote has it if it is not wanted (version-vectors.md §11.1).
    func verdict(
        onAnnounced state: StateHistory,
        isDeleted: Bool,
        _ id: String,
        in collection: String,
        remote: Int,
        isActive: Bool
    ) -> ChangeVerdict {
        guard let document = collections[collection]?.documents[id] else { return .wanted(ancestors: []) }
        let current = document.current
        if current.legacyID != nil, !document.isTreeRecord { return .failure }
        switch relation(ofAnnounced: state, to: current) {
        case .same, .older:
            note(state, isDeleted: isDeleted, of: document, id, in: collection, remote: remote)
            return .unwanted
        case .newer: return .wanted(ancestors: document.ancestorsForAnswer)
        case .conflict: return isActive ? .wanted(ancestors: document.ancestorsForAnswer) : .conflict
        }
    }

    private func note(
        _ state: StateHistory,
        isDeleted: Bool,
        of document: LiteDocument,
        _ id: String,
        in collection: String,
        remote: Int
    ) {
        guard let identity = state.identity else { return impossible("an announcement without a revision") }
        var revision = LiteRevision(identity, isDeleted: isDeleted, body: nil)
        if document.remotes[remote]?.revision.name == revision.name { return }
        if document.current.name == revision.name { revision = document.current }
        setRemote(LiteDocument.Remote(revision: revision), remote, of: id, in: collection)
    }

    /// How what was announced is related to the own revision, as Couchbase Lite compares them.
    private func relation(ofAnnounced state: StateHistory, to own: LiteRevision) -> StateRelation {
        guard let current = own.vector.current else {
            guard let id = own.legacyID else { return .newer }
            return relation(ofAnnounced: state, toLegacy: id)
        }
        if state.vector.isEmpty {
            // Only the history that comes with the revision decides, unless the own version stands for a legacy revision.
            guard current.source == .revisionTree, let announced = state.revisions.first?.encodedVersion
            else {
                return .newer
            }
            // The comparison is the wrong way round: what is newer is not asked for, and what is older is.
            return announced.time < current.time ? .newer : .older
        }
        return state.vector.relation(to: own.vector)
    }

    private func relation(ofAnnounced state: StateHistory, toLegacy own: RevisionID) -> StateRelation {
        if let version = state.vector.current {
            guard version.source == .revisionTree, let encoded = own.encodedVersion else { return .newer }
            return version.time == encoded.time ? .same : version.time > encoded.time ? .newer : .older
        }
        guard let announced = state.revisions.first else { return .older }
        if announced == own { return .same }
        if announced.generation == own.generation { return .conflict }
        return announced.generation > own.generation ? .newer : .older
    }

    /// The answer to a proposed revision.
    enum ProposalVerdict: Hashable {
        case accepted
        case alreadyPresent
        /// The whole current vector, or the ID; empty if there is no document.
        case conflict(String)
    }

    /// Judges a proposed revision (version-vectors.md §11.2).
    func verdict(onProposed revision: String, parent: String, _ id: String, in collection: String)
        -> ProposalVerdict
    {
        guard let document = collections[collection]?.documents[id] else {
            return parent.isEmpty ? .accepted : .conflict("")
        }
        if document.current.isNamed(revision) { return .alreadyPresent }
        if !parent.isEmpty, document.current.isNamed(parent) { return .accepted }
        if parent.isEmpty, document.current.isDeleted { return .accepted }
        return .conflict(document.current.wholeText)
    }
}
