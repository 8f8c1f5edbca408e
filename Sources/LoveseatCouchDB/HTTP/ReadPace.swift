package import NIOCore

/// Reads from a connection as much at a time as takes a few milliseconds to process. A body in chunks of single bytes takes a thousand times
/// as long as one in large chunks, and the other connections of the event loop wait meanwhile.
package final class ReadPace: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    /// The sizes of a read, in bytes. Attachments come in larger pieces than requests.
    private static let sizes = 1 << 10...256 << 10
    /// The size with which a connection begins, and to which it returns.
    package static let usualSize = 16 << 10
    /// How long a read may take.
    private static let longest = TimeAmount.milliseconds(2)

    private var size = usualSize
    private var bytes = 0
    private var time = TimeAmount.zero

    package init() {}

    package func handlerAdded(context: ChannelHandlerContext) { apply(context) }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytes
        let start = NIODeadline.now()
        context.fireChannelRead(data)
        time = time + (.now() - start)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        let start = NIODeadline.now()
        context.fireChannelReadComplete()
        let next = Self.size(after: size, of: bytes, in: time + (.now() - start))
        (bytes, time) = (0, .zero)
        if next == size { return }
        size = next
        apply(context)
    }

    /// The size of the next read after one of so many bytes, which took some time.
    package static func size(after size: Int, of bytes: Int, in time: TimeAmount) -> Int {
        if time > longest {
            let fitting = Double(bytes) * Double(longest.nanoseconds) / Double(time.nanoseconds)
            return min(size, max(sizes.lowerBound, Int(fitting)))
        }
        if bytes >= size, time < .nanoseconds(longest.nanoseconds / 2) {
            return min(size * 2, sizes.upperBound)
        }
        // Small pieces of a body would keep large buffers.
        return bytes < size / 4 && size > usualSize ? max(size / 2, usualSize) : size
    }

    private func apply(_ context: ChannelHandlerContext) {
        let allocator = FixedSizeRecvByteBufferAllocator(capacity: size)
        // A channel without the option, such as one of a test, reads as it does.
        try? context.channel.syncOptions?.setOption(.recvAllocator, value: allocator)
    }
}
