import AsyncHTTPClient
import LoveseatAssertions
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage
import NIOCore

/// The body of a request with attachments, read from the disk while it is sent. It can be sent again from its beginning.
package struct Upload: Sendable {
    fileprivate enum Piece: Sendable {
        case bytes([UInt8])
        case blob(BlobDigest)
        case base64(BlobDigest, inflates: Bool)
    }

    private let pieces: [Piece]
    /// In bytes; nil if it is not known before.
    private let length: Int?
    private let blobs: BlobFiles

    /// A document and its attachments in parts.
    init(_ layout: MultipartReply.Layout, blobs: BlobFiles) {
        self.blobs = blobs
        length = layout.length
        pieces = layout.pieces.map { piece in
            switch piece {
            case .bytes(let bytes): return .bytes(bytes)
            case .content(.text(let bytes), _): return .bytes(bytes)
            case .content(.blob(let digest), _): return .blob(digest)
            case .content(.later(let number), _):
                impossible("text \(number) of an upload is left for later")
                return .bytes([])
            }
        }
    }

    /// A document with its attachments inline.
    init(_ document: RenderedDocument, blobs: BlobFiles) {
        self.blobs = blobs
        length = nil
        pieces = document.pieces.map { piece in
            switch piece {
            case .bytes(let bytes): .bytes(bytes)
            case .base64(let digest, let inflates): .base64(digest, inflates: inflates)
            }
        }
    }

    var body: HTTPClientRequest.Body {
        let size = length.map { HTTPClientRequest.Body.Length.known(Int64($0)) } ?? .unknown
        return .stream(Pieces(pieces: pieces, blobs: blobs), length: size)
    }

    private struct Pieces: AsyncSequence, Sendable {
        typealias Element = ByteBuffer
        let pieces: [Piece]
        let blobs: BlobFiles

        func makeAsyncIterator() -> Reader { Reader(pieces[...], blobs) }
    }

    private struct Reader: AsyncIteratorProtocol {
        private var pieces: ArraySlice<Piece>
        private let blobs: BlobFiles
        private var isSent = false
        private var blob: BlobReader?
        private var base64: Base64Reader?

        init(_ pieces: ArraySlice<Piece>, _ blobs: BlobFiles) { (self.pieces, self.blobs) = (pieces, blobs) }

        mutating func next() async throws -> ByteBuffer? {
            while let piece = pieces.first {
                let bytes: [UInt8]?
                switch piece {
                case .bytes(let all): bytes = isSent ? nil : all
                case .blob(let digest):
                    var reader = try blob ?? BlobReader(digest, inflates: false, blobs)
                    bytes = try reader.next()
                    blob = reader
                case .base64(let digest, let inflates):
                    var reader = try base64 ?? Base64Reader(digest, inflates: inflates, blobs)
                    bytes = try reader.next()
                    base64 = reader
                }
                guard let bytes else {
                    pieces.removeFirst()
                    (isSent, blob, base64) = (false, nil, nil)
                    continue
                }
                isSent = true
                if !bytes.isEmpty { return ByteBuffer(bytes: bytes) }
            }
            return nil
        }
    }
}
