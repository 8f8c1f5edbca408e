private import LoveseatPlatform
import NIOCore
import NIOWebSocket

/// Writes WebSocket frames (RFC 6455 §5.2), and reads what is in them. NIO's own code masks a byte at a time, which cost a fifth
/// of a blob's time at either end.
enum WebSocketFrames {
    /// Appends a whole frame, with a random mask if it is a client's.
    static func append(
        _ opcode: WebSocketOpcode,
        _ payload: [UInt8],
        masked: Bool,
        with keys: inout MaskKeys,
        to data: inout ByteBuffer
    ) {
        data.writeInteger(0x80 | UInt8(webSocketOpcode: opcode))
        let maskBit: UInt8 = masked ? 0x80 : 0
        switch payload.count {
        case ...125: data.writeInteger(maskBit | UInt8(payload.count))
        case ...0xFFFF:
            data.writeInteger(maskBit | 126)
            data.writeInteger(UInt16(payload.count))
        default:
            data.writeInteger(maskBit | 127)
            data.writeInteger(UInt64(payload.count))
        }
        guard masked else {
            data.writeBytes(payload)
            return
        }
        let key = keys.next()
        data.writeInteger(key, endianness: .little)
        data.writeWithUnsafeMutableBytes(minimumWritableBytes: payload.count) { target in
            payload.withUnsafeBytes { mask($0, with: key, into: target) }
            return payload.count
        }
    }

    /// Appends what a received frame carries to a message.
    static func append(payloadOf frame: WebSocketFrame, to message: inout [UInt8]) {
        frame.data.withUnsafeReadableBytes { source in
            let start = message.count
            message.append(contentsOf: source)
            // A server does not mask its frames.
            guard let bytes = frame.maskKey else { return }
            let key = bytes.reduce(UInt32(0)) { $0 >> 8 | UInt32($1) << 24 }
            message.withUnsafeMutableBytes {
                mask(source, with: key, into: UnsafeMutableRawBufferPointer(rebasing: $0[start...]))
            }
        }
    }

    private static func mask(
        _ source: UnsafeRawBufferPointer,
        with key: UInt32,
        into target: UnsafeMutableRawBufferPointer
    ) {
        let wide = UInt64(key) << 32 | UInt64(key)
        var index = 0
        while index + 8 <= source.count {
            let word = source.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian ^ wide
            target.storeBytes(of: word.littleEndian, toByteOffset: index, as: UInt64.self)
            index += 8
        }
        while index < source.count {
            target[index] = source[index] ^ UInt8(truncatingIfNeeded: key >> (8 * UInt32(index & 3)))
            index += 1
        }
    }
}

/// Random keys for masks, many for one call of the system.
struct MaskKeys {
    private static let batch = 64
    private var keys: [UInt32] = []

    mutating func next() -> UInt32 {
        if keys.isEmpty { refill() }
        return keys.popLast() ?? UInt32.random(in: .min ... .max)
    }

    private mutating func refill() {
        keys = [UInt32](unsafeUninitializedCapacity: Self.batch) { keys, count in
            // 256 bytes, the most that getentropy gives at once.
            let size = Self.batch * MemoryLayout<UInt32>.size
            #if canImport(Darwin)
            arc4random_buf(keys.baseAddress, size)
            count = Self.batch
            #else
            count = getentropy(keys.baseAddress, size) == 0 ? Self.batch : 0
            #endif
        }
    }
}
