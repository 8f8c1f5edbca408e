import Foundation
import LoveseatCore
public import LoveseatModel
private import LoveseatPlatform
private import LoveseatReplication
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A transport over a socket or a pair of pipes, for ``ProtocolType/byteStream``. It does not encrypt.
///
/// A call of `send` or `receive` that waits throws when its task is cancelled.
public final class SocketTransport: MessageTransport {
    private static let receiveLimit = 256 << 10

    static let isClosed = LoveseatError(.webSocketAbnormalClose, "the socket is closed")

    private let channel: any Channel
    private let mailbox: Mailbox

    private init(channel: any Channel, mailbox: Mailbox) {
        self.channel = channel
        self.mailbox = mailbox
    }

    // MARK: Making one

    /// Connects over TCP, without TLS.
    ///
    /// - Throws: ``LoveseatError``: an error of the network, such as `unknownHost`, or `ECONNREFUSED` of the `posix` domain.
    public convenience init(host: String, port: UInt16) async throws(LoveseatError) {
        try await self.init { try await $0.connect(host: host, port: Int(port)).channelUnlessCancelled() }
    }

    /// Connects to a Unix-domain socket.
    ///
    /// - Throws: ``LoveseatError``: an error of the `posix` domain, such as `ENOENT` or `ECONNREFUSED`.
    public convenience init(unixDomainSocketPath path: String) async throws(LoveseatError) {
        try await self.init { try await $0.connect(unixDomainSocketPath: path).channelUnlessCancelled() }
    }

    /// Takes over a connected socket. The transport closes the descriptor.
    ///
    /// - Throws: ``LoveseatError``: an error of the `posix` domain if the descriptor is not a connected socket.
    public convenience init(adopting descriptor: Int32) async throws(LoveseatError) {
        try await self.init { try await $0.withConnectedSocket(descriptor).channelUnlessCancelled() }
    }

    /// Takes over two pipes, such as the output and input of a child process. The transport closes both descriptors.
    ///
    /// - Parameters:
    ///   - input: The descriptor to read from.
    ///   - output: The descriptor to write to.
    /// - Throws: ``LoveseatError``: `invalidParameter` if a descriptor is that of a file or of a device such as `/dev/null`, and an error of the
    ///   `posix` domain if one is not open.
    public init(input: Int32, output: Int32) async throws(LoveseatError) {
        try Self.checkStream(input, "input")
        try Self.checkStream(output, "output")
        let parts = Parts()
        do {
            channel = try await NIOPipeBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { parts.install(on: $0) }
                .takingOwnershipOfDescriptors(input: input, output: output).channelUnlessCancelled()
            mailbox = parts.mailbox
        } catch { throw LoveseatError(network: error) }
    }

    /// NIO ends the process when it is to wait for a descriptor that the system does not let anybody wait for.
    private static func checkStream(_ descriptor: Int32, _ role: String) throws(LoveseatError) {
        // Only files, and devices such as /dev/null, have a position.
        if isatty(descriptor) == 1 || lseek(descriptor, 0, SEEK_CUR) < 0 { return }
        throw LoveseatError(
            .invalidParameter,
            "the \(role) is not a pipe, a socket or a terminal: connect it with the program of the peer"
        )
    }

    private init(_ connect: (ClientBootstrap) async throws -> any Channel) async throws(LoveseatError) {
        let parts = Parts()
        do {
            channel = try await connect(
                ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .channelInitializer { parts.install(on: $0) }
            )
            mailbox = parts.mailbox
        } catch { throw LoveseatError(network: error) }
    }

    /// Returns the two ends of a Unix-domain socket pair, for tests.
    ///
    /// - Throws: ``LoveseatError``: an error of the `posix` domain if the process has too many open descriptors.
    public static func pair() async throws(LoveseatError) -> (SocketTransport, SocketTransport) {
        let (one, other) = try await pairOfDescriptors()
        return (try await SocketTransport(adopting: one), try await SocketTransport(adopting: other))
    }

    static func pairOfDescriptors() async throws(LoveseatError) -> (Int32, Int32) {
        var descriptors: [Int32] = [0, 0]
        #if canImport(Darwin)
        let type = SOCK_STREAM
        #else
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        #endif
        guard socketpair(AF_UNIX, type, 0, &descriptors) == 0 else {
            throw LoveseatError(
                .init(Int(errno), domain: .posix),
                "cannot create a pair of sockets: \(String(cString: strerror(errno)))"
            )
        }
        return (descriptors[0], descriptors[1])
    }

    // MARK: Using it

    /// Sends bytes, and returns when the socket can take more.
    ///
    /// - Throws: ``LoveseatError``: `webSocketAbnormalClose` if the socket is closed or broken; `CancellationError` if the task is cancelled
    ///   while it waits, although the bytes may be sent.
    public func send(_ bytes: [UInt8]) async throws {
        let sent: EventLoopFuture<Void> = channel.writeAndFlush(ByteBuffer(bytes: bytes))
        let result: Result<Void, any Error>? = await unlessCancelled { finish in
            sent.whenComplete { _ = finish($0) }
        }
        guard let result else { throw CancellationError() }
        do { try result.get() } catch { throw Self.isClosed }
    }

    /// Waits for bytes and returns them, or nil when the other side has closed the connection.
    ///
    /// - Throws: ``LoveseatError`` if the socket is broken; `CancellationError` if the task is cancelled.
    public func receive() async throws -> [UInt8]? {
        guard let pieces = try await mailbox.receiveUnlessCancelled() else { return nil }
        return pieces.count == 1 ? pieces[0] : Array(pieces.joined())
    }

    /// Closes the connection.
    public func close() async {
        mailbox.finish()
        // The other side, or an earlier call, may have closed it already.
        try? await channel.close().get()
    }

    /// The state before there is a channel.
    private final class Parts: Sendable {
        let mailbox: Mailbox
        private let relay = NIOLockedValueBox<(any Channel)?>(nil)

        init() {
            let relay = relay
            mailbox = Mailbox(limit: SocketTransport.receiveLimit) {
                let channel = relay.withLockedValue { $0 }
                channel?.eventLoop.execute { channel?.read() }
            }
        }

        func install(on channel: any Channel) -> EventLoopFuture<Void> {
            relay.withLockedValue { $0 = channel }
            return channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(Collector(mailbox))
            }
        }
    }

    /// Puts received bytes into the mailbox, and stops reading while that is full.
    private final class Collector: ChannelDuplexHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundIn = ByteBuffer

        private let mailbox: Mailbox
        init(_ mailbox: Mailbox) { self.mailbox = mailbox }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            mailbox.deliver([Array(unwrapInboundIn(data).readableBytesView)])
        }

        /// A full mailbox asks for more after it was emptied.
        func read(context: ChannelHandlerContext) { if !mailbox.isFull { context.read() } }

        func channelInactive(context: ChannelHandlerContext) {
            mailbox.finish()
            context.fireChannelInactive()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            mailbox.finish(LoveseatError(network: error))
            context.close(promise: nil)
        }
    }
}

extension EventLoopFuture<any Channel> {
    /// Waits for a channel until the task is cancelled. A channel that comes later is closed.
    fileprivate func channelUnlessCancelled() async throws -> any Channel {
        let result: Result<any Channel, any Error>? = await unlessCancelled { finish in
            whenComplete { result in
                if !finish(result), case .success(let channel) = result { channel.close(promise: nil) }
            }
        }
        guard let result else { throw CancellationError() }
        return try result.get()
    }
}
