package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage

/// Blobs that are sent and received.
extension CollectionReplica {
    package func holdBlobs(_ digests: [BlobDigest], of id: String) throws(LoveseatError) -> [BlobDigest] {
        for digest in digests { store.blobs.pin(digest) }
        return try source.asking { try missing(digests, of: id) }
    }

    package func releaseBlobs(_ digests: [BlobDigest]) {
        for digest in digests { store.blobs.unpin(digest) }
    }

    package func beginBlob(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws(LoveseatError)
        -> BlobStart
    {
        if store.blobs.contains(digest), trustsPeer || source.shared.contains(digest) { return .here }
        if source.writers.values.contains(where: { $0.digest == digest }) { return .underWay }
        return try source.asking {
            let writer = try store.blobs.writer(receiving: digest, resumes: resumes)
            source.writers[handle] = (digest, writer)
            return .from(writer.length)
        }
    }

    package func writeBlob(_ handle: BlobHandle, _ bytes: [UInt8]) throws(LoveseatError) {
        try source.asking { try source.writers[handle]?.writer.write(bytes) }
    }

    package func finishBlob(_ handle: BlobHandle, expected: BlobDigest) throws(LoveseatError) {
        guard let (_, writer) = source.writers.removeValue(forKey: handle) else {
            throw LoveseatError(.ioError, "the blob was given up")
        }
        try source.asking { _ = try writer.finish(expected: expected) }
        source.shared.receive(expected)
    }

    package func cancelBlob(_ handle: BlobHandle) {
        source.writers.removeValue(forKey: handle)?.writer.cancel()
    }

    package func suspendBlob(_ handle: BlobHandle) {
        source.writers.removeValue(forKey: handle)?.writer.suspend()
    }

    package func blobLength(_ digest: BlobDigest, of id: String?) throws(LoveseatError) -> UInt64? {
        try source.asking { try mayHave(digest, of: id) ? store.blobs.length(digest) : nil }
    }

    package func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8] {
        try source.asking { try store.blobs.read(digest, from: offset, count: count) }
    }

    package func proveBlob(_ digest: BlobDigest, nonce: [UInt8]) throws(LoveseatError) -> BlobDigest? {
        try source.asking {
            guard try mayHave(digest, of: nil), store.blobs.contains(digest) else { return nil }
            return try store.blobs.hash(digest, prefix: [UInt8(nonce.count)] + nonce)
        }
    }
}
