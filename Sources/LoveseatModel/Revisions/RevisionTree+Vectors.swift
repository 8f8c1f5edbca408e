/// The vectors of revisions.
extension RevisionTree {
    /// Adds a vector to those of a revision. Two vectors of one revision are united.
    package mutating func addVector(_ vector: VersionVector, of id: RevisionID) {
        // Revisions that are not here, or that no peer with versions has seen, have none.
        if !contains(id) || vector.isEmpty { return }
        vectors[id] = vectors[id]?.united(with: vector) ?? vector
    }

    /// Forgets the vectors of revisions that are not here any more.
    mutating func forgetVectors() {
        if vectors.isEmpty { return }
        vectors = vectors.filter { nodes[$0.key] != nil }
    }
}

extension RevisionID {
    /// The beginning of the text from which names of versions are computed. Another format of the name has another number here.
    private static let versionFormat = "loveseat vv 1"
    private static let versionDigestLength = 20

    /// Creates the ID that a version gets in a tree, so that peers with trees can be told of it. Every database gives the same version on top
    /// of the same parent the same ID.
    ///
    /// The parent is part of the name, because it depends on what a database knows: one ID with two parents would be a contradiction wherever
    /// two trees meet. A version with two IDs is one state (``CurrentRevisionRule``). The ID is nil if the parent has the last generation.
    package init?(version: Version, documentID: String, parent: RevisionID?, sha256: ([UInt8]) -> [UInt8]) {
        let (generation, overflow) = (parent?.generation ?? 0).addingReportingOverflow(1)
        if overflow { return nil }
        let text = "\(Self.versionFormat)\n\(documentID)\n\(version.text)\n\(parent?.text ?? "")"
        self.init(
            generation: generation,
            digest: sha256(Array(text.utf8)).prefix(Self.versionDigestLength)
        )
    }
}
