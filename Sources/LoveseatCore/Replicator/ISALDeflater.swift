private import CISAL
package import LoveseatBLIP

/// The deflate of ISA-L at its level 1: the size of zlib's level 1, at half the cost. It takes 170 kB a connection.
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
