package import LoveseatModel

extension AccessRuling {
    /// A revision that a peer wants to write.
    package struct Change: Sendable {
        package let id: String
        /// The revision and its ancestors, newest first, as far as they are known. An edit whose revision is not made yet begins with its
        /// parent.
        package let history: [RevisionID]
        /// The name by which a peer sent the revision; nil for the first revision of the history.
        private(set) var name: RevisionName?
        /// The state that a peer with version vectors sent. Such a change has no history: what it goes on from are the revisions that the state
        /// includes.
        private(set) var state: StateHistory?
        package let isDeleted: Bool
        package let body: JSONText
        /// The tree that comes with the revision.
        package var knowledge: TreeKnowledge?
        /// Whether it takes attachments from its ancestors.
        package var hasStubs = false
        /// The metadata of attachments that are not in the body, as `_attachments` contains it.
        package var attachments = JSONObject()
        /// The content that came with it.
        package var received: Set<BlobDigest> = []

        package init(id: String, history: [RevisionID], isDeleted: Bool, body: JSONText) {
            self.id = id
            self.history = history
            self.isDeleted = isDeleted
            self.body = body
        }

        package init(_ revision: IncomingRevision) {
            self.init(
                id: revision.documentID,
                history: revision.line,
                isDeleted: revision.isDeleted,
                body: revision.body
            )
            (name, knowledge) = (revision.name, revision.knowledge)
            if case .state(let state) = revision.history { self.state = state }
        }

        /// The revision as a policy or a filter sees it. `current`: the document's current revision.
        package func candidate(over current: RevisionID?, body: JSONText? = nil) -> FilterCandidate {
            FilterCandidate(
                documentID: id,
                revision: name ?? (history.first ?? current).map { .revision($0) } ?? .unknown,
                isDeleted: isDeleted,
                body: body ?? self.body
            )
        }

        /// The live revisions in the history whose content is here, nearest first. `current`: what a change without a history goes on from.
        func ancestors(in tree: RevisionTree, current: RevisionID) -> [FilterCandidate] {
            let line = state.map(tree.included) ?? (history.isEmpty ? [current] : history)
            return line.compactMap { tree.node($0) }
                .filter { !$0.isDeleted }.compactMap { FilterCandidate($0, of: id) }
        }

        /// Whether the revision, or one in its tree, is new and descends from one of these.
        func goesOn(from ids: Set<RevisionID>, in tree: RevisionTree) -> Bool {
            if ids.isEmpty { return false }
            let parents = (knowledge?.nodes ?? []).filter { !tree.contains($0.id) }.compactMap(\.parent)
            if parents.contains(where: ids.contains) { return true }
            if let state, let name {
                return tree.versions.node(named: name) == nil
                    && tree.included(in: state).contains(where: ids.contains)
            }
            guard let revision = history.first, !tree.contains(revision) else { return false }
            return history.dropFirst().contains(where: ids.contains)
        }
    }
}

extension RevisionTree {
    /// The revisions that a state includes, the highest first.
    fileprivate func included(in other: StateHistory) -> [RevisionID] {
        nodes.keys.filter { id in
            let relation = other.relation(to: versions.state(of: id))
            return relation == .newer || relation == .same
        }.sorted(by: >)
    }
}

/// Content of a document that a peer may not write, and about which the peer may not decide.
package struct ForeignContent: Sendable {
    /// The candidates and all their copies.
    private(set) var revisions: Set<RevisionID> = []
    /// The candidates, their copies and the ancestors of both.
    private var lines: Set<RevisionID> = []
    /// The origins of documents of which the peer may write no candidate.
    private var origins: Set<RevisionID> = []

    init() {}

    init(
        _ candidates: [CurrentRevisionRule.Candidate],
        besides others: Set<CurrentRevisionRule.Candidate>,
        in tree: RevisionTree
    ) {
        if candidates.isEmpty { return }
        let originals = Set(candidates.map(\.original))
        revisions = originals.union(candidates.map(\.node.id))
        revisions.formUnion(tree.copies.keys.filter { originals.contains(tree.original($0)) })
        lines = Set(revisions.flatMap { tree.line($0) }).union(revisions)
        origins = Set(originals.map { tree.origin(of: $0) })
        origins.subtract(others.map { tree.origin(of: $0.original) })
    }

    /// Removes decisions about the content: that it is closed, is a copy of other content or the original of other content, or that other
    /// content belongs to its document. A version vector that includes the content would supersede it, so the peer's vectors go, too.
    package func removeDecisions(from knowledge: inout TreeKnowledge) {
        knowledge.closed.subtract(revisions)
        knowledge.vectors = [:]
        knowledge.copies = knowledge.copies.filter { copy in
            guard let name = CopyName(copy), !lines.contains(copy) else { return false }
            return !revisions.contains(where: name.isOf) && !origins.contains(where: name.isOfLine)
        }
    }
}
