import LoveseatModel

extension LiteDatabase {
    /// A revision that a peer sent.
    struct Arrival {
        let id: String
        let collection: String
        let state: StateHistory
        let isDeleted: Bool
        let body: JSONObject
        let remote: Int
        /// Whether a conflict is stored beside the current revision. A passive peer refuses it instead.
        let allowsConflict: Bool
    }

    /// The fate of an arrival.
    enum Insertion: Hashable {
        case inserted
        /// It changes nothing.
        case alreadyPresent
        /// It waits for a resolution.
        case conflict
        case refused
        /// One of its versions lies too far ahead of the clock.
        case badTime
    }

    /// Stores a revision that arrived (version-vectors.md §11.5).
    func insert(_ arrival: Arrival) -> Insertion {
        guard (try? see(arrival.state.vector)) != nil else { return .badTime }
        guard let identity = arrival.state.identity else { return .refused }
        let revision = LiteRevision(identity, isDeleted: arrival.isDeleted, body: arrival.body)
        let mark = LiteDocument.Remote(revision: revision)
        guard var document = collections[arrival.collection]?.documents[arrival.id] else {
            // The legacy revisions behind a vector are dropped.
            var document = LiteDocument(revision, sequence: 0)
            document.remotes[arrival.remote] = mark
            store(document, arrival.id, in: arrival.collection)
            return .inserted
        }
        switch relation(of: arrival, to: document) {
        case .newer:
            if let legacy = document.current.legacyID { document.lastLegacy = legacy }
            document.current = revision
            document.isTreeRecord = false
            document.remotes[arrival.remote] = mark
            store(document, arrival.id, in: arrival.collection)
            return .inserted
        case .same, .older:
            setRemote(mark, arrival.remote, of: arrival.id, in: arrival.collection)
            return .alreadyPresent
        case .conflict:
            guard arrival.allowsConflict else { return .refused }
            let conflict = LiteDocument.Remote(revision: revision, isConflict: true)
            setRemote(conflict, arrival.remote, of: arrival.id, in: arrival.collection)
            return .conflict
        }
    }

    private func relation(of arrival: Arrival, to document: LiteDocument) -> StateRelation {
        let (own, vector) = (document.current, arrival.state.vector)
        let isMergeOfTheSame =
            vector.isMerge && own.vector.isMerge && vector.mergeVersions == own.vector.mergeVersions
        if isMergeOfTheSame, arrival.isDeleted == own.isDeleted, arrival.body == own.body { return .same }
        let relation = arrival.state.relationOfCouchbaseLite(to: document.history)
        guard relation == .conflict, release == .release41, own.isDeleted else { return relation }
        // A document that was deleted, and made anew where the tombstone was unknown (version-vectors.md §11.5, step 4).
        let isOfRemote = document.remotes[arrival.remote].map { $0.revision.name == own.name } ?? false
        let sources = Set(own.vector.versions)
        let isUnrelated =
            vector.versions.allSatisfy { !sources.contains($0) }
            && !(document.lastLegacy.map(arrival.state.revisions.contains) ?? false)
        return isOfRemote && isUnrelated ? .newer : relation
    }

    /// Notes what a remote database has. It takes no sequence. It ends a tree's record, unless it is but a flag: the first remote has the
    /// current revision.
    func setRemote(_ mark: LiteDocument.Remote, _ remote: Int, of id: String, in collection: String) {
        // The document may have been purged meanwhile.
        guard var document = collections[collection]?.documents[id] else { return }
        document.remotes[remote] = mark
        let isFlag = remote == 1 && document.current.name == mark.revision.name
        if !isFlag { document.isTreeRecord = false }
        collections[collection]?.documents[id] = document
    }
}

extension StateHistory {
    /// The identity of the state; nil for an empty history.
    var identity: LiteRevision.Identity? {
        vector.isEmpty ? revisions.first.map { .legacy($0) } : .vector(vector)
    }
}
