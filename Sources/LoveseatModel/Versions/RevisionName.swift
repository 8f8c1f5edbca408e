/// The name of a revision in a message of a peer that has version vectors: a version, or the ID of a revision of a tree
/// (version-vectors.md §4, §8).
package enum RevisionName: Hashable, Sendable, CustomStringConvertible {
    /// A version, such as `18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmw`.
    case version(Version)
    /// A revision of a tree, such as `2-bb`, of a document that nobody has edited since it has version vectors.
    case revision(RevisionID)

    /// Creates a name from its text.
    ///
    /// - Throws: ``VersionError`` if the text is neither a version nor a revision ID as Couchbase's peers make them.
    package init(_ text: some StringProtocol) throws(VersionError) {
        var reader = try VersionReader(text)
        self = try reader.name()
        try reader.end()
    }

    /// Creates a name from the text of a name or of a whole vector, whose first version names the state.
    ///
    /// - Throws: ``VersionError`` if the text is not valid.
    package init(first text: some StringProtocol) throws(VersionError) {
        guard let name = try StateHistory(text).name else { throw VersionError(.missingVersion, at: 0) }
        self = name
    }

    /// The name as text.
    package var text: String {
        switch self {
        case .version(let version): version.text
        case .revision(let id): id.text
        }
    }

    /// The ID in a tree; nil for a version.
    package var treeID: RevisionID? {
        switch self {
        case .revision(let id): id
        case .version: nil
        }
    }

    /// The name as ``text``.
    package var description: String { text }

    /// Whether both names mean the same state: they are equal, or one is the version that stands for the other (version-vectors.md §8).
    package func isEquivalent(to other: RevisionName) -> Bool {
        switch (self, other) {
        case (.version(let version), .revision(let id)), (.revision(let id), .version(let version)):
            id.encodedVersion == version
        case (.version, .version), (.revision, .revision):
            self == other
        }
    }
}
