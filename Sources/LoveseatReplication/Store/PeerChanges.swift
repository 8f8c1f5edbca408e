package import LoveseatModel

/// A change that a peer announced.
package struct AnnouncedChange: Hashable, Sendable {
    /// The flags of an announced change, which are added up (replication.md §B.1).
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        package static let deleted = Flags(rawValue: 1)
        package static let accessLost = Flags(rawValue: 2)
        package static let leftChannel = Flags(rawValue: 4)
    }

    package let sequence: RemoteSequence
    package let documentID: String
    package let revision: RevisionName
    /// The whole vector, if the peer announced more than the name.
    package var vector: VersionVector?
    package let flags: Flags
    /// In bytes; 0 if the peer did not say.
    package let bodySize: Int
    /// The digest of the peer's tree of the document; nil if that is only the line.
    package var knowledge: String?
    /// Why the entry cannot be used; nil if nothing is wrong with it.
    package var defect: String?
    /// The change was made after the sequence from which this session pulls.
    package var isNews = false

    /// Whether the announcement may be about an older state: the deletion with which a document left a channel stays in that channel's
    /// feed, even if the document is there again.
    package var mayBeOld: Bool { flags.contains(.leftChannel) && !isNews }

    package init(
        sequence: RemoteSequence,
        documentID: String,
        revision: RevisionName,
        flags: Flags = [],
        bodySize: Int = 0
    ) {
        self.sequence = sequence
        self.documentID = documentID
        self.revision = revision
        self.flags = flags
        self.bodySize = bodySize
    }

    /// The announced state, as far as the peer has described it.
    package var state: StateHistory { StateHistory(announced: revision, vector) }

    /// The peer takes the document away rather than sending it (replication.md Part B).
    package var isRemoval: Bool { flags.rawValue > 1 && flags != [.deleted, .leftChannel] }
}

/// A change that a peer proposes.
package struct ProposedChange: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionName
    /// See ``AnnouncedChange/vector``.
    package var vector: VersionVector?
    /// The revision on which the proposal is based; nil for none.
    package let serverRevision: RevisionName?
    /// In bytes; 0 if the peer did not say.
    package let bodySize: Int
    /// See ``AnnouncedChange/knowledge``.
    package var knowledge: String?

    package init(
        documentID: String,
        revision: RevisionName,
        serverRevision: RevisionName?,
        bodySize: Int
    ) {
        self.documentID = documentID
        self.revision = revision
        self.serverRevision = serverRevision
        self.bodySize = bodySize
    }

    /// The proposed state, as far as the peer has described it.
    package var state: StateHistory { StateHistory(announced: revision, vector) }
}
