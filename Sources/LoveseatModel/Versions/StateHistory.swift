/// The state of a document as a peer describes it: a vector, and the revisions of a tree that are older than it (version-vectors.md §8, §11.3).
///
/// A document without a vector is named by the first revision. A document that was made with vectors has no revisions.
package struct StateHistory: Hashable, Sendable {
    /// The vector; empty for a document that nobody has edited since it has vectors.
    package let vector: VersionVector
    /// Revisions of the tree, the newest first.
    package let revisions: [RevisionID]

    /// Creates a history from its parts.
    package init(_ vector: VersionVector, revisions: [RevisionID] = []) {
        self.vector = vector
        self.revisions = revisions
    }

    /// Creates a history from the text of a vector, of a version or of a revision ID, as peers announce and propose revisions
    /// (version-vectors.md §11).
    ///
    /// - Throws: ``VersionError`` for anything else. An empty text is an empty history.
    package init(_ text: some StringProtocol) throws(VersionError) {
        var reader = try VersionReader(text)
        if reader.isAtEnd {
            self.init(VersionVector())
        } else if reader.isAtRevision {
            let id = try reader.revision()
            try reader.end()
            self.init(VersionVector(), revisions: [id])
        } else {
            self.init(try reader.vector().vector)
        }
    }

    /// Creates a history from the properties `rev` and `history` of a message that carries a revision (version-vectors.md §11.3).
    ///
    /// - Throws: ``VersionError`` if `rev` does not name a single revision, or `history` is not what may follow it.
    package init(rev: some StringProtocol, history: (some StringProtocol)?) throws(VersionError) {
        let name = try RevisionName(rev)
        let rest = history ?? ""
        switch name {
        case .revision(let id):
            var reader = try VersionReader(rest)
            self.init(VersionVector(), revisions: [id] + (try reader.revisions()))
        case .version(let version):
            if rest.utf8.isEmpty {
                self.init(VersionVector(version))
            } else {
                // A semicolon in the history is the vector's. Without one, the current version alone stands before it.
                let separator = rest.utf8.contains(UInt8(ascii: ";")) ? ", " : "; "
                var reader = try VersionReader("\(version.text)\(separator)\(rest)")
                let (vector, revisions) = try reader.vector(withRevisions: true)
                self.init(vector, revisions: revisions)
            }
        }
    }

    /// Whether nothing is known of the document.
    package var isEmpty: Bool { vector.isEmpty && revisions.isEmpty }

    /// The name of the state: the current version, or the newest revision of a document without a vector; nil if there is neither.
    package var name: RevisionName? {
        vector.current.map { .version($0) } ?? revisions.first.map { .revision($0) }
    }

    /// The property `rev` of a message that carries this revision; nil for an empty history.
    package var rev: String? { name?.text }

    /// The property `history` of a message that carries this revision: everything but the name. It is nil if there is nothing else
    /// (version-vectors.md §11.3).
    package var history: String? {
        if vector.isEmpty { return Self.list(revisions.dropFirst().map(\.text)) }
        let older = vector.previous.map(\.text) + revisions.map(\.text)
        guard vector.isMerge else { return Self.list(older) }
        let merged = vector.mergeVersions.map(\.text).joined(separator: ", ")
        return Self.list(older).map { "\(merged); \($0)" } ?? "\(merged);"
    }

    private static func list(_ items: [String]) -> String? {
        items.isEmpty ? nil : items.joined(separator: ", ")
    }
}
