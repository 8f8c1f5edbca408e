import HTTPTypes
import HummingbirdCore
import NIOCore

/// Waits now and then until the connection's event loop has taken what was written. The writer beneath accepts everything until the loop tells it
/// that the socket is full, which can be tens of megabytes later.
struct PacedWriter: ResponseBodyWriter {
    private static let maximumBytes = 1 << 20

    private var base: any ResponseBodyWriter
    private let eventLoop: any EventLoop
    private var written = 0

    init(_ base: any ResponseBodyWriter, on eventLoop: any EventLoop) {
        (self.base, self.eventLoop) = (base, eventLoop)
    }

    mutating func write(_ buffer: ByteBuffer) async throws {
        try await base.write(buffer)
        written += buffer.readableBytes
        guard written >= Self.maximumBytes else { return }
        written = 0
        try await eventLoop.submit {}.get()
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        try await base.finish(trailingHeaders)
    }
}
