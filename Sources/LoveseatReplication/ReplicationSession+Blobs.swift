import LoveseatBLIP
import LoveseatModel

/// Blobs that the peer asks for (replication.md §11).
extension ReplicationSession {
    mutating func getAttachment(_ message: Message, number: UInt64) {
        do throws(ReplyError) {
            let index = try collection(of: message)
            guard let digest = message.properties["digest"].flatMap({ BlobDigest($0) }) else {
                throw ReplyError("LiteCore", 9, "invalid blob digest")
            }
            guard waitingBlobReads.count < tuning.blobsWaiting else {
                throw ReplyError("HTTP", 503, "too many blobs are waiting to be sent")
            }
            var read = BlobRead(
                collection: index,
                documentID: message.properties["docID"],
                digest: digest,
                isCompressed: message.properties.bool("compress")
            )
            read.offset = message.properties[ProtocolExtensions.blobOffset].flatMap { UInt64($0) } ?? 0
            blobReads[number] = read
            waitingBlobReads.append(number)
        } catch { refuse(message, number, error) }
    }

    /// Begins to send blobs that wait, as far as there is room: each takes a piece of memory until the peer has it.
    mutating func beginBlobReads() {
        while blobReads.count - waitingBlobReads.count < tuning.blobsSending, !waitingBlobReads.isEmpty {
            beginBlobRead(waitingBlobReads.removeFirst())
        }
    }

    private mutating func beginBlobRead(_ number: UInt64) {
        guard let read = blobReads.removeValue(forKey: number) else { return }
        let length = answering(number) {
            try $0.blobLength(read.digest, of: read.documentID, in: read.collection)
        }
        guard let length else { return }
        guard let length else {
            let error = ReplyError("LiteCore", 7, "blob not found")
            return effects.append(.replyError(error, to: number, isUrgent: false))
        }
        guard read.offset <= length else {
            let error = ReplyError("HTTP", 416, "the blob has \(length) bytes")
            return effects.append(.replyError(error, to: number, isUrgent: false))
        }
        blobReads[number] = read
        blobReads[number]?.length = length
        effects.append(.beginReply(Message(isCompressed: read.isCompressed), to: number))
    }

    /// The next piece of a blob being sent. One that cannot be read ends where it stands: the peer sees that its digest is wrong.
    mutating func supplyBlob(_ number: UInt64) {
        guard var read = blobReads[number] else { return }
        var bytes: [UInt8] = []
        do throws(LoveseatError) {
            bytes = try effects.store.readBlob(read.digest, offset: read.offset, count: tuning.blobPiece)
        } catch {}
        read.offset += UInt64(bytes.count)
        let isLast = read.offset >= read.length || bytes.isEmpty
        blobReads[number] = isLast ? nil : read
        effects.append(.supply(bytes, isLast: isLast, to: number))
    }

    mutating func proveAttachment(_ message: Message, number: UInt64) {
        do throws(ReplyError) {
            let index = try collection(of: message)
            guard let digest = message.properties["digest"].flatMap({ BlobDigest($0) }) else {
                throw ReplyError("LiteCore", 9, "invalid blob digest")
            }
            guard (1...255).contains(message.body.count) else {
                throw ReplyError("BLIP", 400, "invalid nonce")
            }
            let proof = answering(number) { try $0.proveBlob(digest, nonce: message.body, in: index) }
            guard let proof else { return }
            guard let proof else { throw ReplyError("LiteCore", 7, "blob not found") }
            effects.append(.reply(Message(body: Array(proof.text.utf8)), to: number))
        } catch { refuse(message, number, error) }
    }
}
