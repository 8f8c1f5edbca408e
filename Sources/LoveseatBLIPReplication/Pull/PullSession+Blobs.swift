import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// Fetches the blobs that received revisions refer to and that are not here (replication.md §11).
extension PullSession {
    /// Fetches the next blob that a document lacks; stores the document when it lacks none.
    mutating func fetchNext(_ key: Int, _ effects: inout SessionEffects) {
        while let entry = incoming[key], effects.failure == nil {
            guard let blob = entry.missing.first else { return enqueue(key, entry, &effects) }
            guard incoming.fetches.count < setup.tuning.blobsFetching else {
                return incoming.waitingForTurn.append(key)
            }
            let handle = BlobHandle(setup.collection) << 40 | BlobHandle(incoming.newKey())
            var resumes = incoming.resumesBlobs
            if case .waiting(startsOver: true) = entry.stage { resumes = false }
            do throws(LoveseatError) {
                switch try replica.beginBlob(handle, blob.digest, resumes: resumes) {
                case .from(let offset):
                    incoming.beginFetch(handle, for: key)
                    return ask(for: blob, handle, key, from: offset, &effects)
                case .underWay: return incoming.waitingForBlob[blob.digest, default: []].append(key)
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
        var request = GetAttachmentMessage(blob.digest, collection: setup.wireIndex)
        request.documentID = incoming[key]?.revision.documentID
        request.isCompressed = blob.isCompressible
        request.offset = offset
        effects.append(.send(request.message, then: .blob(collection: setup.collection, handle)))
    }

    /// Goes on with documents that waited for their turn, as far as there is room.
    mutating func assignTurns(_ effects: inout SessionEffects) {
        while incoming.fetches.count < setup.tuning.blobsFetching, !incoming.waitingForTurn.isEmpty {
            fetchNext(incoming.waitingForTurn.removeFirst(), &effects)
        }
    }

    /// Stores a piece of a blob.
    ///
    /// - Throws: the reason why the blob is given up. Further pieces of it are ignored.
    mutating func blobPiece(_ handle: BlobHandle, _ bytes: [UInt8], isLast: Bool) throws(LoveseatError) {
        // The peer still sends the rest of a blob that was given up.
        guard let digest = try incoming.receive(bytes.count, of: handle) else { return }
        try replica.writeBlob(handle, bytes)
        if isLast { try replica.finishBlob(handle, expected: digest) }
    }

    /// Ends a fetch: the blob is here, or the error says why it is not.
    mutating func blobEnded(
        _ handle: BlobHandle,
        _ error: LoveseatError?,
        _ effects: inout SessionEffects
    ) {
        // A blob that was given up still ends when the peer has sent all of it.
        guard let key = incoming.endFetch(handle), incoming[key] != nil else { return }
        guard let error else {
            incoming[key]?.missing.removeFirst()
            incoming[key]?.stage = .waiting(startsOver: false)
            return fetchNext(key, &effects)
        }
        replica.cancelBlob(handle)
        giveUpBlob(of: key, error, &effects)
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
        if error.code.domain == .couchbaseLite, incoming.leaveOutTold(key) { return fetchNext(key, &effects) }
        let isDenied = [.notFound, .httpNotFound, .httpForbidden].contains(error.code)
        if isDenied, replaceByListed(key, &effects) { return }
        // One blob must not keep the checkpoint back, but a disk that is full or broken must.
        end(key, error, finishesSequence: error.code.domain == .couchbaseLite, &effects)
    }
}
