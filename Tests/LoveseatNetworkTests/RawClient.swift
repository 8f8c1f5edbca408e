import Foundation
import NIOCore
import NIOPosix

/// A TCP connection that says whatever a test wants, and collects what comes back.
final class RawClient: Sendable {
    private let channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>

    init(port: UInt16) async throws {
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: Int(port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                }
            }
    }

    /// Sends text and returns everything the server says until it hangs up, or until `isEnough`.
    func exchange(_ text: String, until isEnough: @Sendable (String) -> Bool = { _ in false }) async throws
        -> String
    {
        try await channel.executeThenClose { inbound, outbound in
            // The server may have hung up already.
            do { try await outbound.write(ByteBuffer(string: text)) } catch ChannelError.ioOnClosedChannel {
                return ""
            }
            var answer = ""
            for try await part in inbound {
                answer += String(decoding: part.readableBytesView, as: UTF8.self)
                if isEnough(answer) { break }
            }
            return answer
        }
    }
}
