import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// The blobs that the peer has requested (replication.md §11).
struct BlobReads: Sendable {
    /// By the numbers of the requests.
    private var all: [UInt64: BlobRead] = [:]
    /// Requests that wait because the maximum number of blobs is being sent, in order.
    private var waiting: [UInt64] = []

    /// Whether requests wait.
    var areWaiting: Bool { !waiting.isEmpty }

    /// Notes a request, which ``begin(for:from:_:_:)`` answers in its turn.
    mutating func add(
        _ request: GetAttachmentMessage,
        number: UInt64,
        in collection: Int,
        _ tuning: ReplicationTuning
    ) throws(ReplyError) {
        guard waiting.count < tuning.blobsWaiting else {
            throw ReplyError("HTTP", 503, "too many blobs are waiting to be sent")
        }
        all[number] = BlobRead(collection: collection, request: request, offset: request.offset)
        waiting.append(number)
    }

    /// Begins to send blobs that wait, as far as there is room: each takes a piece of memory until the peer has it.
    mutating func begin(
        for peer: ProtocolExtensions,
        from collections: CollectionSessions,
        _ tuning: ReplicationTuning,
        _ effects: inout SessionEffects
    ) {
        let most = peer == .none ? tuning.blobsSending : tuning.largeBlobsSending
        let window = peer == .none ? BLIPConnection.window : tuning.blobWindow
        while all.count - waiting.count < most, !waiting.isEmpty {
            let number = waiting.removeFirst()
            guard let read = all.removeValue(forKey: number) else {
                impossible("blob request \(number) waits and is not here")
                continue
            }
            let replica = collections[read.collection].replica
            all[number] = read.begun(number, window: window, from: replica, &effects)
        }
    }

    /// Supplies the next piece of a blob being sent. One that cannot be read ends where it stands: the peer sees that its digest is wrong,
    /// and this side reports why.
    mutating func supply(
        _ number: UInt64,
        for peer: ProtocolExtensions,
        from collections: CollectionSessions,
        _ tuning: ReplicationTuning,
        _ effects: inout SessionEffects
    ) {
        guard var read = all[number] else {
            return impossible("more is wanted of the answer to \(number), which sends no blob")
        }
        let count = peer == .none ? tuning.blobPiece : tuning.largeBlobPiece
        let (bytes, failure) = read.piece(of: count, from: collections[read.collection].replica)
        read.offset += UInt64(bytes.count)
        let isLast = read.offset >= read.length || bytes.isEmpty
        all[number] = isLast ? nil : read
        effects.append(.supply(bytes, isLast: isLast, to: number))
        effects.append(.report(.blob(read.event(failure))))
        // A peer need not say for which document it wants a blob.
        guard let failure, let id = read.request.documentID else { return }
        effects.append(.report(.document(.pushed(id, in: read.collection, failure))))
    }
}

/// A blob being sent.
struct BlobRead: Sendable {
    let collection: Int
    let request: GetAttachmentMessage
    var offset: UInt64
    var length: UInt64 = 0

    /// Begins the answer to the request. Nil if there is none to send, or the database failed; the peer was told.
    fileprivate func begun(
        _ number: UInt64,
        window: UInt64,
        from replica: any ReplicaBlobs,
        _ effects: inout SessionEffects
    ) -> BlobRead? {
        let found = effects.answering(number) {
            try replica.blobLength(request.digest, of: request.documentID)
        }
        guard let found else { return nil }
        guard let found else {
            let error = ReplyError("LiteCore", 7, "blob not found")
            effects.append(.replyError(error, to: number, isUrgent: false))
            return nil
        }
        guard offset <= found else {
            let error = ReplyError("HTTP", 416, "the blob has \(found) bytes")
            effects.append(.replyError(error, to: number, isUrgent: false))
            return nil
        }
        effects.append(.beginReply(Message(isCompressed: request.isCompressed), to: number, window: window))
        var begun = self
        begun.length = found
        return begun
    }

    /// The bytes of a blob that are to be sent next. None, with the reason, if they cannot be read.
    func piece(of count: Int, from replica: any ReplicaBlobs) -> ([UInt8], LoveseatError?) {
        let digest = request.digest
        do throws(LoveseatError) {
            let bytes = try replica.readBlob(digest, offset: offset, count: count)
            guard !bytes.isEmpty || offset >= length else {
                throw LoveseatError(
                    .corruptData,
                    "blob \(digest) ends after \(offset) of its \(length) bytes: run a check"
                )
            }
            return (bytes, nil)
        } catch { return ([], error) }
    }

    func event(_ failure: LoveseatError?) -> BlobEvent {
        BlobEvent(
            collection: collection,
            documentID: request.documentID,
            digest: request.digest,
            isPush: true,
            transferred: offset,
            length: length,
            error: failure
        )
    }
}

extension ProveAttachmentMessage {
    /// Proves to a peer that the blob is here.
    func answer(_ number: UInt64, from replica: any ReplicaBlobs, _ effects: inout SessionEffects)
        throws(ReplyError)
    {
        let proof = effects.answering(number) { try replica.proveBlob(digest, nonce: nonce) }
        // The database failed, and the peer was told.
        guard let proof else { return }
        guard let proof else { throw ReplyError("LiteCore", 7, "blob not found") }
        effects.append(.reply(Message(body: Array(proof.text.utf8)), to: number))
    }
}
