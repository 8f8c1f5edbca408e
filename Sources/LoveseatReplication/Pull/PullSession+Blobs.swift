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
        guard fetches.count < tuning.blobsFetching else { return waitingForTurn.append(key) }
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
            incoming[key]?.blobBytes = offset
            effects.append(.send(Message(properties), then: .blob(collection: collection, handle)))
        case .underWay:
            fetches[handle] = nil
            waitingForBlob[blob.digest, default: []].append(key)
            takeTurns(&effects)
        case .here:
            fetches[handle] = nil
            incoming[key]?.missing.removeFirst()
            fetchNext(key, &effects)
            takeTurns(&effects)
        }
    }

    /// Goes on with documents that waited for their turn, as far as there is room.
    private mutating func takeTurns(_ effects: inout [ReplicationEffect]) {
        while fetches.count < tuning.blobsFetching, !waitingForTurn.isEmpty {
            fetchNext(waitingForTurn.removeFirst(), &effects)
        }
    }

    /// Goes on with documents that waited for a blob, or for their turn.
    ///
    /// `digest`: the blob that came, or that could not be had for another document; any document may be the next to ask.
    mutating func fetchWaiting(_ digest: BlobDigest?, _ effects: inout [ReplicationEffect]) {
        if let digest { waitingForTurn += waitingForBlob.removeValue(forKey: digest) ?? [] }
        takeTurns(&effects)
        flushIfDue(&effects)
    }

    /// The blob that a fetch is for.
    func digest(_ handle: BlobHandle) -> BlobDigest? {
        fetches[handle].flatMap { incoming[$0]?.missing.first?.digest }
    }

    /// - Returns: why the blob is given up, if it is. What still comes of it is not listened to.
    mutating func blobPiece(
        _ handle: BlobHandle,
        _ bytes: [UInt8],
        isLast: Bool,
        _ effects: inout [ReplicationEffect]
    ) -> LoveseatError? {
        guard let key = fetches[handle], let blob = incoming[key]?.missing.first else { return nil }
        incoming[key]?.blobBytes += UInt64(bytes.count)
        if let length = blob.length, let received = incoming[key]?.blobBytes, received > length {
            incoming[key]?.isResumed = false
            return LoveseatError(
                .corruptData,
                "blob \(blob.digest) is longer than the \(length) bytes that the document says"
            )
        }
        effects.append(.store(.writeBlob(handle, bytes), then: .blobWritten(collection: collection, handle)))
        guard isLast else { return nil }
        effects.append(
            .store(
                .finishBlob(handle, expected: blob.digest),
                then: .blobFinished(collection: collection, handle)
            )
        )
        return nil
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
            let isDenied = [.notFound, .httpNotFound, .httpForbidden].contains(error.code)
            if isDenied, takeAsListed(key, &effects) { return }
            // One blob must not keep the checkpoint back, but a disk that is full or broken must.
            end(key, error, finishesSequence: error.code.domain == .couchbaseLite, &effects)
        } else {
            entry.missing.removeFirst()
            incoming[key] = entry
            fetchNext(key, &effects)
        }
    }
}
