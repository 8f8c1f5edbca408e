import LoveseatBLIP
import LoveseatModel

/// The protocol extensions that a side supports (docs/extensions.md). Other peers ignore the property.
struct ProtocolExtensions: Hashable {
    static let property = "loveseat"
    /// Of `getAttachment`: the first byte wanted.
    static let blobOffset = "loveseat_offset"
    /// Of `rev`: the first revision of the line, where the history does not reach it.
    static let origin = "loveseat_origin"
    /// Of `subChanges`, if the peer's extensions are not known yet: like `activeOnly`, for a peer that announces late deletions.
    static let activeOnly = "loveseat_active_only"
    /// Of `subChanges`: a filter that no peer has.
    static let noFilter = "loveseat/none"
    static let none = ProtocolExtensions(
        knowsTrees: false,
        resumesBlobs: false,
        announcesLateDeletions: false,
        takesTreeBlobs: false
    )

    /// Before version 2 (Loveseat 0.2.0), copies for hubs were recognised by their content.
    private static let trees = "trees-2"
    private static let blobOffsets = "blob-offsets"
    private static let lateDeletions = "late-deletions"
    private static let treeBlobs = "tree-blobs"
    static let all = "\(trees),\(blobOffsets),\(lateDeletions),\(treeBlobs)"

    /// It sends what it knows of a document's history, and accepts the same.
    let knowsTrees: Bool
    /// It sends a blob from any byte on.
    let resumesBlobs: Bool
    /// To a peer that wants no tombstones, it announces those that are made after the peer subscribed.
    let announcesLateDeletions: Bool
    /// It asks for the blobs of the leaves that a tree brings.
    let takesTreeBlobs: Bool

    private init(
        knowsTrees: Bool,
        resumesBlobs: Bool,
        announcesLateDeletions: Bool,
        takesTreeBlobs: Bool
    ) {
        self.knowsTrees = knowsTrees
        self.resumesBlobs = resumesBlobs
        self.announcesLateDeletions = announcesLateDeletions
        self.takesTreeBlobs = takesTreeBlobs
    }

    /// Reads the extensions that a peer names; nil if it names none.
    init?(_ text: String?) {
        guard let names = text?.split(separator: ",") else { return nil }
        self.init(
            knowsTrees: names.contains { $0 == Self.trees },
            resumesBlobs: names.contains { $0 == Self.blobOffsets },
            announcesLateDeletions: names.contains { $0 == Self.lateDeletions },
            takesTreeBlobs: names.contains { $0 == Self.treeBlobs }
        )
    }
}

extension ReplicationSession {
    /// Notes the peer's extensions, if the message names them.
    mutating func noteExtensions(_ message: Message) {
        noteExtensions(message.properties[ProtocolExtensions.property])
    }

    mutating func noteExtensions(_ text: String?) {
        let before = form.peer
        form.note(text)
        if form.peer == before { return }
        let (peer, kind) = (form.peer, form.peerKind)
        for index in collections.indices {
            collections[index].pull.incoming.resumesBlobs = peer.resumesBlobs
            collections[index].pull.peer = kind
            collections[index].push?.peer.kind = kind
            collections[index].push?.peer.takesTreeBlobs = peer.takesTreeBlobs
        }
    }
}
