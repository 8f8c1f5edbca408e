package import LoveseatModel

/// The databases of a peer that is not a Loveseat. The simulator looks into them as it looks into those of the others.
package protocol ForeignDatabases: AnyObject {
    func documentIDs(in collection: CollectionName) -> [String]
    /// A document under the peer's own rule; nil if there is none.
    func tree(_ id: String, in collection: CollectionName) -> RevisionTree?
    /// The current revision of a document.
    func winner(_ id: String, in collection: CollectionName) -> RevisionID?
    /// The documents that changed since the last call.
    func drainChanges(in collection: CollectionName) -> [String]
    /// Edits a document, as somebody does there. `digest`: that of the new revision.
    func edit(_ id: String, in collection: CollectionName, body: JSONText, isDeleted: Bool, digest: [UInt8])
    func compact()
}
