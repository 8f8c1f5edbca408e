private import CISAL
package import LoveseatBLIP

/// The deflate of ISA-L at its level 0, with Huffman codes that are chosen by the content. Messages that are alike become as short as by
/// zlib's level 1, others about 10 % longer, at a quarter to a sixth of the cost. It takes 120 kB a connection.
// @unchecked because the one owner, a connection, is itself used from one place at a time.
package final class ISALDeflater: Deflater, @unchecked Sendable {
    private let stream: OpaquePointer

    /// Returns nil where the library is missing.
    package init?() {
        guard let stream = isal_deflater_create() else { return nil }
        self.stream = stream
    }

    deinit { isal_deflater_destroy(stream) }

    /// CRC-32; nil where the library is missing.
    package static let checksum: ChecksumFunction? = {
        guard isal_has_checksum() != 0 else { return nil }
        return { value, bytes in isal_checksum(value, bytes.baseAddress, bytes.count) }
    }()

    package func room(for count: Int) -> Int { 2 * count + 300 }

    package func deflate(
        _ input: UnsafeBufferPointer<UInt8>,
        into output: UnsafeMutableBufferPointer<UInt8>
    ) -> Int? {
        let count = isal_deflater_run(
            stream,
            input.baseAddress,
            input.count,
            output.baseAddress,
            output.count
        )
        return count > 0 ? count : nil
    }
}
