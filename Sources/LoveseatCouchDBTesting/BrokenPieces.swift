import NIOCore
import NIOHTTP1

/// The beginning of a body whose connection breaks, or a whole body in pieces.
struct BrokenPieces: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    let bytes: [UInt8]
    /// After how many bytes the connection breaks; nil if it does not.
    let limit: Int?
    var piece = 1_000

    struct Iterator: AsyncIteratorProtocol {
        private let bytes: [UInt8]
        private let limit: Int?
        private let piece: Int
        private var sent = 0

        init(_ pieces: BrokenPieces) { (bytes, limit, piece) = (pieces.bytes, pieces.limit, pieces.piece) }

        mutating func next() async throws -> ByteBuffer? {
            let end = Swift.min(limit ?? .max, bytes.count, sent + piece)
            guard sent < end else {
                if limit != nil { throw HTTPParserError.invalidEOFState }
                return nil
            }
            defer { sent = end }
            return ByteBuffer(bytes: bytes[sent..<end])
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }
}
