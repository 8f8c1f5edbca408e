import Loveseat
import PhotoDropCore
import Synchronization

/// Decides which documents a session takes, before their photos are transferred.
package final class DropFilter: Sendable {
    private let limits: ReceiverLimits
    /// Whether only the first sender may send.
    private let isForOneSender: Bool
    /// Whether senders may take back what they have sent.
    private let allowsRecall: Bool
    /// Whether metadata is removed, which is possible for JPEG and PNG only.
    private let strips: Bool
    private let freeBytes: @Sendable () -> UInt64?
    private let state = Mutex(State())

    private struct Admitted {
        let photo: BlobDigest?
        /// The photo, its thumbnail, and whatever else other programs attach.
        var blobs: Set<BlobDigest> = []
    }

    private struct State {
        var photos: [String: Admitted] = [:]
        var others: Set<String> = []
        var bytes: UInt64 = 0
        var owner: SenderID?
        /// The sender that a connection belongs to.
        var connections: [String: SenderID] = [:]
    }

    package init(
        limits: ReceiverLimits,
        isForOneSender: Bool,
        allowsRecall: Bool,
        strips: Bool = false,
        freeBytes: @escaping @Sendable () -> UInt64?
    ) {
        self.limits = limits
        self.isForOneSender = isForOneSender
        self.allowsRecall = allowsRecall
        self.strips = strips
        self.freeBytes = freeBytes
    }

    /// The sender that a connection belongs to; nil before it has sent anything.
    package func sender(ofConnection name: String) -> SenderID? {
        state.withLock { $0.connections[name] }
    }

    /// Forgets a connection that has ended.
    package func forgetConnection(_ name: String) { state.withLock { $0.connections[name] = nil } }

    /// Counts a document that was stored by an earlier process.
    package func restore(_ document: Document) {
        let blobs = ReceivedPhoto.blobs(of: document).map(\.blob)
        state.withLock { state in
            if blobs.isEmpty {
                state.others.insert(document.id)
            } else {
                Self.admit(document.id, ReceivedPhoto(document)?.blob.digest, blobs, &state)
            }
        }
    }

    /// Whether a blob that is transferred is a photo, and not the thumbnail of one.
    package func isPhoto(_ transfer: BlobTransfer) -> Bool {
        guard let id = transfer.documentID, let photo = state.withLock({ $0.photos[id]?.photo }) else {
            return true
        }
        return transfer.digest == photo
    }

    /// The error that a sender gets for a document; nil if the document is taken.
    package func refusal(_ peer: PeerIdentity, _ document: Document, _ flags: DocumentFlags) -> LoveseatError?
    {
        if flags.contains(.deleted) { return refusal(ofRecalled: document.id) }
        guard document.json.bytes.count <= limits.documentBytes else {
            return LoveseatError(
                .tooLarge,
                "\(document.id) is larger than \(limits.documentBytes) bytes, the limit of this session"
            )
        }
        let sender = document["sender"]?.string.flatMap { SenderID($0) }
        if let error = claim(sender, peer, document.id) { return error }
        let blobs = ReceivedPhoto.blobs(of: document).map(\.blob)
        return blobs.isEmpty ? refusal(ofOther: document) : refusal(ofPhoto: document, blobs)
    }

    /// Nobody can read the ID of a photo, which contains the ID of its sender: a sender that knows it has sent the photo.
    private func refusal(ofRecalled id: String) -> LoveseatError? {
        guard allowsRecall, SenderID(documentID: id) != nil, state.withLock({ $0.photos[id] != nil }) else {
            return LoveseatError(.httpForbidden, "\(id) cannot be withdrawn")
        }
        return nil
    }

    /// The same for CouchDB's wire, where a document with attachments is judged twice: by what its sender says of them, and when
    /// they are here, with their digests. Only then it counts.
    package func couchDBRefusal(_ peer: PeerIdentity, _ document: Document, _ flags: DocumentFlags)
        -> LoveseatError?
    {
        let attachments = document["_attachments"]?.object ?? [:]
        guard !flags.contains(.deleted), attachments.contains(where: { $1["stub"]?.bool != true }) else {
            return refusal(peer, document, flags)
        }
        var sum: UInt64 = 0
        for (name, attachment) in attachments {
            guard let length = attachment["length"]?.int.flatMap({ UInt64(exactly: $0) }) else {
                return LoveseatError(.httpForbidden, "\(name) does not say how long it is")
            }
            guard length <= limits.photoBytes else {
                return LoveseatError(
                    .tooLarge,
                    "\(name) is larger than \(limits.photoBytes >> 20) MB, the limit of this session"
                )
            }
            sum += length
        }
        return refusal(ofBytes: sum)
    }

    /// Notes whose connection it is. With one sender, the first one owns the session.
    private func claim(_ sender: SenderID?, _ peer: PeerIdentity, _ id: String) -> LoveseatError? {
        state.withLock { state in
            if isForOneSender {
                guard let sender, state.owner ?? sender == sender else {
                    return LoveseatError(.httpForbidden, "another sender uses this session: \(id)")
                }
                state.owner = sender
            }
            if let sender, let name = peer.name { state.connections[name] = sender }
            return nil
        }
    }

    private func refusal(ofOther document: Document) -> LoveseatError? {
        if let batch = BatchDocument(document), !batch.isDone, let error = refusal(ofBytes: batch.bytes) {
            return error
        }
        return state.withLock { state in
            guard state.others.contains(document.id) || state.others.count < limits.otherDocuments else {
                return LoveseatError(.httpForbidden, "the session takes no more documents: \(document.id)")
            }
            state.others.insert(document.id)
            return nil
        }
    }

    private func refusal(ofPhoto document: Document, _ blobs: [BlobReference]) -> LoveseatError? {
        let name = document["name"]?.string.map { String($0.prefix(80)) } ?? document.id
        guard blobs.allSatisfy({ $0.length != nil }) else {
            return LoveseatError(.httpForbidden, "\(name) does not say how long it is")
        }
        guard blobs.allSatisfy({ $0.length ?? 0 <= limits.photoBytes }) else {
            return LoveseatError(
                .tooLarge,
                "\(name) is larger than \(limits.photoBytes >> 20) MB, the limit of this session"
            )
        }
        let received = ReceivedPhoto(document)
        if strips, let received, received.type != .jpeg, received.type != .png {
            return LoveseatError(
                .httpForbidden,
                "\(name) is neither JPEG nor PNG, and the receiver removes the metadata of photos"
            )
        }
        let photo = received?.blob.digest
        let known = state.withLock { $0.photos[document.id] }
        if let known, known.photo != photo {
            return LoveseatError(.httpForbidden, "\(name) is here already with another content")
        }
        // A sender that was started again may have another thumbnail, or none.
        let added = blobs.filter { known?.blobs.contains($0.digest) != true }
        if known != nil, added.isEmpty { return nil }
        if let error = refusal(ofBytes: added.reduce(0) { $0 + ($1.length ?? 0) }) { return error }
        return state.withLock { state in
            guard known != nil || state.photos.count < limits.photos else {
                return LoveseatError(.httpForbidden, "the session takes \(limits.photos) photos: not \(name)")
            }
            Self.admit(document.id, photo, added, &state)
            return nil
        }
    }

    private static func admit(
        _ id: String,
        _ photo: BlobDigest?,
        _ blobs: [BlobReference],
        _ state: inout State
    ) {
        state.photos[id, default: Admitted(photo: photo)].blobs.formUnion(blobs.map(\.digest))
        state.bytes += blobs.reduce(0) { $0 + ($1.length ?? 0) }
    }

    private func refusal(ofBytes bytes: UInt64) -> LoveseatError? {
        let used = state.withLock { $0.bytes }
        let (sum, overflow) = used.addingReportingOverflow(bytes)
        guard !overflow, sum <= limits.sessionBytes else {
            return LoveseatError(.diskFull, "the session takes \(limits.sessionBytes >> 30) GB in all")
        }
        guard let free = freeBytes() else { return nil }
        guard free >= limits.freeBytes, free - limits.freeBytes >= bytes else {
            return LoveseatError(.diskFull, "the receiver's disk is full")
        }
        return nil
    }
}

extension LoveseatError.Code {
    /// HTTP 413.
    package static let tooLarge = LoveseatError.Code(10_413)
    /// HTTP 507.
    package static let diskFull = LoveseatError.Code(10_507)
    /// HTTP 503: too many senders.
    package static let serviceUnavailable = LoveseatError.Code(10_503)
}
