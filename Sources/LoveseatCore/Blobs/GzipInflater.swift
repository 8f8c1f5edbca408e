import CZlib
package import LoveseatModel

/// Inflates gzip piece by piece: one member, or several one after another (RFC 1952 §2.2).
package final class GzipInflater {
    private var stream = z_stream()
    /// Whether a member ended with the bytes that were inflated so far. The content is whole if nothing follows.
    package private(set) var isEnded = false

    /// - Throws: `memoryError`.
    package init() throws(LoveseatError) {
        // 16: gzip's header, not zlib's.
        guard inflateInit2_(&stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw LoveseatError(.memoryError, "there is not enough memory to inflate compressed content")
        }
    }

    deinit { inflateEnd(&stream) }

    /// Inflates a piece, and calls `emit` with the result, at most 64 kB at a time.
    ///
    /// - Throws: `corruptData` if the content is not gzip; the error that `emit` throws.
    package func inflate(_ piece: UnsafeRawBufferPointer, emit: (ArraySlice<UInt8>) throws -> Void) throws {
        // An empty piece may have no address.
        guard let start = piece.bindMemory(to: UInt8.self).baseAddress, !piece.isEmpty else { return }
        stream.next_in = UnsafeMutablePointer(mutating: start)
        stream.avail_in = UInt32(piece.count)
        var output = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            if isEnded {
                inflateReset(&stream)
                isEnded = false
            }
            let (status, made) = output.withUnsafeMutableBufferPointer { buffer in
                stream.next_out = buffer.baseAddress
                stream.avail_out = UInt32(buffer.count)
                let status = CZlib.inflate(&stream, Z_NO_FLUSH)
                return (status, buffer.count - Int(stream.avail_out))
            }
            if made > 0 { try emit(output[..<made]) }
            if status == Z_STREAM_END {
                isEnded = true
                if stream.avail_in > 0 { continue }
                return
            }
            guard status == Z_OK else {
                if status == Z_BUF_ERROR, stream.avail_in == 0 { return }
                throw LoveseatError(.corruptData, "the content is not gzip")
            }
            if stream.avail_in == 0, made < output.count { return }
        }
    }
}
