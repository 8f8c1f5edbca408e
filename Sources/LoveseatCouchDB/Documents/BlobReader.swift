import Crypto
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Reads the whole content of a blob piece by piece, as it is stored or inflated, and verifies it by its digest.
///
/// A file that was shortened or damaged on the disk is an error at its end: whatever is made of the content is cut then, and never looks whole.
struct BlobReader {
    private static let pieceSize = 192 << 10
    /// A small compressed piece may become a thousand times as large.
    private static let compressedPiece = 4 << 10

    private let digest: BlobDigest
    private let blobs: BlobFiles
    private let inflater: GzipInflater?
    private var hash = Insecure.SHA1()
    private var offset: UInt64 = 0

    init(_ digest: BlobDigest, inflates: Bool, _ blobs: BlobFiles) throws(LoveseatError) {
        (self.digest, self.blobs) = (digest, blobs)
        inflater = inflates ? try GzipInflater() : nil
    }

    /// The next piece; nil at the end. A piece may be empty before it.
    ///
    /// - Throws: `corruptData` for content that is not what its digest names, or that cannot be inflated.
    mutating func next() throws -> [UInt8]? {
        let piece = try blobs.read(
            digest,
            from: offset,
            count: inflater == nil ? Self.pieceSize : Self.compressedPiece
        )
        guard !piece.isEmpty else {
            guard BlobDigest(sha1: hash.finalize()) == digest, inflater?.isEnded ?? true else {
                throw LoveseatError(.corruptData, "blob \(digest) is damaged or was cut: run `check`")
            }
            return nil
        }
        offset += UInt64(piece.count)
        hash.update(data: piece)
        guard let inflater else { return piece }
        var content: [UInt8] = []
        try piece.withUnsafeBytes { bytes in try inflater.inflate(bytes) { content += $0 } }
        return content
    }
}

/// Reads the whole content of a blob as Base64, piece by piece.
struct Base64Reader {
    private var blob: BlobReader
    /// Bytes that do not make a whole group of Base64 yet.
    private var left: [UInt8] = []
    private var isAtEnd = false

    init(_ digest: BlobDigest, inflates: Bool, _ blobs: BlobFiles) throws(LoveseatError) {
        blob = try BlobReader(digest, inflates: inflates, blobs)
    }

    /// The next digits; nil at the end. They may be empty before it.
    ///
    /// - Throws: as ``BlobReader/next()``.
    mutating func next() throws -> [UInt8]? {
        if isAtEnd { return nil }
        if let piece = try blob.next() { left += piece } else { isAtEnd = true }
        let whole = isAtEnd ? left.count : left.count - left.count % 3
        let digits = BulkBase64.encode(left[..<whole])
        left.removeFirst(whole)
        return digits
    }
}
