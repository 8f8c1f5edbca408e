import CZlib
import LoveseatCouchDBReplication

/// Inflates gzip piece by piece.
final class GzipInflater {
    private var stream = z_stream()
    private(set) var isEnded = false

    init() throws(CouchDBError) {
        // 16: gzip's header, not zlib's.
        guard inflateInit2_(&stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw CouchDBError(503, "service_unavailable", "no memory to inflate")
        }
    }

    deinit { inflateEnd(&stream) }

    /// Calls `emit` with what a piece inflates to, at most 64 kB at a time.
    func inflate(_ piece: UnsafeRawBufferPointer, emit: (ArraySlice<UInt8>) throws -> Void) throws {
        guard let start = piece.bindMemory(to: UInt8.self).baseAddress, !piece.isEmpty else { return }
        stream.next_in = UnsafeMutablePointer(mutating: start)
        stream.avail_in = UInt32(piece.count)
        var output = [UInt8](repeating: 0, count: 64 << 10)
        while !isEnded {
            let (status, made) = output.withUnsafeMutableBufferPointer { buffer in
                stream.next_out = buffer.baseAddress
                stream.avail_out = UInt32(buffer.count)
                let status = CZlib.inflate(&stream, Z_NO_FLUSH)
                return (status, buffer.count - Int(stream.avail_out))
            }
            if made > 0 { try emit(output[..<made]) }
            if status == Z_STREAM_END { isEnded = true }
            guard status == Z_OK || status == Z_STREAM_END else {
                if status == Z_BUF_ERROR, stream.avail_in == 0 { return }
                throw CouchDBError.badRequest("the content is not gzip")
            }
            if stream.avail_in == 0, made < output.count { return }
        }
    }
}

/// The content of a request as it was before it was compressed.
struct BodyInflater {
    private let gzip: GzipInflater?

    init(encoding: String?) throws(CouchDBError) {
        switch encoding?.lowercased() {
        case nil, "identity", "": gzip = nil
        case "gzip": gzip = try GzipInflater()
        case let other?:
            throw CouchDBError(415, "bad_content_type", "\(other) is not a supported content encoding.")
        }
    }

    mutating func inflate(_ piece: UnsafeRawBufferPointer, into bytes: inout [UInt8], limit: Int) throws {
        func check(_ count: Int) throws {
            if count > limit {
                throw CouchDBError(413, "too_large", "the request is larger than \(limit) bytes")
            }
        }
        guard let gzip else {
            try check(bytes.count + piece.count)
            bytes.append(contentsOf: piece)
            return
        }
        try gzip.inflate(piece) {
            try check(bytes.count + $0.count)
            bytes.append(contentsOf: $0)
        }
    }

    func finish() throws {
        if let gzip, !gzip.isEnded { throw CouchDBError.badRequest("the compressed content is cut") }
    }
}
