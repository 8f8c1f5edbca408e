package import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// What an app wants replicated of one collection.
package struct CollectionRules: Sendable {
    /// Answers whether a revision is let through. The second argument: whether the peer takes the document away.
    package typealias Filter = @Sendable (FilterCandidate, Bool) -> Bool

    /// The only documents to push; nil for all. What is pulled is the peer's to choose.
    package var documentIDs: DocumentSet?
    package var pushFilter: Filter?
    package var pullFilter: Filter?
    /// Whether a document that the peer takes away goes with an edit that the peer has not got.
    package var purgesUnpushedEdits = false
    /// The app decides between two versions of a document, not the rule.
    package var asksResolver = false

    package init() {}
}

extension FilterCandidate {
    package init(_ record: DocumentRecord) {
        self.init(
            documentID: record.id,
            revision: record.revision,
            isDeleted: record.isDeleted,
            body: record.body
        )
    }

    /// A revision whose body may not be here; nil then.
    init?(_ node: RevisionTree.Node, of id: String) {
        guard let body = node.body else { return nil }
        self.init(documentID: id, revision: node.id, isDeleted: node.isDeleted, body: body)
    }
}
