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
            beginBlobReads()
        } catch { refuse(message, number, error) }
    }

    /// Begins to send blobs that wait, as far as there is room: each takes a piece of memory until the peer has it.
    private mutating func beginBlobReads() {
        while blobReads.count - waitingBlobReads.count < tuning.blobsSending, !waitingBlobReads.isEmpty {
            let number = waitingBlobReads.removeFirst()
            guard let read = blobReads[number] else { continue }
            let find = StoreRequest.blobLength(
                collection: read.collection,
                documentID: read.documentID,
                read.digest
            )
            effects.append(.store(find, then: .blobFound(request: number)))
        }
    }

    private mutating func endBlobRead(_ number: UInt64) -> BlobRead? {
        defer { beginBlobReads() }
        return blobReads.removeValue(forKey: number)
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
            effects.append(
                .store(
                    .proveBlob(collection: index, digest, nonce: message.body),
                    then: .proven(request: number)
                )
            )
        } catch { refuse(message, number, error) }
    }

    mutating func blobFound(_ request: UInt64, _ length: UInt64?) {
        guard let length, let read = blobReads[request] else {
            _ = endBlobRead(request)
            let error = ReplyError("LiteCore", 7, "blob not found")
            return effects.append(.replyError(error, to: request, isUrgent: false))
        }
        guard read.offset <= length else {
            _ = endBlobRead(request)
            let error = ReplyError("HTTP", 416, "the blob has \(length) bytes")
            return effects.append(.replyError(error, to: request, isUrgent: false))
        }
        blobReads[request]?.length = length
        effects.append(.beginReply(Message(isCompressed: read.isCompressed), to: request))
    }

    mutating func blobRead(_ request: UInt64, _ bytes: [UInt8]) {
        guard var read = blobReads[request] else { return }
        read.offset += UInt64(bytes.count)
        let isLast = read.offset >= read.length || bytes.isEmpty
        if isLast { _ = endBlobRead(request) } else { blobReads[request] = read }
        effects.append(.supply(bytes, isLast: isLast, to: request))
    }

    /// The database could not answer for a peer's request. A blob under way ends where it stands: the peer sees that
    /// its digest is wrong.
    mutating func answerFailed(_ request: UInt64, _ error: LoveseatError) {
        if let read = endBlobRead(request), read.offset > 0 || read.length > 0 {
            effects.append(.supply([], isLast: true, to: request))
        } else {
            effects.append(.replyError(ReplyError(error), to: request, isUrgent: false))
        }
    }
}
