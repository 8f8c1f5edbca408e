import HTTPTypes
import HummingbirdCore
import LoveseatAssertions
import NIOCore

/// Waits after each 64 KiB until the connection's event loop has processed what was written. Otherwise Hummingbird's writer accepts tens
/// of megabytes before the loop reports that the socket is full.
struct PacedWriter: ResponseBodyWriter {
    /// The client went away, or its connection broke.
    struct ClientIsGone: Error { let cause: any Error }

    /// How much is written before it waits, in bytes. A client that does not read costs about twice as much.
    static let maximumBytes = 64 << 10

    private var base: any ResponseBodyWriter
    private let eventLoop: any EventLoop
    private var written = 0

    init(_ base: any ResponseBodyWriter, on eventLoop: any EventLoop) {
        (self.base, self.eventLoop) = (base, eventLoop)
    }

    mutating func write(_ buffer: ByteBuffer) async throws {
        do {
            var rest = buffer
            repeat {
                let count = min(rest.readableBytes, Self.maximumBytes - written)
                guard let piece = rest.readSlice(length: count) else {
                    return impossible("a buffer has fewer bytes than it says")
                }
                try await base.write(piece)
                written += count
                if written < Self.maximumBytes { continue }
                written = 0
                try await eventLoop.submit {}.get()
            } while rest.readableBytes > 0
        } catch { throw ClientIsGone(cause: error) }
    }

    /// The maximum number of bytes that the kernel holds for a client that does not read. Bytes in flight do not count, so that a fast
    /// client is not slowed down.
    private static let maximumUnsent = 64 << 10

    static func keepLittleUnsent(by channel: any Channel) {
        #if os(Linux)
        // TCP_NOTSENT_LOWAT
        let option = ChannelOptions.Types.SocketOption(level: .tcp, name: NIOBSDSocket.Option(rawValue: 25))
        // A kernel without the option takes more.
        channel.setOption(option, value: maximumUnsent).whenComplete { _ in }
        #endif
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        try await base.finish(trailingHeaders)
    }
}
