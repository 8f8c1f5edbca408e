import Foundation
import LoveseatBLIP
import LoveseatPlatform
import Testing

/// A peer that says whatever it likes to a real `serve` process, over a socket of its own.
final class HostilePeer {
    private let socket: Int32
    private var encoder = FrameEncoder(compressionLevel: 9)
    private var number: UInt64 = 0
    private var decoder = FrameDecoder(largestFrame: 1 << 20)
    private var unread: [UInt8] = []
    private var isOpen = true

    /// Connects and, unless told otherwise, opens a WebSocket.
    init(port: UInt16, upgrades: Bool = true) throws {
        socket = LoveseatPlatform.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(status == 0, "cannot connect")
        var patience = timeval(tv_sec: 5, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(socket, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        guard upgrades else { return }
        send(
            Array(
                """
                GET /a/_blipsync HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n\r\n
                """.utf8
            )
        )
        var head = ""
        while !head.hasSuffix("\r\n\r\n") {
            let byte = try #require(read(1)?.first)
            head.unicodeScalars.append(Unicode.Scalar(byte))
        }
        try #require(head.hasPrefix("HTTP/1.1 101"))
    }

    deinit { close() }

    /// Ends the connection; the peer is of no use afterwards.
    func close() {
        guard isOpen else { return }
        isOpen = false
        LoveseatPlatform.close(socket)
    }

    /// Sends bytes as they are; false when the other side takes no more.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                LoveseatPlatform.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private func read(_ count: Int) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: count)
        let got = recv(socket, &buffer, count, 0)
        return got > 0 ? Array(buffer.prefix(got)) : nil
    }

    /// Sends a WebSocket frame; its mask is of zeros.
    @discardableResult
    func sendFrame(_ payload: [UInt8], opcode: UInt8 = 2, isFinal: Bool = true) -> Bool {
        var bytes: [UInt8] = [opcode | (isFinal ? 0x80 : 0)]
        switch payload.count {
        case ...125: bytes.append(0x80 | UInt8(payload.count))
        case ...0xFFFF: bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
        default:
            bytes += [0x80 | 127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        return send(bytes + [0, 0, 0, 0] + payload)
    }

    /// Sends a request in frames of 16 kB; false when the other side takes no more.
    @discardableResult
    func request(
        _ properties: MessageProperties,
        _ body: [UInt8] = [],
        compressed: Bool = false,
        ends: Bool = true
    ) -> Bool {
        number += 1
        let head = properties.encoded
        var message: [UInt8] = []
        message.appendVarInt(UInt64(head.count))
        message += head + body
        var rest = message[...]
        while !rest.isEmpty {
            let chunk = rest.prefix(16_000)
            rest = rest.dropFirst(chunk.count)
            guard piece(chunk, compressed: compressed, isLast: rest.isEmpty && ends) else { return false }
        }
        return true
    }

    /// Sends one more frame of the last request.
    @discardableResult
    func piece(_ payload: ArraySlice<UInt8>, compressed: Bool = false, isLast: Bool) -> Bool {
        var flags: FrameFlags = compressed ? [.compressed] : []
        if !isLast { flags.insert(.moreComing) }
        guard let frame = try? encoder.frame(number: number, type: .request, flags: flags, payload: payload)
        else {
            return false
        }
        return sendFrame(frame)
    }

    /// Sends requests at once, a frame of each in turn, without waiting for acknowledgements.
    @discardableResult
    func interleave(_ requests: [(properties: MessageProperties, body: [UInt8])]) -> Bool {
        var rests: [(number: UInt64, rest: ArraySlice<UInt8>)] = requests.map { request in
            number += 1
            let head = request.properties.encoded
            var message: [UInt8] = []
            message.appendVarInt(UInt64(head.count))
            message += head + request.body
            return (number, message[...])
        }
        while !rests.isEmpty {
            for index in rests.indices {
                let chunk = rests[index].rest.prefix(16_000)
                rests[index].rest = rests[index].rest.dropFirst(chunk.count)
                let flags: FrameFlags = rests[index].rest.isEmpty ? [] : [.moreComing]
                let (number, type) = (rests[index].number, MessageType.request)
                guard
                    let frame = try? encoder.frame(number: number, type: type, flags: flags, payload: chunk),
                    sendFrame(frame)
                else { return false }
            }
            rests.removeAll { $0.rest.isEmpty }
        }
        return true
    }

    /// What the other side sends until it has answered so many requests; nil where that is an error.
    func answers(_ count: Int) throws -> [UInt64: Bool] {
        var found: [UInt64: Bool] = [:]
        while found.count < count {
            while let frame = nextFrame() {
                guard let frame = try decoder.decode(frame), !frame.flags.contains(.moreComing) else {
                    continue
                }
                if frame.type == .response || frame.type == .error {
                    found[frame.number] = frame.type == .response
                }
            }
            guard found.count < count else { break }
            unread += try #require(read(64 << 10), "the other side says nothing more")
        }
        return found
    }

    /// A whole WebSocket frame's content of what has been read.
    private func nextFrame() -> [UInt8]? {
        guard unread.count >= 2 else { return nil }
        var (start, length) = (2, Int(unread[1] & 0x7F))
        if length == 126 {
            guard unread.count >= 4 else { return nil }
            (start, length) = (4, Int(unread[2]) << 8 | Int(unread[3]))
        }
        guard length < 126 || start == 4, unread.count >= start + length else { return nil }
        defer { unread.removeFirst(start + length) }
        return Array(unread[start..<start + length])
    }

    /// Answers a request of the other side's, whose requests count from 1.
    @discardableResult
    func answer(_ number: UInt64, _ body: [UInt8]) -> Bool {
        let message = [0] + body
        guard
            let frame = try? encoder.frame(number: number, type: .response, flags: [], payload: message[...])
        else { return false }
        return sendFrame(frame)
    }

    /// Whether the other side ends the connection within so many seconds, whatever it says before.
    func isEnded(within seconds: Double = 5) -> Bool {
        let deadline = Date().addingTimeInterval(seconds)
        while Date() < deadline {
            errno = 0
            if read(64 << 10) == nil { return errno != EAGAIN && errno != EWOULDBLOCK }
        }
        return false
    }

    /// What has been said in the next frames until one holds a text.
    func hears(_ text: String, within seconds: Double = 5) -> Bool {
        let deadline = Date().addingTimeInterval(seconds)
        var heard: [UInt8] = []
        let wanted = Array(text.utf8)
        while Date() < deadline, let bytes = read(64 << 10) {
            heard += bytes
            if heard.firstRange(of: wanted) != nil { return true }
        }
        return false
    }

    /// Agrees on the default collection.
    func getCollections() {
        request(
            ["Profile": "getCollections"],
            Array(#"{"checkpoint_ids":["x"],"collections":["_default._default"]}"#.utf8)
        )
    }

    /// Has the other side ask for a revision of a document; false if it says nothing more.
    func propose(_ id: String) -> Bool {
        request(["Profile": "proposeChanges", "collection": "0"], Array(#"[["\#(id)","1-aa"]]"#.utf8))
        return hears("maxHistory")
    }

    /// Offers a document, and then says one thing again and again; whether the other side ends that.
    func repeats(_ properties: MessageProperties, _ body: [UInt8]) -> Bool {
        getCollections()
        guard propose("evil") else { return false }
        for _ in 0..<200 where !request(properties, body) { return true }
        return isEnded()
    }
}
