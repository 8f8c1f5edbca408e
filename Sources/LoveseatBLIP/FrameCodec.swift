private import CZlib

/// A stream of raw deflate, kept for the whole connection (blip.md §5). It is confined to the ``BLIPConnection`` that owns it.
package protocol Deflater: AnyObject, Sendable {
    /// Deflates and flushes to a byte.
    ///
    /// - Returns: the number of bytes, including the four that end every flush; nil if that failed.
    func deflate(_ input: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>) -> Int?

    /// Returns the maximum number of bytes that `count` bytes may become.
    func room(for count: Int) -> Int
}

/// The four bytes that end every flush. They are not sent.
private let flushTrailer: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

/// zlib's deflate.
// @unchecked because the one owner, a connection, is itself used from one place at a time.
final class ZlibDeflater: Deflater, @unchecked Sendable {
    /// In memory of its own, because zlib keeps a pointer to it.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    /// A window of 16 kB and hash tables to match, a third of the memory that zlib takes by default. Messages of a connection are alike, so
    /// a match a few messages back serves as well (measured: the same size and speed).
    private static let (windowBits, memoryLevel) = (Int32(-14), Int32(7))

    /// Returns nil only if there is no memory for the window.
    init?(level: Int) {
        stream.initialize(to: z_stream())
        let status = deflateInit2_(
            stream,
            Int32(level),
            Z_DEFLATED,
            Self.windowBits,
            Self.memoryLevel,
            Z_DEFAULT_STRATEGY,
            ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size)
        )
        guard status == Z_OK else { return nil }
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    func room(for count: Int) -> Int { count + count / 8 + 128 }

    func deflate(_ input: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>) -> Int?
    {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.pointee.avail_in = UInt32(input.count)
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = UInt32(output.count)
        let status = CZlib.deflate(stream, Z_SYNC_FLUSH)
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        guard status == Z_OK, stream.pointee.avail_in == 0, stream.pointee.avail_out > 0 else { return nil }
        return output.count - Int(stream.pointee.avail_out)
    }
}

/// One direction's inflate context, kept for the whole connection.
// @unchecked because the one owner, a connection, is itself used from one place at a time.
final class InflateStream: @unchecked Sendable {
    /// In memory of its own, because zlib keeps a pointer to it.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

    /// Returns nil only if there is no memory for the window.
    init?() {
        stream.initialize(to: z_stream())
        let status = inflateInit2_(stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else { return nil }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Inflates a frame's payload, whose flush is missing its four bytes, up to a limit.
    func inflate(_ input: ArraySlice<UInt8>, limit: Int) throws(BLIPError) -> [UInt8] {
        var output: [UInt8] = []
        var failure: BLIPError?
        let chunk = input.count * 3 + 512
        input.withUnsafeBufferPointer { input in
            flushTrailer.withUnsafeBufferPointer { trailer in
                setInput(input)
                var isAtTrailer = false
                repeat {
                    let piece = [UInt8](unsafeUninitializedCapacity: chunk) { buffer, count in
                        stream.pointee.next_out = buffer.baseAddress
                        stream.pointee.avail_out = UInt32(chunk)
                        if !run() { failure = .compression }
                        if !isAtTrailer, stream.pointee.avail_in == 0, stream.pointee.avail_out > 0 {
                            isAtTrailer = true
                            setInput(trailer)
                            if !run() { failure = .compression }
                        }
                        count = chunk - Int(stream.pointee.avail_out)
                    }
                    if output.isEmpty { output = piece } else { output += piece }
                    if output.count > limit { failure = .tooLarge("an inflated frame") }
                } while failure == nil && stream.pointee.avail_out == 0
            }
        }
        if failure == nil, stream.pointee.avail_in > 0 { failure = .compression }
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        if let failure { throw failure }
        return output
    }

    private func setInput(_ input: UnsafeBufferPointer<UInt8>) {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.pointee.avail_in = UInt32(input.count)
    }

    /// Inflates the input as far as there is room. Returns false if the input is not valid.
    private func run() -> Bool {
        let status = CZlib.inflate(stream, Z_SYNC_FLUSH)
        // Z_BUF_ERROR says only that there was nothing more to do.
        return status == Z_OK || status == Z_BUF_ERROR
    }
}

/// Returns the CRC-32 of bytes, continued from the CRC-32 of the bytes before them, which is 0 if there are none.
package typealias ChecksumFunction = @Sendable (UInt32, UnsafeBufferPointer<UInt8>) -> UInt32

/// The running CRC-32 of one direction's plain payload bytes (blip.md §6).
struct RunningChecksum {
    private(set) var value: UInt32 = 0
    private let function: ChecksumFunction?

    init(_ function: ChecksumFunction?) { self.function = function }

    mutating func update(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBufferPointer { buffer in
            // An empty buffer may have no address, which zlib takes as a request for the start value.
            guard let base = buffer.baseAddress, buffer.count > 0 else { return }
            value =
                function?(value, buffer)
                ?? UInt32(truncatingIfNeeded: crc32(UInt(value), base, UInt32(buffer.count)))
        }
    }

    static let size = 4

    /// The byte at a position, the highest first.
    subscript(index: Int) -> UInt8 { UInt8(truncatingIfNeeded: value >> (24 - 8 * index)) }
}

/// Turns payloads into frames, in the order of sending.
package struct FrameEncoder: Sendable {
    private var checksum: RunningChecksum
    private let deflater: (any Deflater)?

    /// Level 0 never compresses. `deflater` and `checksum`: replace zlib's.
    package init(
        compressionLevel: Int,
        deflater: (any Deflater)? = nil,
        checksum: ChecksumFunction? = nil
    ) {
        self.checksum = RunningChecksum(checksum)
        self.deflater =
            compressionLevel > 0 ? deflater ?? ZlibDeflater(level: min(compressionLevel, 9)) : nil
    }

    package mutating func frame(
        number: UInt64,
        type: MessageType,
        flags: FrameFlags,
        payload: ArraySlice<UInt8>
    ) throws(BLIPError) -> [UInt8] {
        var flags = flags
        // The bit is per frame, and an empty payload must not go through the compressor.
        if payload.isEmpty || deflater == nil { flags.remove(.compressed) }
        checksum.update(payload)
        guard flags.contains(.compressed), let deflater else {
            var frame: [UInt8] = []
            frame.reserveCapacity(payload.count + 16)
            frame.appendVarInt(number)
            frame.appendVarInt(flags.rawValue | UInt64(type.rawValue))
            frame.append(contentsOf: payload)
            for index in 0..<RunningChecksum.size { frame.append(checksum[index]) }
            return frame
        }
        let checksum = checksum
        let frame = [UInt8](unsafeUninitializedCapacity: deflater.room(for: payload.count) + 32) {
            frame,
            count in
            var end = frame.writeVarInt(number, at: 0)
            end = frame.writeVarInt(flags.rawValue | UInt64(type.rawValue), at: end)
            let room = UnsafeMutableBufferPointer(rebasing: frame[end...])
            let deflated = payload.withUnsafeBufferPointer { deflater.deflate($0, into: room) }
            // A deflater may fail. The frame stays empty then, which is an error below.
            guard let deflated, deflated > flushTrailer.count else { return }
            end += deflated - flushTrailer.count
            // The checksum goes where the flush ended.
            for index in 0..<RunningChecksum.size {
                if frame[end + index] != flushTrailer[index] { return }
                frame[end + index] = checksum[index]
            }
            count = end + RunningChecksum.size
        }
        guard !frame.isEmpty else { throw .compression }
        return frame
    }

    package static func acknowledgement(number: UInt64, type: MessageType, bytes: UInt64) -> [UInt8] {
        var frame: [UInt8] = []
        frame.appendVarInt(number)
        frame.appendVarInt(FrameFlags.urgent.union(.noReply).rawValue | UInt64(type.rawValue))
        frame.appendVarInt(bytes)
        return frame
    }
}

/// A frame as it arrived.
package struct IncomingFrame {
    package let number: UInt64
    package let type: MessageType
    package let flags: FrameFlags
    /// The plain payload; of an acknowledgement the varint.
    package let payload: ArraySlice<UInt8>
    /// The number of bytes after the header as they were sent, checksum included. Acknowledgements count these.
    package let wireSize: Int
}

/// Turns frames into payloads, in the order of arrival.
package struct FrameDecoder: Sendable {
    private var checksum: RunningChecksum
    private let inflater = InflateStream()
    private let largestFrame: Int

    /// `checksum`: replaces zlib's.
    package init(largestFrame: Int, checksum: ChecksumFunction? = nil) {
        self.largestFrame = largestFrame
        self.checksum = RunningChecksum(checksum)
    }

    /// Nil for a frame of an unknown type, which is to be ignored.
    package mutating func decode(_ bytes: [UInt8]) throws(BLIPError) -> IncomingFrame? {
        guard bytes.count <= 1 << 20 else { throw .tooLarge("a frame of \(bytes.count) bytes") }
        var rest = bytes[...]
        let number = try rest.readVarInt()
        let rawFlags = try rest.readVarInt()
        guard let type = MessageType(rawValue: UInt8(rawFlags & FrameFlags.typeMask)) else { return nil }
        let flags = FrameFlags(rawValue: rawFlags & ~FrameFlags.typeMask)
        let wireSize = rest.count
        if type == .acknowledgeRequest || type == .acknowledgeResponse {
            return IncomingFrame(number: number, type: type, flags: flags, payload: rest, wireSize: wireSize)
        }
        guard rest.count >= 4 else { throw .frame("no room for a checksum") }
        let expected = rest.suffix(4)
        var payload = rest.dropLast(4)
        if flags.contains(.compressed), !payload.isEmpty {
            guard let inflater else { throw .compression }
            payload = try inflater.inflate(payload, limit: largestFrame)[...]
        }
        checksum.update(payload)
        let isRight = (0..<RunningChecksum.size).allSatisfy {
            checksum[$0] == expected[expected.startIndex + $0]
        }
        guard isRight else { throw .checksum }
        return IncomingFrame(number: number, type: type, flags: flags, payload: payload, wireSize: wireSize)
    }
}
