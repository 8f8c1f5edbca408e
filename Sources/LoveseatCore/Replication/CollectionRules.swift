package import LoveseatModel
package import LoveseatReplication
package import LoveseatStorage

/// An app's settings for the replication of one collection.
package struct CollectionRules: Sendable {
    /// Returns whether a revision is let through. The second argument: whether the peer takes the document away.
    package typealias Filter = @Sendable (FilterCandidate, Bool) -> Bool

    /// The only documents to push; nil for all. The peer decides which documents are pulled.
    package var documentIDs: DocumentSet?
    package var pushFilter: Filter?
    package var pullFilter: Filter?
    /// Whether a document that the peer takes away is purged even if it has an edit that was not pushed.
    package var purgesUnpushedEdits = false
    /// Whether the app's resolver decides between two versions of a document, and not the rule.
    package var asksResolver = false

    package init() {}

    func admits(_ candidate: FilterCandidate, isAccessRemoved: Bool = false) -> Bool {
        pullFilter?(candidate, isAccessRemoved) ?? true
    }

    /// A tree without content if the app's filter does not let all of it in. Called outside transactions.
    func admitted(_ knowledge: TreeKnowledge, of id: String) -> TreeKnowledge {
        if pullFilter == nil { return knowledge }
        let isAdmitted = knowledge.nodes.allSatisfy { node in
            FilterCandidate(node, of: id).map { admits($0) } ?? true
        }
        return isAdmitted ? knowledge : knowledge.keepingBody(of: nil)
    }
}

extension FilterCandidate {
    package init(_ record: DocumentRecord) {
        self.init(
            documentID: record.id,
            revision: .revision(record.revision),
            isDeleted: record.isDeleted,
            body: record.body
        )
    }
}
