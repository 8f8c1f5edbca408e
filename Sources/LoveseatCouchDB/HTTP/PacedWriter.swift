import HTTPTypes
import HummingbirdCore
import NIOCore

/// Waits after each megabyte until the connection's event loop has processed what was written. Otherwise Hummingbird's writer accepts tens
/// of megabytes before the loop reports that the socket is full.
struct PacedWriter: ResponseBodyWriter {
    /// The client went away, or its connection broke.
    struct ClientIsGone: Error { let cause: any Error }

    private static let maximumBytes = 1 << 20

    private var base: any ResponseBodyWriter
    private let eventLoop: any EventLoop
    private var written = 0

    init(_ base: any ResponseBodyWriter, on eventLoop: any EventLoop) {
        (self.base, self.eventLoop) = (base, eventLoop)
    }

    mutating func write(_ buffer: ByteBuffer) async throws {
        do {
            try await base.write(buffer)
            written += buffer.readableBytes
            if written < Self.maximumBytes { return }
            written = 0
            try await eventLoop.submit {}.get()
        } catch { throw ClientIsGone(cause: error) }
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        try await base.finish(trailingHeaders)
    }
}
