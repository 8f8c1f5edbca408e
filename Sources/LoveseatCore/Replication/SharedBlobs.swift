import LoveseatModel
import LoveseatReplication
import LoveseatStorage
private import Synchronization

/// The last entries of a kind. The oldest are removed first.
private struct LastEntries<Entry: Hashable & Sendable>: Sendable {
    /// A peer asks for blobs soon after their document.
    private static var bound: Int { 20_000 }

    private var entries: Set<Entry> = []
    private var order: [Entry] = []

    func contains(_ entry: Entry) -> Bool { entries.contains(entry) }

    mutating func insert(_ entry: Entry) {
        if !entries.insert(entry).inserted { return }
        order.append(entry)
        if order.count <= Self.bound { return }
        for old in order.prefix(Self.bound / 2) { entries.remove(old) }
        order.removeFirst(Self.bound / 2)
    }
}

/// Which blobs peers have sent to this database. It outlives their connections, so that a document with many blobs arrives over
/// a network that breaks again and again.
package final class ProvenBlobs: Sendable {
    private struct Entry: Hashable {
        let peer: String
        let digest: BlobDigest
    }

    private let entries = Mutex(LastEntries<Entry>())

    package init() {}

    func insert(_ digest: BlobDigest, from peer: String) {
        entries.withLock { $0.insert(Entry(peer: peer, digest: digest)) }
    }

    func contains(_ digest: BlobDigest, from peer: String) -> Bool {
        entries.withLock { $0.contains(Entry(peer: peer, digest: digest)) }
    }
}

/// The blobs that both sides of a connection are known to have, or may have: blobs of documents that were sent over it, by collection, and
/// blobs that the peer has sent itself.
struct SharedBlobs {
    private struct Entry: Hashable {
        let collection: Int64
        let digest: BlobDigest
    }

    private var sent = LastEntries<Entry>()
    private let proven: ProvenBlobs
    private let peer: String

    /// `peer`: the name under which its blobs are remembered.
    init(_ proven: ProvenBlobs, peer: String) {
        self.proven = proven
        self.peer = peer
    }

    /// Notes that a document with this body is sent to the peer.
    mutating func send(_ body: JSONText, in collection: Int64) {
        for blob in BlobReference.all(in: body) { send(blob.digest, in: collection) }
    }

    /// Notes that the blob itself is sent to the peer.
    mutating func send(_ digest: BlobDigest, in collection: Int64) {
        sent.insert(Entry(collection: collection, digest: digest))
    }

    /// Notes that the peer has sent the blob, and so knows its content.
    func receive(_ digest: BlobDigest) { proven.insert(digest, from: peer) }

    /// Whether the peer has sent the blob.
    func contains(_ digest: BlobDigest) -> Bool { proven.contains(digest, from: peer) }

    func contains(_ digest: BlobDigest, in collection: Int64) -> Bool {
        contains(digest) || sent.contains(Entry(collection: collection, digest: digest))
    }
}

/// Decides which blobs a peer may have, and on which of our content a peer may build (replication.md §11).
extension CollectionReplica {
    /// Whether the peer was chosen by this side, which may pull everything that the peer has. An active side sends only the blobs of pushed
    /// documents.
    var trustsPeer: Bool { remote != nil }

    /// Shares the blobs of sent revisions.
    func share(_ revisions: [OutgoingRevision]) {
        for case .found(let content) in revisions {
            source.shared.send(content.body, in: collection.number)
            for node in content.knowledge?.nodes ?? [] where node.flags.contains(.hasBlobs) {
                if let body = node.body { source.shared.send(body, in: collection.number) }
            }
        }
    }

    /// Whether the peer was sent a document with this blob, or may read the document for which it requests the blob.
    ///
    /// `id`: nil if the peer does not say for which document.
    func mayHave(_ digest: BlobDigest, of id: String?) throws -> Bool {
        if source.shared.contains(digest, in: collection.number) { return true }
        guard !trustsPeer, let id, try readableBlobs(of: id).contains(digest) else { return false }
        source.shared.send(digest, in: collection.number)
        return true
    }

    /// Returns the blobs of a received document that have to be requested. A passive side does not count a blob as the peer's before the
    /// peer has shown that it has it: a digest alone does not give access.
    func missing(_ digests: [BlobDigest], of id: String) throws -> [BlobDigest] {
        let absent = digests.filter { !store.blobs.contains($0) }
        guard !trustsPeer, absent.count < digests.count else { return absent }
        let unproven = digests.filter {
            !absent.contains($0) && !source.shared.contains($0, in: collection.number)
        }
        guard !unproven.isEmpty else { return absent }
        let readable = try readableBlobs(of: id)
        return digests.filter { absent.contains($0) || (unproven.contains($0) && !readable.contains($0)) }
    }

    private func readableBlobs(of id: String) throws -> Set<BlobDigest> {
        guard let record = try store.readRows({ try $0.record(id, in: collection) }),
            try accessNow?.mayRead(record) ?? true
        else { return [] }
        return Set(BlobReference.all(in: record.body).map(\.digest))
    }

    /// The body of a revision that the peer may read, as the base of another one; nil if it is damaged.
    func readableBody(of revision: RevisionName, _ id: String) throws -> JSONText? {
        guard let record = try store.readRows({ try $0.record(id, in: collection) }),
            let node = try record.tree().versions.known(by: revision),
            let candidate = FilterCandidate(node, of: id),
            !node.isDamaged, try accessNow?.mayBuild(on: candidate, of: record) ?? true
        else { return nil }
        return candidate.body
    }
}
