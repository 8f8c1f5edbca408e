package import LoveseatModel

/// The part of a ``Replica`` that sends and receives blobs.
package protocol ReplicaBlobs: AnyObject {
    /// Returns which blobs of a received document are to be requested: those that are not here, and those that the sender must prove to
    /// have. All of them are kept until the revision that needs them is stored or given up.
    func holdBlobs(_ digests: [BlobDigest], of documentID: String) throws(LoveseatError) -> [BlobDigest]
    func releaseBlobs(_ digests: [BlobDigest])
    /// Begins to receive a blob. With `resumes`, it continues after the bytes that were received before.
    func beginBlob(_ handle: BlobHandle, _ digest: BlobDigest, resumes: Bool) throws(LoveseatError)
        -> BlobStart
    func writeBlob(_ handle: BlobHandle, _ bytes: [UInt8]) throws(LoveseatError)
    func finishBlob(_ handle: BlobHandle, expected: BlobDigest) throws(LoveseatError)
    func cancelBlob(_ handle: BlobHandle)
    /// Keeps the received part of a blob, for another connection to continue.
    func suspendBlob(_ handle: BlobHandle)
    /// The length of a blob that the peer requests; nil if it is not here, or the peer may not have it.
    func blobLength(_ digest: BlobDigest, of documentID: String?) throws(LoveseatError) -> UInt64?
    func readBlob(_ digest: BlobDigest, offset: UInt64, count: Int) throws(LoveseatError) -> [UInt8]
    /// A proof that a blob is here, for a peer that has it; nil if it is not here, or the peer may not know (replication.md §11.4).
    func proveBlob(_ digest: BlobDigest, nonce: [UInt8]) throws(LoveseatError) -> BlobDigest?
}

/// A blob being received.
package typealias BlobHandle = UInt64
