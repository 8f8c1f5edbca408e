import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Blobs that the peer asks for (replication.md §11).
extension ReplicationSession {
    mutating func getAttachment(_ message: Message, number: UInt64) {
        do throws(ReplyError) {
            let index = try collection(of: message)
            let request = try GetAttachmentMessage(message)
            guard blobReads.waiting.count < tuning.blobsWaiting else {
                throw ReplyError("HTTP", 503, "too many blobs are waiting to be sent")
            }
            blobReads.all[number] = BlobRead(collection: index, request: request, offset: request.offset)
            blobReads.waiting.append(number)
        } catch { refuse(message, number, error) }
    }

    /// Begins to send blobs that wait, as far as there is room: each takes a piece of memory until the peer has it.
    mutating func beginBlobReads() {
        let most = peer == .none ? tuning.blobsSending : tuning.largeBlobsSending
        while blobReads.all.count - blobReads.waiting.count < most, !blobReads.waiting.isEmpty {
            beginBlobRead(blobReads.waiting.removeFirst())
        }
    }

    private mutating func beginBlobRead(_ number: UInt64) {
        guard let read = blobReads.all.removeValue(forKey: number) else {
            return impossible("blob request \(number) waits and is not here")
        }
        let length = effects.answering(number) {
            try collections[read.collection].replica.blobLength(
                read.request.digest,
                of: read.request.documentID
            )
        }
        // The database failed, and the peer was told.
        guard let length else { return }
        guard let length else {
            let error = ReplyError("LiteCore", 7, "blob not found")
            return effects.append(.replyError(error, to: number, isUrgent: false))
        }
        guard read.offset <= length else {
            let error = ReplyError("HTTP", 416, "the blob has \(length) bytes")
            return effects.append(.replyError(error, to: number, isUrgent: false))
        }
        blobReads.all[number] = read
        blobReads.all[number]?.length = length
        let message = Message(isCompressed: read.request.isCompressed)
        let window = peer == .none ? BLIPConnection.window : tuning.blobWindow
        effects.append(.beginReply(message, to: number, window: window))
    }

    /// The next piece of a blob being sent. One that cannot be read ends where it stands: the peer sees that its digest is wrong, and this
    /// side reports why.
    mutating func supplyBlob(_ number: UInt64) {
        guard var read = blobReads.all[number] else {
            return impossible("more is wanted of the answer to \(number), which sends no blob")
        }
        let count = peer == .none ? tuning.blobPiece : tuning.largeBlobPiece
        let (bytes, failure) = read.piece(of: count, from: collections[read.collection].replica)
        read.offset += UInt64(bytes.count)
        let isLast = read.offset >= read.length || bytes.isEmpty
        blobReads.all[number] = isLast ? nil : read
        effects.append(.supply(bytes, isLast: isLast, to: number))
        effects.append(.report(.blob(read.event(failure))))
        // A peer need not say for which document it wants a blob.
        guard let failure, let id = read.request.documentID else { return }
        let document = DocumentEvent(
            collection: read.collection,
            documentID: id,
            isPush: true,
            isDeleted: false,
            error: failure
        )
        effects.append(.report(.document(document)))
    }

    mutating func proveAttachment(_ message: Message, number: UInt64) {
        do throws(ReplyError) {
            let replica = collections[try collection(of: message)].replica
            let request = try ProveAttachmentMessage(message)
            let proof = effects.answering(number) {
                try replica.proveBlob(request.digest, nonce: request.nonce)
            }
            // The database failed, and the peer was told.
            guard let proof else { return }
            guard let proof else { throw ReplyError("LiteCore", 7, "blob not found") }
            effects.append(.reply(Message(body: Array(proof.text.utf8)), to: number))
        } catch { refuse(message, number, error) }
    }
}

/// The blobs that the peer has requested, by the numbers of the requests.
struct BlobReads: Sendable {
    var all: [UInt64: BlobRead] = [:]
    /// Requests that wait because the maximum number of blobs is being sent, in order.
    var waiting: [UInt64] = []
}

/// A blob being sent.
struct BlobRead: Sendable {
    let collection: Int
    let request: GetAttachmentMessage
    var offset: UInt64
    var length: UInt64 = 0

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
