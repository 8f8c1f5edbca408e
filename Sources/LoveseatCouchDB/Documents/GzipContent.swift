import LoveseatCore
import LoveseatModel
import LoveseatStorage

/// Stored content that a client says is compressed. Others inflate it and rely on its length, so neither is taken on trust.
enum GzipContent {
    private static let pieceSize = 64 << 10
    /// The maximum length to which content of any size may inflate, in bytes.
    private static let maximumLength = 1 << 30
    /// How many times its size larger content may inflate to.
    private static let maximumRatio = 100

    private struct TooLong: Error {}

    /// The length of the inflated content, in bytes; nil if it is not a whole gzip, or inflates to too much.
    static func length(of digest: BlobDigest, in blobs: BlobFiles) throws -> Int? {
        let stored = Int(blobs.length(digest) ?? 0)
        let limit = max(maximumLength, stored.multipliedSaturated(by: maximumRatio))
        let inflater = try GzipInflater()
        var (offset, length) = (0, 0)
        do {
            while offset < stored {
                let piece = try blobs.read(digest, from: UInt64(offset), count: pieceSize)
                guard !piece.isEmpty else { break }
                offset += piece.count
                try piece.withUnsafeBytes { bytes in
                    try inflater.inflate(bytes) {
                        length += $0.count
                        guard length <= limit else { throw TooLong() }
                    }
                }
            }
        } catch is TooLong { return nil } catch let error as LoveseatError where error.code == .corruptData {
            return nil
        }
        return inflater.isEnded ? length : nil
    }
}
