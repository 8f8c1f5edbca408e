import LoveseatModel
import LoveseatStorage

/// Reads the content of a blob that is stored compressed, as attachments of a CouchDB are, from its beginning.
struct CompressedBlobReader {
    /// A small piece may become a thousand times as large.
    private static let compressedPiece = 4 << 10

    private let blob: BlobReference
    private let files: BlobFiles
    private let pieceBytes: Int
    private let inflater: GzipInflater
    private var offset: UInt64 = 0
    private var made: UInt64 = 0

    /// - Throws: `memoryError`.
    init(_ blob: BlobReference, in files: BlobFiles, pieceBytes: Int) throws(LoveseatError) {
        self.blob = blob
        self.files = files
        self.pieceBytes = pieceBytes
        inflater = try GzipInflater()
    }

    /// Reads the next piece, or returns nil at the end. Pieces are a little larger than asked for.
    ///
    /// - Throws: `corruptData` if compressed content is damaged, or longer than the reference says; an error of the disk.
    mutating func next() throws(LoveseatError) -> [UInt8]? {
        var output: [UInt8] = []
        while output.count < pieceBytes {
            let bytes = try files.read(blob.digest, from: offset, count: Self.compressedPiece)
            if bytes.isEmpty {
                if inflater.isEnded { break }
                throw LoveseatError(.corruptData, "blob \(blob.digest) is compressed, and its end is missing")
            }
            offset += UInt64(bytes.count)
            do {
                try bytes.withUnsafeBytes { piece in try inflater.inflate(piece) { output += $0 } }
            } catch let error as LoveseatError { throw error } catch {
                throw LoveseatError(.corruptData, "blob \(blob.digest) cannot be inflated: \(error)")
            }
        }
        made += UInt64(output.count)
        if let length = blob.length, made > length {
            throw LoveseatError(
                .corruptData,
                "blob \(blob.digest) inflates to more than the \(length) bytes that its document names"
            )
        }
        return output.isEmpty ? nil : output
    }
}
