private import Logging
public import LoveseatModel
package import LoveseatReplication

/// How much of a blob was transferred over one connection.
public struct BlobTransfer: Hashable, Sendable {
    /// The document that the blob belongs to; nil if a peer did not say for which document it requested the blob.
    public let documentID: String?
    /// The digest of the blob.
    public let digest: BlobDigest
    /// Whether the blob is sent; false if it is received.
    public let isPush: Bool
    /// The number of bytes, from the blob's beginning, that were handed to the socket or received. They include what an earlier connection
    /// transferred.
    public let transferred: UInt64
    /// The length of the blob in bytes; nil if a received document does not contain it.
    public let length: UInt64?

    package init(_ event: BlobEvent) {
        documentID = event.documentID
        digest = event.digest
        isPush = event.isPush
        transferred = event.transferred
        length = event.length
    }
}

extension BlobEvent {
    /// Logs why a blob cannot be sent to its end. The document that needs it may not be known.
    func logFailure(in domain: LogDomain, of name: @autoclosure () -> String) {
        // Most pieces can be read.
        guard let error else { return }
        domain.log(
            .warning,
            "\(name()): blob \(digest) cannot be sent to the end: \(error.message) (\(error.code))"
        )
    }
}

extension FeedBuffer<BlobTransfer> {
    /// A consumer that falls behind loses older pieces, and not the last one.
    package static func ofTransfers() -> FeedBuffer<BlobTransfer> {
        FeedBuffer(limit: 256 << 10, cost: { _ in 256 }, merge: { $0 = $1 })
    }
}
