import LoveseatBLIP
import LoveseatModel

/// Fetches the blobs that received revisions refer to and that are not here (replication.md §11).
extension PullSession {
    /// Fetches the next blob that a document lacks; stores the document when it lacks none.
    mutating func fetchNext(_ key: Int, _ effects: inout SessionEffects) {
        while let entry = incoming[key], effects.failure == nil {
            guard let blob = entry.missing.first else { return enqueue(key, &effects) }
            guard fetches.count < tuning.blobsFetching else { return waitingForTurn.append(key) }
            nextKey += 1
            let handle = BlobHandle(collection) << 40 | BlobHandle(nextKey)
            let resumes = resumesBlobs && !entry.startsOver
            do throws(LoveseatError) {
                switch try effects.store.beginBlob(handle, blob.digest, resumes: resumes) {
                case .from(let offset):
                    fetches[handle] = key
                    return ask(for: blob, handle, key, from: offset, &effects)
                case .underWay: return waitingForBlob[blob.digest, default: []].append(key)
                case .here: incoming[key]?.missing.removeFirst()
                }
            } catch { return giveUpBlob(of: key, error, &effects) }
        }
    }

    private mutating func ask(
        for blob: BlobReference,
        _ handle: BlobHandle,
        _ key: Int,
        from offset: UInt64,
        _ effects: inout SessionEffects
    ) {
        var properties: MessageProperties = ["Profile": "getAttachment"]
        properties["collection"] = wireIndex.map(String.init)
        properties["digest"] = blob.digest.text
        properties["docID"] = incoming[key]?.revision.documentID
        if blob.isCompressible { properties["compress"] = "true" }
        if offset > 0 { properties[ProtocolExtensions.blobOffset] = String(offset) }
        incoming[key]?.isResumed = offset > 0
        incoming[key]?.blobBytes = offset
        effects.append(.send(Message(properties), then: .blob(collection: collection, handle)))
    }

    /// Goes on with documents that waited for their turn, as far as there is room.
    mutating func takeTurns(_ effects: inout SessionEffects) {
        while fetches.count < tuning.blobsFetching, !waitingForTurn.isEmpty {
            fetchNext(waitingForTurn.removeFirst(), &effects)
        }
    }

    /// Documents that waited for this blob go on when it is their turn: it came, or could not be had for another document, and
    /// any of them may be the next to ask.
    mutating func blobCame(_ digest: BlobDigest?) {
        if let digest { waitingForTurn += waitingForBlob.removeValue(forKey: digest) ?? [] }
    }

    /// The blob that a fetch is for.
    func digest(_ handle: BlobHandle) -> BlobDigest? {
        fetches[handle].flatMap { incoming[$0]?.missing.first?.digest }
    }

    /// Stores a piece of a blob.
    ///
    /// - Throws: why the blob is given up. What still comes of it is not listened to.
    mutating func blobPiece(
        _ handle: BlobHandle,
        _ bytes: [UInt8],
        isLast: Bool,
        _ store: any RevisionStore
    ) throws(LoveseatError) {
        guard let key = fetches[handle], let blob = incoming[key]?.missing.first else { return }
        incoming[key]?.blobBytes += UInt64(bytes.count)
        if let length = blob.length, let received = incoming[key]?.blobBytes, received > length {
            incoming[key]?.isResumed = false
            throw LoveseatError(
                .corruptData,
                "blob \(blob.digest) is longer than the \(length) bytes that the document says"
            )
        }
        try store.writeBlob(handle, bytes)
        if isLast { try store.finishBlob(handle, expected: blob.digest) }
    }

    /// The blob is here, or the error says why it is not.
    mutating func blobEnded(
        _ handle: BlobHandle,
        _ error: LoveseatError?,
        _ effects: inout SessionEffects
    ) {
        guard let key = fetches.removeValue(forKey: handle), incoming[key] != nil else { return }
        guard let error else {
            incoming[key]?.missing.removeFirst()
            return fetchNext(key, &effects)
        }
        effects.store.cancelBlob(handle)
        giveUpBlob(of: key, error, &effects)
    }

    private mutating func giveUpBlob(
        of key: Int,
        _ error: LoveseatError,
        _ effects: inout SessionEffects
    ) {
        if error.code == .corruptData, incoming[key]?.isResumed == true {
            incoming[key]?.isResumed = false
            incoming[key]?.startsOver = true
            return fetchNext(key, &effects)
        }
        let isDenied = [.notFound, .httpNotFound, .httpForbidden].contains(error.code)
        if isDenied, takeAsListed(key, &effects) { return }
        // One blob must not keep the checkpoint back, but a disk that is full or broken must.
        end(key, error, finishesSequence: error.code.domain == .couchbaseLite, &effects)
    }
}
