import LoveseatAssertions
import LoveseatModel
import LoveseatReplication

/// The received revisions on their way into the database, and the blobs that are being fetched for them (replication.md §11).
struct IncomingRevisions {
    private(set) var entries: [Int: Incoming] = [:]
    private var lastKey = 0
    /// The memory that they take, in bytes.
    private(set) var bytes = 0
    private(set) var fetches: [BlobHandle: Int] = [:]
    /// Documents that need a blob while as many as may be are being fetched.
    var waitingForTurn: [Int] = []
    /// Documents that need a blob that is being fetched for another.
    var waitingForBlob: [BlobDigest: [Int]] = [:]
    /// The peer can send a blob from any byte on.
    var resumesBlobs = false

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }

    subscript(key: Int) -> Incoming? { entries[key] }

    func contains(_ documentID: String) -> Bool {
        entries.values.contains { $0.revision.documentID.isExactly(documentID) }
    }

    /// The blobs that are kept for them, in the order in which they came.
    var held: [BlobDigest] { entries.sorted { $0.key < $1.key }.flatMap(\.value.held) }

    /// A number that no revision and no fetch has had.
    mutating func newKey() -> Int {
        lastKey += 1
        return lastKey
    }

    /// Returns the revision's key.
    mutating func add(_ entry: Incoming) -> Int {
        bytes += entry.bytes
        let key = newKey()
        entries[key] = entry
        return key
    }

    mutating func replace(_ key: Int, by entry: Incoming) {
        bytes += entry.bytes - (entries[key]?.bytes ?? 0)
        entries[key] = entry
    }

    mutating func remove(_ key: Int) -> Incoming? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        bytes -= entry.bytes
        return entry
    }

    mutating func removeAll() {
        (entries, bytes) = ([:], 0)
        (fetches, waitingForTurn, waitingForBlob) = ([:], [], [:])
    }

    // MARK: Blobs

    mutating func beginFetch(_ handle: BlobHandle, for key: Int) { fetches[handle] = key }

    mutating func endFetch(_ handle: BlobHandle) -> Int? { fetches.removeValue(forKey: handle) }

    /// Queues the documents that waited for this blob: it has arrived, or could not be fetched for another document, and any of them may be
    /// the next to request it.
    mutating func blobCame(_ digest: BlobDigest) {
        waitingForTurn += waitingForBlob.removeValue(forKey: digest) ?? []
    }

    func isWaiting(for digest: BlobDigest) -> Bool { waitingForBlob[digest] != nil }

    /// The blob that a fetch is for.
    func digest(_ handle: BlobHandle) -> BlobDigest? {
        fetches[handle].flatMap { entries[$0]?.missing.first?.digest }
    }

    /// The revision, the blob and the state of a fetch; nil for a blob that is not being fetched.
    private func fetch(_ handle: BlobHandle) -> (Incoming, BlobReference, Incoming.Fetch)? {
        guard let key = fetches[handle], let entry = entries[key], let blob = entry.missing.first,
            case .fetching(let fetch) = entry.stage
        else { return nil }
        return (entry, blob, fetch)
    }

    /// Notes that bytes of a blob came. Returns its digest; nil for a blob that was given up.
    ///
    /// - Throws: the reason why the blob is given up.
    func receive(_ count: Int, of handle: BlobHandle) throws(LoveseatError) -> BlobDigest? {
        guard case (let entry, let blob, var fetch)? = fetch(handle) else { return nil }
        fetch.bytes += UInt64(count)
        entry.stage = .fetching(fetch)
        if let length = blob.storedLength, fetch.bytes > length {
            entry.stage = .waiting(startsOver: false)
            throw LoveseatError(
                .corruptData,
                "blob \(blob.digest) is longer than the \(length) bytes that the document says"
            )
        }
        return blob.digest
    }

    /// The progress of a blob that is being fetched; nil if it is not.
    func blobEvent(_ handle: BlobHandle, collection: Int) -> BlobEvent? {
        guard let (entry, blob, fetch) = fetch(handle) else { return nil }
        return BlobEvent(
            collection: collection,
            documentID: entry.revision.documentID,
            digest: blob.digest,
            isPush: false,
            transferred: fetch.bytes,
            length: blob.storedLength
        )
    }

    /// Leaves out the content of other leaves that needs the first missing blob; returns false if the revision itself needs it.
    func leaveOutTold(_ key: Int) -> Bool {
        guard let entry = entries[key], let blob = entry.missing.first,
            entry.told.contains(where: { $0.digest == blob.digest }),
            !BlobReference.all(in: entry.revision.body).contains(where: { $0.digest == blob.digest })
        else { return false }
        entries[key]?.missing.removeAll { $0.digest == blob.digest }
        entries[key]?.stage = .waiting(startsOver: false)
        entries[key]?.revision.knowledge?.leaveOutBodies { node in
            guard node.flags.contains(.hasBlobs), let body = node.body else { return false }
            return BlobReference.all(in: body).contains { $0.digest == blob.digest }
        }
        return true
    }
}

/// The complete revisions that are to be stored, in order.
struct InsertQueue {
    private(set) var keys: [Int] = []
    /// The sizes of their bodies together.
    private(set) var bytes = 0
    private var timerIsSet = false
    /// Whether they have waited long.
    var isTime = false

    var isEmpty: Bool { keys.isEmpty }

    func isDue(_ tuning: ReplicationTuning) -> Bool {
        isTime || keys.count >= tuning.insertBatch || bytes >= tuning.insertBytes
    }

    mutating func append(_ key: Int, _ revision: IncomingRevision) {
        keys.append(key)
        bytes += revision.contentBytes
    }

    /// Removes the first revisions. Their bytes are counted until ``forget(_:)``.
    mutating func removeFirst(_ limit: Int) -> [Int] {
        let first = Array(keys.prefix(limit))
        keys.removeFirst(first.count)
        return first
    }

    mutating func forget(_ revision: IncomingRevision) { bytes -= revision.contentBytes }

    mutating func remove(_ key: Int, _ revision: IncomingRevision?) {
        keys.removeAll { $0 == key }
        if let revision { forget(revision) }
    }

    mutating func removeAll() { (keys, bytes) = ([], 0) }

    /// Begins to wait; false if it waits already.
    mutating func setTimer() -> Bool {
        defer { timerIsSet = true }
        return !timerIsSet
    }

    /// Ends the waiting; false if there was none.
    mutating func endWaiting() -> Bool {
        defer { (timerIsSet, isTime) = (false, false) }
        return timerIsSet
    }

    mutating func timerFired() { (timerIsSet, isTime) = (false, true) }
}

/// Notes about documents of which a revision is on its way to this side.
struct FlightNotes {
    /// Documents that the peer took away meanwhile.
    private var revoked: DocumentSet = []
    /// The same for documents that stay here because of an edit: only their deletion is still accepted.
    private var revokedButDeletion: DocumentSet = []
    /// The place up to which announcements of a document are about an older state of the peer.
    private var outdated: DocumentMap<Announcement> = [:]

    var hasOutdated: Bool { !outdated.isEmpty }

    func place(of id: String) -> Announcement? { outdated[ExactText(id)] }

    mutating func note(_ id: String, outdatedThrough place: Announcement) { outdated[ExactText(id)] = place }

    mutating func forgetOutdated(_ id: String) { outdated[ExactText(id)] = nil }

    /// Whether a received revision belongs to a document that was taken away meanwhile.
    func isRevoked(_ id: String, isDeleted: Bool) -> Bool {
        revoked.contains(id) || (!isDeleted && revokedButDeletion.contains(id))
    }

    mutating func revoke(_ id: String, takesDeletion: Bool) {
        if takesDeletion { revokedButDeletion.insert(id) } else { revoked.insert(id) }
    }

    /// Notes that documents were announced again.
    mutating func returned(_ documents: DocumentSet) {
        revoked.subtract(documents)
        revokedButDeletion.subtract(documents)
    }
}
