/// The names and vectors of revisions for peers that have versions (docs/decisions/0015).
///
/// A revision without a vector has an implicit one: the version that stands for its ID (``RevisionID/encodedVersion``), with the vector of its
/// nearest ancestor that has one.
extension RevisionTree {
    /// The version that names a revision; nil if a revision without a vector has an ID that no version stands for.
    package func version(of id: RevisionID) -> Version? { vectors[id]?.current ?? id.encodedVersion }

    /// The state of the document in a revision, as a peer with versions is told of it.
    ///
    /// Behind a vector stand the ancestors from before the first vector, the newest first. A revision of a document that never had a version is
    /// named by its ID. A revision without a vector on top of one with a vector was made by a peer with trees. It gets the version that stands
    /// for its ID on top of that vector, because to name it by its ID would be a conflict for every peer that has the other one.
    package func state(of id: RevisionID) -> StateHistory {
        let line = line(id)
        let places = vectors.isEmpty ? [] : line.indices.filter { vectors[line[$0]] != nil }
        guard let first = places.first, let last = places.last, var vector = vectors[line[first]]
        else { return StateHistory(VersionVector(), revisions: line) }
        // An ancestor's vector may have grown since the edit was made.
        for place in places.dropFirst() { vector = vectors[line[place]].map(vector.including) ?? vector }
        let older = Array(line[(last + 1)...])
        if first == 0 { return StateHistory(vector, revisions: older) }
        guard let version = id.encodedVersion,
            let edited = try? vector.edited(by: version.source, at: version.time)
        else {
            // The ID has no version, or a later one of these stands in the vector already.
            return StateHistory(VersionVector(), revisions: line)
        }
        return StateHistory(edited, revisions: older)
    }

    /// The vector on which an edit of a revision is made. It is empty for the first revision, which has no parent.
    ///
    /// Over a revision without any vector this is the version that stands for the revision, so that the edit includes it for every peer.
    package func vectorToEdit(_ parent: RevisionID?) -> VersionVector {
        guard let parent else { return VersionVector() }
        let vector = state(of: parent).vector
        return vector.isEmpty ? parent.encodedVersion.map { VersionVector($0) } ?? vector : vector
    }

    /// The revision that a peer means by a name: one that has this version or this ID, or for which one of the two stands. Of several revisions
    /// with one version, which are the same state, the highest.
    package func node(named name: RevisionName) -> RevisionID? {
        let version: Version?
        switch name {
        case .version(let named): version = named
        case .revision(let id):
            if contains(id) { return id }
            version = id.encodedVersion
        }
        guard let version else { return nil }
        if let id = vectors.filter({ $0.value.current == version }).keys.max() { return id }
        // A revision ID that stands for another one of the same generation and the same first digits is not its name.
        guard case .version = name, version.source == .revisionTree else { return nil }
        return nodes.keys.filter { $0.encodedVersion == version }.max()
    }

    /// Adds a vector to those of a revision. Two vectors of one revision are united.
    package mutating func addVector(_ vector: VersionVector, of id: RevisionID) {
        guard contains(id), !vector.isEmpty else { return }
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
