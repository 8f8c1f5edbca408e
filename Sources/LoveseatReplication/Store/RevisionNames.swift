package import LoveseatModel

extension RevisionName {
    /// A name that no revision has. It stands for one that a peer did not name, or whose name is not known.
    package static let unknown = RevisionName.revision(RevisionID(generation: 1, digest: []))

    /// Creates the name by which a peer knows a revision of this database. `state`: as it is told of it, if it has version vectors.
    package init(of revision: RevisionID, _ state: StateHistory?) {
        self = state?.name ?? .revision(revision)
    }

    /// Creates a name from its stored text. Unlike in messages of a peer with version vectors, digests need not be hexadecimal.
    package init?(stored text: String) {
        guard let name = RevisionID(text).map({ RevisionName.revision($0) }) ?? (try? RevisionName(text))
        else {
            return nil
        }
        self = name
    }
}

extension StateHistory {
    /// Creates the state of a document of which only a revision of a tree is known.
    package init(_ revision: RevisionID) { self.init(VersionVector(), revisions: [revision]) }

    /// Creates the state that a list names. `vector`: the whole vector, if the list names that.
    init(announced name: RevisionName, _ vector: VersionVector?) {
        switch name {
        case .version(let version): self.init(vector ?? VersionVector(version))
        case .revision(let id): self.init(id)
        }
    }

    /// The newest revision of a tree, for peers with trees; nil for a state with a vector.
    package var treeID: RevisionID? { name?.treeID }
}

/// A revision of this database, with the name by which the peer knows it.
package struct NamedRevision: Hashable, Sendable {
    package let id: RevisionID
    package let name: RevisionName

    package init(_ change: LocalChange) { (id, name) = (change.revision, change.name) }

    package init(_ content: SendableRevision) { (id, name) = (content.revision, content.name) }
}
