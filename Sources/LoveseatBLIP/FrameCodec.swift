private import CZlib

/// One direction's deflate context, kept for the whole connection (blip.md §5).
///
/// A class, because zlib keeps a pointer to its own state; it is confined to the ``BLIPConnection`` that owns it.
// @unchecked because the one owner, a connection, is itself used from one place at a time.
final class DeflateStream: @unchecked Sendable {
    private let stream: UnsafeMutablePointer<z_stream>
    private let isDeflating: Bool

    static let trailer: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]
    /// A window of 16 kB and hash tables to match, a third of what zlib takes by default: messages of a connection are
    /// alike, so that what is a few messages back serves as well (measured: the same size and speed).
    private static let (windowBits, memoryLevel) = (Int32(-14), Int32(7))

    /// Returns nil only if there is no memory for the window.
    init?(deflatingAtLevel level: Int32?) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        isDeflating = level != nil
        let size = Int32(MemoryLayout<z_stream>.size)
        let status =
            if let level {
                deflateInit2_(
                    stream,
                    level,
                    Z_DEFLATED,
                    Self.windowBits,
                    Self.memoryLevel,
                    Z_DEFAULT_STRATEGY,
                    ZLIB_VERSION,
                    size
                )
            } else { inflateInit2_(stream, -15, ZLIB_VERSION, size) }
        guard status == Z_OK else { return nil }
    }

    deinit {
        if isDeflating { deflateEnd(stream) } else { inflateEnd(stream) }
        stream.deallocate()
    }

    /// The most bytes that deflating this many can give.
    static func bound(_ count: Int) -> Int { count + (count >> 12) + (count >> 14) + (count >> 25) + 13 + 12 }

    /// Deflates and flushes, without the four bytes that end every flush.
    func deflate(_ input: ArraySlice<UInt8>) throws(BLIPError) -> [UInt8] {
        var output = try run(input, growingBy: Self.bound(input.count), limit: .max) {
            CZlib.deflate($0, Z_SYNC_FLUSH)
        }
        guard output.suffix(4).elementsEqual(Self.trailer) else { throw .compression }
        output.removeLast(4)
        return output
    }

    /// Inflates a frame's payload, whose flush is missing its four bytes, up to a limit.
    func inflate(_ input: ArraySlice<UInt8>, limit: Int) throws(BLIPError) -> [UInt8] {
        try run(input + Self.trailer, growingBy: max(4096, input.count * 4), limit: limit) {
            CZlib.inflate($0, Z_SYNC_FLUSH)
        }
    }

    private func run(
        _ input: ArraySlice<UInt8>,
        growingBy chunk: Int,
        limit: Int,
        step: (UnsafeMutablePointer<z_stream>) -> Int32
    ) throws(BLIPError) -> [UInt8] {
        var output: [UInt8] = []
        var failure: BLIPError?
        input.withUnsafeBufferPointer { source in
            stream.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
            stream.pointee.avail_in = UInt32(source.count)
            repeat {
                let piece = [UInt8](unsafeUninitializedCapacity: chunk) { buffer, count in
                    stream.pointee.next_out = buffer.baseAddress
                    stream.pointee.avail_out = UInt32(chunk)
                    let status = step(stream)
                    count = chunk - Int(stream.pointee.avail_out)
                    // Z_BUF_ERROR says only that there was nothing more to do.
                    if status != Z_OK, status != Z_BUF_ERROR { failure = .compression }
                }
                if output.isEmpty { output = piece } else { output.append(contentsOf: piece) }
                if output.count > limit { failure = .tooLarge("an inflated frame") }
            } while failure == nil && stream.pointee.avail_out == 0
            if failure == nil, stream.pointee.avail_in > 0 { failure = .compression }
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
        }
        if let failure { throw failure }
        return output
    }
}

/// The running CRC-32 of one direction's plain payload bytes (blip.md §6).
struct RunningChecksum {
    private(set) var value: UInt32 = 0

    mutating func update(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBufferPointer { buffer in
            // An empty buffer may have no address, which zlib takes as a request for the start value.
            guard let base = buffer.baseAddress, buffer.count > 0 else { return }
            value = UInt32(truncatingIfNeeded: crc32(UInt(value), base, UInt32(buffer.count)))
        }
    }

    var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
}

/// Turns payloads into frames, in the order of sending.
package struct FrameEncoder: Sendable {
    private var checksum = RunningChecksum()
    private let deflater: DeflateStream?

    /// Level 0 never compresses.
    package init(compressionLevel: Int) {
        deflater =
            compressionLevel > 0 ? DeflateStream(deflatingAtLevel: Int32(min(compressionLevel, 9))) : nil
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
        var frame: [UInt8] = []
        frame.reserveCapacity(payload.count + 16)
        frame.appendVarInt(number)
        frame.appendVarInt(flags.rawValue | UInt64(type.rawValue))
        checksum.update(payload)
        if flags.contains(.compressed), let deflater {
            frame.append(contentsOf: try deflater.deflate(payload))
        } else {
            frame.append(contentsOf: payload)
        }
        frame.append(contentsOf: checksum.bytes)
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
    /// The bytes after the header as they travelled, checksum included: what acknowledgements count.
    package let wireSize: Int
}

/// Turns frames into payloads, in the order of arrival.
package struct FrameDecoder: Sendable {
    private var checksum = RunningChecksum()
    private let inflater = DeflateStream(deflatingAtLevel: nil)
    private let largestFrame: Int

    package init(largestFrame: Int) { self.largestFrame = largestFrame }

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
        guard checksum.bytes.elementsEqual(expected) else { throw .checksum }
        return IncomingFrame(number: number, type: type, flags: flags, payload: payload, wireSize: wireSize)
    }
}
