import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import NIOConcurrencyHelpers

/// Carries BLIP frames over an app's transport.
enum TransportChannel {
    static func make(
        _ transport: any MessageTransport,
        _ type: ProtocolType,
        isActive: Bool,
        heartbeat: Double
    ) async throws -> any MessageChannel {
        switch type {
        case .messageStream: WholeMessages(transport)
        case .byteStream: try await FramedBytes.make(transport, isActive: isActive, heartbeat: heartbeat)
        }
    }
}

/// One transport message is one BLIP frame, with nothing around it.
private final class WholeMessages: MessageChannel {
    private let transport: any MessageTransport
    private let failure = NIOLockedValueBox<LoveseatError?>(nil)
    private let hasEnded = NIOLockedValueBox(false)

    init(_ transport: any MessageTransport) { self.transport = transport }

    func send(_ messages: [[UInt8]]) async throws {
        do { for message in messages { try await transport.send(message) } } catch {
            let error = LoveseatError(transport: error)
            failure.withLockedValue { $0 = $0 ?? error }
            // The receiver gets the reason.
            await end()
            throw error
        }
    }

    func receive() async throws -> [[UInt8]]? {
        do {
            if let message = try await transport.receive() {
                guard message.count <= WebSocketSettings.maximumFrameSize else {
                    throw LoveseatError(
                        .webSocketProtocolError,
                        "the peer sent a message of \(message.count) bytes"
                    )
                }
                return [message]
            }
        } catch {
            let error = LoveseatError(transport: error)
            failure.withLockedValue { $0 = $0 ?? error }
        }
        await end()
        if let error = failure.withLockedValue({ $0 }) { throw error }
        return nil
    }

    func close(code: Int, reason: String) async { await end() }

    /// Closes the transport, once.
    private func end() async {
        let isFirst = hasEnded.withLockedValue { hasEnded in
            defer { hasEnded = true }
            return !hasEnded
        }
        if isFirst { await transport.close() }
    }
}

/// WebSocket frames in a stream of bytes, the active peer's masked: the WebSocket handlers do it, at one end of a pair of
/// sockets whose other end is joined to the transport.
private final class FramedBytes: MessageChannel {
    private let webSocket: WebSocketChannel
    private let failure: NIOLockedValueBox<LoveseatError?>

    private init(_ webSocket: WebSocketChannel, _ failure: NIOLockedValueBox<LoveseatError?>) {
        self.webSocket = webSocket
        self.failure = failure
    }

    static func make(
        _ transport: any MessageTransport,
        isActive: Bool,
        heartbeat: Double
    ) async throws -> FramedBytes {
        let (near, far) = try await SocketTransport.pairOfDescriptors()
        let channel = try await WebSocketChannel.adopting(
            near,
            WebSocketSettings(isClient: isActive, heartbeat: heartbeat)
        )
        let joint = try await SocketTransport(adopting: far)
        let failure = NIOLockedValueBox<LoveseatError?>(nil)
        join(joint, transport, failure)
        return FramedBytes(channel, failure)
    }

    /// Passes bytes on in both directions until one side ends, and ends the other.
    private static func join(
        _ joint: SocketTransport,
        _ transport: any MessageTransport,
        _ failure: NIOLockedValueBox<LoveseatError?>
    ) {
        Task(executorPreference: BlockingThreads.shared) {
            do { while let bytes = try await joint.receive() { try await transport.send(bytes) } } catch {
                recordFailure(error, failure)
            }
            await transport.close()
        }
        Task(executorPreference: BlockingThreads.shared) {
            do { while let bytes = try await transport.receive() { try await joint.send(bytes) } } catch {
                recordFailure(error, failure)
            }
            await joint.close()
        }
    }

    /// An error of the socket pair only means that the other side has ended.
    private static func recordFailure(_ error: any Error, _ failure: NIOLockedValueBox<LoveseatError?>) {
        if error as? LoveseatError == SocketTransport.isClosed { return }
        failure.withLockedValue { $0 = $0 ?? LoveseatError(transport: error) }
    }

    func send(_ messages: [[UInt8]]) async throws { try await webSocket.send(messages) }

    func receive() async throws -> [[UInt8]]? {
        do { return try await webSocket.receive() } catch {
            throw failure.withLockedValue { $0 } ?? error
        }
    }

    func close(code: Int, reason: String) async { await webSocket.close(code: code, reason: reason) }
}
