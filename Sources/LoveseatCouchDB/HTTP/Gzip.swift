import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import NIOCore

/// The content of a request as it was before it was compressed.
struct BodyInflater {
    private let gzip: GzipInflater?

    init(encoding: String?) throws(CouchDBError) {
        switch encoding?.lowercased() {
        case nil, "identity", "": gzip = nil
        case "gzip":
            do { gzip = try GzipInflater() } catch {
                throw CouchDBError(503, "service_unavailable", "no memory to inflate")
            }
        case let other?:
            throw CouchDBError(415, "bad_content_type", "\(other) is not a supported content encoding.")
        }
    }

    /// The size of the pieces of compressed content that are inflated at a time, in bytes. They become a thousand times larger.
    private static let compressedPiece = 1 << 10

    /// Whether content may become larger.
    var mayGrow: Bool { gzip != nil }

    /// The pieces of a part of the request that are inflated one by one.
    func pieces(of part: ByteBuffer) -> [ByteBuffer] {
        guard gzip != nil else { return [part] }
        var part = part
        var pieces: [ByteBuffer] = []
        while let piece = part.readSlice(length: min(Self.compressedPiece, part.readableBytes)),
            piece.readableBytes > 0
        {
            pieces.append(piece)
        }
        return pieces
    }

    /// Calls a closure with the content of a piece of the request, in pieces of limited size.
    func inflate(_ piece: UnsafeRawBufferPointer, _ use: (UnsafeRawBufferPointer) throws -> Void) throws {
        guard let gzip else { return try use(piece) }
        do { try gzip.inflate(piece) { try $0.withUnsafeBytes(use) } } catch let error as LoveseatError
            where error.code == .corruptData
        {
            throw CouchDBError.badRequest(error.message)
        }
    }

    func finish() throws {
        if let gzip, !gzip.isEnded { throw CouchDBError.badRequest("the compressed content is cut") }
    }
}
