import LoveseatBLIP
import LoveseatModel

/// Fetches the blobs that received revisions refer to and that are not here (replication.md §11).
extension PullSession {
    mutating func blobsHeld(_ key: Int, missing: [BlobDigest], _ effects: inout [ReplicationEffect]) {
        guard var entry = incoming[key] else { return }
        let wanted = Set(missing)
        entry.missing.removeAll { !wanted.contains($0.digest) }
        incoming[key] = entry
        fetchNext(key, &effects)
    }

    mutating func fetchNext(_ key: Int, _ effects: inout [ReplicationEffect]) {
        guard let entry = incoming[key] else { return }
        guard let blob = entry.missing.first else { return enqueue(key, &effects) }
        guard fetches.count < tuning.blobsFetching else { return waitingForBlobs.append(key) }
        nextKey += 1
        let handle = BlobHandle(collection) << 40 | BlobHandle(nextKey)
        fetches[handle] = key
        effects.append(
            .store(
                .beginBlob(handle, blob.digest, resumes: resumesBlobs && !entry.startsOver),
                then: .blobBegun(collection: collection, handle)
            )
        )
    }

    mutating func blobBegun(_ handle: BlobHandle, _ start: BlobStart, _ effects: inout [ReplicationEffect]) {
        guard let key = fetches[handle], let entry = incoming[key], let blob = entry.missing.first else {
            return
        }
        switch start {
        case .from(let offset):
            var properties: MessageProperties = ["Profile": "getAttachment"]
            properties["collection"] = wireIndex.map(String.init)
            properties["digest"] = blob.digest.text
            properties["docID"] = entry.revision.documentID
            if blob.isCompressible { properties["compress"] = "true" }
            if offset > 0 { properties[ProtocolExtensions.blobOffset] = String(offset) }
            incoming[key]?.isResumed = offset > 0
            effects.append(.send(Message(properties), then: .blob(collection: collection, handle)))
        case .underWay:
            fetches[handle] = nil
            waitingForBlobs.append(key)
        case .here:
            fetches[handle] = nil
            incoming[key]?.missing.removeFirst()
            fetchNext(key, &effects)
        }
    }

    /// Goes on with documents that waited for a blob, or for their turn.
    mutating func fetchWaiting(_ effects: inout [ReplicationEffect]) {
        var waiting = waitingForBlobs[...]
        waitingForBlobs = []
        while fetches.count < tuning.blobsFetching, let key = waiting.popFirst() { fetchNext(key, &effects) }
        waitingForBlobs += waiting
        flushIfDue(&effects)
    }

    mutating func blobPiece(
        _ handle: BlobHandle,
        _ bytes: [UInt8],
        isLast: Bool,
        _ effects: inout [ReplicationEffect]
    ) {
        guard let key = fetches[handle], let blob = incoming[key]?.missing.first else { return }
        effects.append(.store(.writeBlob(handle, bytes), then: .blobWritten(collection: collection, handle)))
        guard isLast else { return }
        effects.append(
            .store(
                .finishBlob(handle, expected: blob.digest),
                then: .blobFinished(collection: collection, handle)
            )
        )
    }

    /// The blob is here, or the error says why it is not.
    mutating func blobEnded(
        _ handle: BlobHandle,
        _ error: LoveseatError?,
        _ effects: inout [ReplicationEffect]
    ) {
        guard let key = fetches.removeValue(forKey: handle), var entry = incoming[key] else { return }
        if let error {
            effects.append(.store(.cancelBlob(handle), then: .nothing))
            if error.code == .corruptData, entry.isResumed {
                (entry.isResumed, entry.startsOver) = (false, true)
                incoming[key] = entry
                return fetchNext(key, &effects)
            }
            // A blob that the peer does not have will not be there next time; a damaged one may be whole then.
            end(
                key,
                error,
                finishesSequence: error.code == .notFound || error.code == .httpNotFound,
                &effects
            )
        } else {
            entry.missing.removeFirst()
            incoming[key] = entry
            fetchNext(key, &effects)
        }
    }
}
