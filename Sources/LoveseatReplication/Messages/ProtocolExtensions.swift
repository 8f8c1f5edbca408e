import LoveseatBLIP

/// What this build says beyond the protocol (docs/extensions.md). Other peers ignore the property.
struct ProtocolExtensions: Hashable {
    static let property = "loveseat"
    /// Of `getAttachment`: the first byte wanted.
    static let blobOffset = "loveseat_offset"
    static let none = ProtocolExtensions(
        closesBranches: false,
        resumesBlobs: false,
        announcesLateDeletions: false
    )

    private static let closedBranches = "closed-branches"
    private static let blobOffsets = "blob-offsets"
    private static let lateDeletions = "late-deletions"
    static let all = "\(closedBranches),\(blobOffsets),\(lateDeletions)"

    /// It takes a `deleted_branch` with a revision.
    let closesBranches: Bool
    /// It sends a blob from any byte on.
    let resumesBlobs: Bool
    /// To a peer that wants no tombstones it announces those that are made after it subscribed.
    let announcesLateDeletions: Bool

    private init(closesBranches: Bool, resumesBlobs: Bool, announcesLateDeletions: Bool) {
        self.closesBranches = closesBranches
        self.resumesBlobs = resumesBlobs
        self.announcesLateDeletions = announcesLateDeletions
    }

    /// Reads what a peer says; nil if it says nothing.
    init?(_ message: Message) {
        guard let names = message.properties[Self.property]?.split(separator: ",") else { return nil }
        self.init(
            closesBranches: names.contains { $0 == Self.closedBranches },
            resumesBlobs: names.contains { $0 == Self.blobOffsets },
            announcesLateDeletions: names.contains { $0 == Self.lateDeletions }
        )
    }
}

extension ReplicationSession {
    /// Notes what the peer knows beyond the protocol, if the message says.
    mutating func learn(_ message: Message) {
        guard let extensions = ProtocolExtensions(message) else { return }
        peer = extensions
        for index in collections.indices { collections[index].pull.resumesBlobs = extensions.resumesBlobs }
    }
}
