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
        var properties: MessageProperties = ["Profile": "getAttachment"]
        properties["collection"] = wireIndex.map(String.init)
        properties["digest"] = blob.digest.text
        properties["docID"] = entry.revision.documentID
        if blob.isCompressible { properties["compress"] = "true" }
        effects.append(.store(.beginBlob(handle), then: .blobBegun(collection: collection, handle)))
        effects.append(.send(Message(properties), then: .blob(collection: collection, handle)))
    }

    mutating func blobPiece(
        _ handle: BlobHandle,
        _ bytes: [UInt8],
        isLast: Bool,
        _ effects: inout [ReplicationEffect]
    ) {
        guard let key = fetches[handle], let blob = incoming[key]?.missing.first else { return }
        effects.append(.store(.writeBlob(handle, bytes), then: .blobBegun(collection: collection, handle)))
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
        while fetches.count < tuning.blobsFetching, !waitingForBlobs.isEmpty {
            fetchNext(waitingForBlobs.removeFirst(), &effects)
        }
        flushIfDue(&effects)
    }
}
