import LoveseatModel
import LoveseatStorage

/// The blobs of a history with versions, drawn by dice of their own: without them, a seed gives the history that it gave before.
final class VersionBlobs {
    private var dice: SeededGenerator
    private var contents: [BlobDigest: [UInt8]] = [:]

    init(seed: UInt64) { dice = SeededGenerator(seed: seed ^ 0x626C_6F62) }

    /// Draws a blob for a document, or none: an own one, or one of a few that many documents have.
    func draw() -> (reference: BlobReference, content: [UInt8])? {
        guard dice.chance(0.4) else { return nil }
        let content: [UInt8]
        if dice.chance(0.5) {
            content = dice.bytes(dice.pick([10, 3_000, 40_000]))
        } else {
            let number = dice.int(0...3)
            content = [UInt8](repeating: UInt8(number), count: [0, 30, 4_000, 70_000][number])
        }
        let digest = BlobDigest(sha1: Hashing.sha1(content))
        contents[digest] = content
        let type = dice.pick(["text/plain", "image/jpeg"])
        return (BlobReference(digest: digest, length: UInt64(content.count), contentType: type), content)
    }

    /// Checks the blobs of a document's content at a Loveseat.
    func problems(of body: JSONText, at peer: SimulatedPeer) throws -> [String] {
        try problems(of: body) { digest, count in
            guard peer.store.blobs.contains(digest) else { return nil }
            return try peer.store.blobs.read(digest, from: 0, count: count)
        }
    }

    /// The same at a peer of Couchbase Lite.
    func problems(of body: JSONText, at lite: LitePeer) -> [String] {
        problems(of: body) { digest, _ in lite.database.blobs[digest.text] }
    }

    /// The same at a gateway.
    func problems(of body: JSONText, at document: GatewayDocument) -> [String] {
        problems(of: body) { digest, _ in document.attachments[digest.text] }
    }

    private func problems(
        of body: JSONText,
        read: (BlobDigest, _ count: Int) throws -> [UInt8]?
    ) rethrows -> [String] {
        try BlobReference.all(in: body).compactMap { reference in
            guard let content = contents[reference.digest] else {
                return "has a blob that nobody made: \(reference.digest)"
            }
            guard let found = try read(reference.digest, content.count + 1) else {
                return "lacks the blob \(reference.digest)"
            }
            return found == content ? nil : "has another content in the blob \(reference.digest)"
        }
    }
}
