package import LoveseatModel

/// A change that a peer announced.
package struct AnnouncedChange: Hashable, Sendable {
    /// What flags may be added up of (replication.md §B.1).
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        package static let deleted = Flags(rawValue: 1)
        package static let accessLost = Flags(rawValue: 2)
        package static let leftChannel = Flags(rawValue: 4)
    }

    package let sequence: RemoteSequence
    package let documentID: String
    package let revision: RevisionID
    package let flags: Flags
    /// In bytes; 0 if the peer did not say.
    package let bodySize: Int
    /// The digest of what the peer knows of the document beside its line; nil if that is nothing.
    package var knowledge: String?
    /// Why the revision cannot be had; nil if nothing is wrong with the entry.
    package var defect: String?
    /// It became so after the place from which this session pulls.
    package var isNews = false

    /// The peer may announce it for what it was, and not for what it has now: the deletion with which a document left a channel stays in
    /// that channel's feed when the document is there again.
    package var mayBeOld: Bool { flags.contains(.leftChannel) && !isNews }

    package init(
        sequence: RemoteSequence,
        documentID: String,
        revision: RevisionID,
        flags: Flags = [],
        bodySize: Int = 0
    ) {
        self.sequence = sequence
        self.documentID = documentID
        self.revision = revision
        self.flags = flags
        self.bodySize = bodySize
    }

    /// The peer takes the document away rather than sending it (replication.md Part B).
    package var isRemoval: Bool { flags.rawValue > 1 && flags != [.deleted, .leftChannel] }
}

/// A change that a peer proposes.
package struct ProposedChange: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionID
    /// The one that the proposal is to go on top of; nil for none.
    package let serverRevision: RevisionID?
    /// In bytes; 0 if the peer did not say.
    package let bodySize: Int
    /// See ``AnnouncedChange/knowledge``.
    package var knowledge: String?

    package init(documentID: String, revision: RevisionID, serverRevision: RevisionID?, bodySize: Int) {
        self.documentID = documentID
        self.revision = revision
        self.serverRevision = serverRevision
        self.bodySize = bodySize
    }
}
