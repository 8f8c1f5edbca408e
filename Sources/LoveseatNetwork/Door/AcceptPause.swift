import NIOCore

/// Stops accepting for a moment when accepting fails, which it does while there are no file descriptors left.
///
/// A server channel stays readable as long as a client waits, so that trying again at once would keep a processor busy.
/// (NIO's `AcceptBackoffHandler` holds reads back, which doesn't help when the channel is registered for reading already:
/// that is so from the second failure on.)
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = Channel

    /// How long accepting pauses after a failure.
    static let length = TimeAmount.milliseconds(250)

    private var resuming: Scheduled<Void>?

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // For any other error NIO closes the channel, and the listener stops.
        guard error is IOError else { return context.fireErrorCaught(error) }
        if resuming != nil { return }
        let channel = context.channel
        // A channel that is closed meanwhile has nothing to pause.
        _ = channel.setOption(.autoRead, value: false)
        resuming = context.eventLoop.assumeIsolated().scheduleTask(in: Self.length) {
            self.resuming = nil
            _ = channel.setOption(.autoRead, value: true)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        resuming?.cancel()
        resuming = nil
    }
}
