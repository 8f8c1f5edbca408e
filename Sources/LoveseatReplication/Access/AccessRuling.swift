package import LoveseatModel

/// A document as it is stored, for an ``AccessRuling``.
package protocol RuledDocument {
    var id: String { get }
    /// The current revision.
    var revision: RevisionID { get }
    var isDeleted: Bool { get }
    var body: JSONText { get }
    /// Whether anything but the current revision is known.
    var hasTree: Bool { get }
    func tree() throws(LoveseatError) -> RevisionTree
}

/// Decides what one peer may read and write in one collection, whatever the wire. No other code compares a peer with a document.
///
/// A ruling is made for one request, page or batch: it asks the app's policy about each revision once, and keeps the answers. It is used
/// outside transactions, since the policy may use the database.
///
/// - A revision is decided on by its own content, and a document by its current revision.
/// - A deletion is decided on by the revision that it deletes, as long as that is here. A peer that was sent a document may also read a
///   deletion that has no content.
/// - A peer may write a revision if it may write the current one, the new one, every revision that comes with it, and the nearest ancestor of
///   which the content is here. It may not go on from content beside the current revision that it may not write, nor decide about it.
package struct AccessRuling: Sendable {
    private let answers: PolicyAnswers

    /// `policy`: called with nil for the collection as a whole.
    package init(policy: @escaping @Sendable (FilterCandidate?) -> AccessRight) {
        answers = PolicyAnswers(policy)
    }

    /// Whether the collection exists for the peer.
    package var mayReadCollection: Bool { answers.collection >= .read }

    // MARK: Reading

    /// Whether a document exists for the peer.
    ///
    /// `wasSent`: whether the peer was sent the document. Asked only where that decides.
    package func mayRead(_ document: some RuledDocument, wasSent: () throws -> Bool) throws -> Bool {
        if try answers.right(to: FilterCandidate(deciding: document)) >= .read { return true }
        guard document.isDeleted, document.body == .emptyObject, mayReadCollection else { return false }
        return try wasSent()
    }

    /// Whether the peer may have a revision's content.
    package func mayRead(_ revision: FilterCandidate) -> Bool { answers.right(to: revision) >= .read }

    /// Whether the peer may have a revision's content, given the document as it is now; nil if it is gone.
    package func mayRead(
        _ revision: FilterCandidate,
        of document: (some RuledDocument)?,
        wasSent: () throws -> Bool
    ) throws -> Bool {
        if revision.isDeleted, let document, revision.revision == .revision(document.revision) {
            return try mayRead(document, wasSent: wasSent)
        }
        return mayRead(revision)
    }

    /// Whether the peer may have an older revision, or one beside the current one, as the base of another one.
    package func mayBuild(
        on revision: FilterCandidate,
        of document: some RuledDocument,
        wasSent: () throws -> Bool
    ) throws -> Bool {
        guard try mayRead(document, wasSent: wasSent) else { return false }
        return revision.revision == .revision(document.revision) || mayRead(revision)
    }

    /// Whether the peer may have a revision with its content as a part of a document's tree. Trees are exchanged whole, so a deletion without
    /// content goes along even if the peer may not read the revision that it deletes: it says only that a line was deleted.
    package func maySend(_ node: RevisionTree.Node, of id: String) -> Bool {
        FilterCandidate(node, of: id).map(maySend) ?? true
    }

    /// Whether the peer may have a revision as a part of a document that it may read.
    package func maySend(_ revision: FilterCandidate) -> Bool {
        if revision.isDeleted, revision.body == .emptyObject { return true }
        return mayRead(revision)
    }

    /// A change of a peer's access to a document that it was sent.
    package enum AccessChange: Hashable, Sendable { case lost, regained }

    /// Whether a peer that was sent a document has lost it, or may read it again; nil if nothing has changed. A deleted document is not lost:
    /// the peer gets the deletion.
    package func change(of document: some RuledDocument, wasLost: Bool) throws -> AccessChange? {
        if document.isDeleted { return nil }
        let mayRead = mayRead(try FilterCandidate(deciding: document))
        return wasLost == mayRead ? (wasLost ? .regained : .lost) : nil
    }

    // MARK: Writing

    /// The decision about a revision that a peer wants to write.
    package struct WriteRuling: Sendable {
        package let mayWrite: Bool
        /// Content of the document about which the peer may not decide.
        package var foreign = ForeignContent()
    }

    /// Decides whether the peer may write a revision. `document`: as it is now; nil if there is none.
    package func write(_ change: Change, over document: (some RuledDocument)?) throws -> WriteRuling {
        let refused = WriteRuling(mayWrite: false)
        guard let document else {
            return WriteRuling(mayWrite: mayWrite(change.candidate(over: nil)) && mayWriteTree(of: change))
        }
        // A tombstone has no content to decide by. A peer that may write the deleted document may delete it, and create it again.
        guard mayWrite(try FilterCandidate(deciding: document)) else { return refused }
        guard change.isDeleted || mayWrite(change.candidate(over: document.revision)) else { return refused }
        let tree = try document.tree()
        guard mayWriteTree(of: change, besides: tree),
            change.ancestors(in: tree, current: document.revision).first.map(mayWrite) ?? true
        else { return refused }
        let foreign = foreignContent(of: change.id, in: tree)
        return WriteRuling(mayWrite: !change.goesOn(from: foreign.revisions, in: tree), foreign: foreign)
    }

    private func mayWrite(_ revision: FilterCandidate) -> Bool { answers.right(to: revision) >= .write }

    /// Whether the peer may write the tree that it sends with a revision, which becomes a part of the document, unless it is that already.
    private func mayWriteTree(of change: Change, besides known: RevisionTree? = nil) -> Bool {
        (change.knowledge?.nodes ?? []).allSatisfy { node in
            guard !node.isDeleted, known?.node(node.id)?.body == nil,
                let revision = FilterCandidate(node, of: change.id)
            else { return true }
            return mayWrite(revision)
        }
    }

    /// Candidates beside the current revision that the peer may not write.
    private func foreignContent(of id: String, in tree: RevisionTree) -> ForeignContent {
        if tree.isLine { return ForeignContent() }
        let current = tree.current.map { tree.original($0.id) }
        let candidates = tree.open(among: tree.candidates)
        let foreign = candidates.filter { candidate in
            guard candidate.original != current, !candidate.node.isDeleted,
                let content = FilterCandidate(candidate.node, of: id)
            else { return false }
            return !mayWrite(content)
        }
        return ForeignContent(foreign, besides: Set(candidates).subtracting(foreign), in: tree)
    }

    /// Whether a peer that may write a change also has the content to which the change refers: it has sent it, or may read it in an ancestor.
    /// A digest alone does not give access. Stubs may stand for content of any ancestor, so the peer has to have all of them.
    package func mayRefer(_ change: Change, over document: (some RuledDocument)?) throws -> Bool {
        let needed = Set(BlobReference.all(in: change.body).map(\.digest)).subtracting(change.received)
        if !change.hasStubs, needed.isEmpty { return true }
        guard let document else { return needed.isEmpty }
        let ancestors = change.ancestors(in: try document.tree(), current: document.revision)
        let readable = ancestors.filter { mayRead($0) }
        if change.hasStubs, readable.count < ancestors.count { return false }
        return needed.isSubset(of: readable.flatMap { BlobReference.all(in: $0.body).map(\.digest) })
    }
}

extension FilterCandidate {
    /// Creates the revision that decides about a document: for a deleted one, the revision that was deleted, if its content is here.
    init(deciding document: some RuledDocument) throws {
        guard document.isDeleted, document.hasTree,
            let deleted = try document.tree().deleted(by: document.revision),
            let candidate = FilterCandidate(deleted, of: document.id)
        else {
            self.init(
                documentID: document.id,
                revision: .revision(document.revision),
                isDeleted: document.isDeleted,
                body: document.body
            )
            return
        }
        self = candidate
    }

    /// Creates a candidate from a node; nil if the node's body is not here.
    package init?(_ node: RevisionTree.Node, of id: String) {
        guard let body = node.body else { return nil }
        self.init(documentID: id, revision: .revision(node.id), isDeleted: node.isDeleted, body: body)
    }
}
