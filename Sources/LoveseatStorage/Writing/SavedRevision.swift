package import LoveseatModel

/// A revision that was saved here.
package struct SavedRevision: Hashable, Sendable {
    package let revision: RevisionID
    package let sequence: UInt64
    /// Nil if the database makes no versions.
    package let version: Version?

    init(_ revision: RevisionID, _ sequence: UInt64, _ version: Version?) {
        (self.revision, self.sequence, self.version) = (revision, sequence, version)
    }
}
