import NIOCore
import NIOHTTP1

/// One connection of a browser: its requests and replies, one after the other.
struct WebConnection {
    typealias Channel = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

    private static let idleTimeout = TimeAmount.seconds(60)
    /// Bytes of a body beyond the maximum that are read, so that the browser sees the refusal before the connection closes.
    private static let discardedBytes = 16 << 20

    let channel: Channel

    /// Adds HTTP to a channel. Called on its event loop.
    init(_ channel: any NIOCore.Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandlers([
            IdleStateHandler(allTimeout: Self.idleTimeout), IdleConnectionCloser(),
        ])
        try pipeline.configureHTTPServerPipeline()
        self.channel = try Channel(wrappingChannelSynchronously: channel)
    }

    /// The requests that arrive.
    struct Requests {
        var parts: NIOAsyncChannelInboundStream<HTTPServerRequestPart>.AsyncIterator
        private let outbound: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>
        private var isInBody = false
        /// Whether the client waits until it is asked for the body.
        private var waits = false

        init(
            _ parts: NIOAsyncChannelInboundStream<HTTPServerRequestPart>.AsyncIterator,
            _ outbound: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>
        ) {
            (self.parts, self.outbound) = (parts, outbound)
        }

        /// The next request, without its body.
        mutating func next() async throws -> HTTPRequestHead? {
            guard case .head(let head)? = try await parts.next() else { return nil }
            isInBody = true
            waits =
                head.version != .http1_0
                && head.headers[canonicalForm: "Expect"].contains { $0.lowercased() == "100-continue" }
            return head
        }

        /// Reads the body of the request; nil if it is longer than the maximum, in bytes.
        mutating func body(upTo maximum: Int) async throws -> [UInt8]? {
            if waits {
                waits = false
                try await outbound.write(.head(HTTPResponseHead(version: .http1_1, status: .continue)))
            }
            var body: [UInt8] = []
            while isInBody, let part = try await parts.next() {
                switch part {
                case .body(let buffer):
                    guard buffer.readableBytes <= maximum - body.count else { return nil }
                    body.append(contentsOf: buffer.readableBytesView)
                case .head, .end: isInBody = false
                }
            }
            return body
        }

        /// Reads what is left of the request; false if that is too much.
        mutating func finish() async throws -> Bool {
            var left = WebConnection.discardedBytes
            while isInBody, let part = try await parts.next() {
                switch part {
                case .body(let buffer):
                    left -= buffer.readableBytes
                    guard left >= 0 else { return false }
                case .head, .end: isInBody = false
                }
            }
            return true
        }
    }
}

/// Closes a connection on which nothing happens.
private final class IdleConnectionCloser: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is IdleStateHandler.IdleStateEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        context.close(promise: nil)
    }
}
