import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Fetches the blobs that received revisions refer to and that are not here (replication.md §11).
extension PullSession {
    /// Fetches the next blob that a document lacks; stores the document when it lacks none.
    mutating func fetchNext(_ key: Int, _ effects: inout SessionEffects) {
        while let entry = incoming[key], effects.failure == nil {
            guard let blob = entry.missing.first else { return enqueue(key, entry, &effects) }
            guard fetches.count < tuning.blobsFetching else { return waitingForTurn.append(key) }
            nextKey += 1
            let handle = BlobHandle(collection) << 40 | BlobHandle(nextKey)
            var resumes = resumesBlobs
            if case .waiting(startsOver: true) = entry.stage { resumes = false }
            do throws(LoveseatError) {
                switch try replica.beginBlob(handle, blob.digest, resumes: resumes) {
                case .from(let offset):
                    fetches[handle] = key
                    return ask(for: blob, handle, key, from: offset, &effects)
                case .underWay: return waitingForBlob[blob.digest, default: []].append(key)
                case .here:
                    incoming[key]?.missing.removeFirst()
                    incoming[key]?.stage = .waiting(startsOver: false)
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
        incoming[key]?.stage = .fetching(Incoming.Fetch(isResumed: offset > 0, bytes: offset))
        var request = GetAttachmentMessage(blob.digest, collection: wireIndex)
        request.documentID = incoming[key]?.revision.documentID
        request.isCompressed = blob.isCompressible
        request.offset = offset
        effects.append(.send(request.message, then: .blob(collection: collection, handle)))
    }

    /// Goes on with documents that waited for their turn, as far as there is room.
    mutating func assignTurns(_ effects: inout SessionEffects) {
        while fetches.count < tuning.blobsFetching, !waitingForTurn.isEmpty {
            fetchNext(waitingForTurn.removeFirst(), &effects)
        }
    }

    /// Queues the documents that waited for this blob: it has arrived, or could not be fetched for another document, and any of them may be
    /// the next to request it.
    mutating func blobCame(_ digest: BlobDigest) {
        waitingForTurn += waitingForBlob.removeValue(forKey: digest) ?? []
    }

    func isWaiting(for digest: BlobDigest) -> Bool { waitingForBlob[digest] != nil }

    /// The blob that a fetch is for.
    func digest(_ handle: BlobHandle) -> BlobDigest? {
        fetches[handle].flatMap { incoming[$0]?.missing.first?.digest }
    }

    /// Stores a piece of a blob.
    ///
    /// - Throws: the reason why the blob is given up. Further pieces of it are ignored.
    mutating func blobPiece(_ handle: BlobHandle, _ bytes: [UInt8], isLast: Bool) throws(LoveseatError) {
        // The peer still sends the rest of a blob that was given up.
        guard let key = fetches[handle], let entry = incoming[key], let blob = entry.missing.first,
            case .fetching(var fetch) = entry.stage
        else { return }
        fetch.bytes += UInt64(bytes.count)
        incoming[key]?.stage = .fetching(fetch)
        if let length = blob.storedLength, fetch.bytes > length {
            incoming[key]?.stage = .waiting(startsOver: false)
            throw LoveseatError(
                .corruptData,
                "blob \(blob.digest) is longer than the \(length) bytes that the document says"
            )
        }
        try replica.writeBlob(handle, bytes)
        if isLast { try replica.finishBlob(handle, expected: blob.digest) }
    }

    /// The progress of a blob that is being fetched; nil if it is not.
    func blobEvent(_ handle: BlobHandle) -> BlobEvent? {
        guard let key = fetches[handle], let entry = incoming[key], let blob = entry.missing.first,
            case .fetching(let fetch) = entry.stage
        else { return nil }
        return BlobEvent(
            collection: collection,
            documentID: entry.revision.documentID,
            digest: blob.digest,
            isPush: false,
            transferred: fetch.bytes,
            length: blob.storedLength
        )
    }

    /// Ends a fetch: the blob is here, or the error says why it is not.
    mutating func blobEnded(
        _ handle: BlobHandle,
        _ error: LoveseatError?,
        _ effects: inout SessionEffects
    ) {
        // A blob that was given up still ends when the peer has sent all of it.
        guard let key = fetches.removeValue(forKey: handle), incoming[key] != nil else { return }
        guard let error else {
            incoming[key]?.missing.removeFirst()
            incoming[key]?.stage = .waiting(startsOver: false)
            return fetchNext(key, &effects)
        }
        replica.cancelBlob(handle)
        giveUpBlob(of: key, error, &effects)
    }

    /// Leaves out the content of other leaves that needs the first missing blob; returns false if the revision itself needs it.
    private mutating func leaveOutTold(_ key: Int) -> Bool {
        guard let entry = incoming[key], let blob = entry.missing.first,
            entry.told.contains(where: { $0.digest == blob.digest }),
            !BlobReference.all(in: entry.revision.body).contains(where: { $0.digest == blob.digest })
        else { return false }
        incoming[key]?.missing.removeAll { $0.digest == blob.digest }
        incoming[key]?.stage = .waiting(startsOver: false)
        incoming[key]?.revision.knowledge?.leaveOutBodies { node in
            guard node.flags.contains(.hasBlobs), let body = node.body else { return false }
            return BlobReference.all(in: body).contains { $0.digest == blob.digest }
        }
        return true
    }

    private mutating func giveUpBlob(
        of key: Int,
        _ error: LoveseatError,
        _ effects: inout SessionEffects
    ) {
        if error.code == .corruptData, case .fetching(let fetch) = incoming[key]?.stage, fetch.isResumed {
            incoming[key]?.stage = .waiting(startsOver: true)
            return fetchNext(key, &effects)
        }
        if error.code.domain == .couchbaseLite, leaveOutTold(key) { return fetchNext(key, &effects) }
        let isDenied = [.notFound, .httpNotFound, .httpForbidden].contains(error.code)
        if isDenied, replaceByListed(key, &effects) { return }
        // One blob must not keep the checkpoint back, but a disk that is full or broken must.
        end(key, error, finishesSequence: error.code.domain == .couchbaseLite, &effects)
    }
}
