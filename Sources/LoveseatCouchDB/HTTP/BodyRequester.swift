import NIOCore

/// Asks a client for the body of its request, when an ``Event`` says so.
///
/// It is below the handlers of HTTP, which know only final answers.
final class BodyRequester: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The body is wanted now.
    struct Event: Sendable {}

    func triggerUserOutboundEvent(
        context: ChannelHandlerContext,
        event: Any,
        promise: EventLoopPromise<Void>?
    ) {
        guard event is Event else {
            return context.triggerUserOutboundEvent(event, promise: promise)
        }
        let line = ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n")
        context.writeAndFlush(wrapOutboundOut(line), promise: promise)
    }
}
