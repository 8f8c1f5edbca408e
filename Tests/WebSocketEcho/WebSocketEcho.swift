import Foundation
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import NIOCore
import NIOPosix

/// Sends back every message, as the Autobahn test-suite wants it (scripts/autobahn.sh).
///
/// `WebSocketEcho server` prints its port and serves; `WebSocketEcho client PORT COUNT` connects to `/0/_blipsync`,
/// `/1/_blipsync` and so on.
@main
enum WebSocketEcho {
    /// The suite's longest message has 16 MiB.
    private static let longestMessage = 32 << 20
    private static let atOnce = 8

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        switch arguments.first {
        case "server": try await serve()
        case "client":
            let numbers = arguments.dropFirst().compactMap { Int($0) }
            guard numbers.count == 2 else { return usage() }
            await connect(port: numbers[0], count: numbers[1])
        default: usage()
        }
    }

    private static func usage() { print("usage: WebSocketEcho server | WebSocketEcho client PORT COUNT") }

    private static func settings(isClient: Bool) -> WebSocketSettings {
        var settings = WebSocketSettings(isClient: isClient, heartbeat: 300)
        settings.acceptsText = true
        settings.maximumMessageSize = longestMessage
        return settings
    }

    private static func serve() async throws {
        let pipeline = ListenerPipeline(
            databaseName: "echo",
            policy: RequestPolicy(hosts: .ownNames([]), isSecure: false),
            authenticator: ConnectionAuthenticator(nil, fingerprint: nil),
            webSocket: settings(isClient: false)
        ) { connection, _ in
            Task { await echo(connection.channel) }
        }
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try pipeline.install(on: channel) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        FileHandle.standardOutput.write(Data("\(server.localAddress?.port ?? 0)\n".utf8))
        try await server.closeFuture.get()
    }

    private static func connect(port: Int, count: Int) async {
        await withDiscardingTaskGroup { group in
            for first in 0..<atOnce {
                group.addTask {
                    for number in stride(from: first, to: count, by: atOnce) {
                        await connect(
                            WebSocketAddress(
                                host: "127.0.0.1",
                                port: port,
                                isSecure: false,
                                target: "/\(number)/_blipsync"
                            )
                        )
                    }
                }
            }
        }
    }

    private static func connect(_ address: WebSocketAddress) async {
        let client = WebSocketClient(options: ConnectionOptions(), webSocket: settings(isClient: true))
        do { await echo(try await client.connect(to: address).channel) } catch {
            print("\(address): \(error)")
        }
    }

    /// Sends messages of either kind back until the connection ends.
    private static func echo(_ channel: any MessageChannel) async {
        guard let channel = channel as? WebSocketChannel else { return }
        await withDiscardingTaskGroup { group in
            group.addTask {
                // How it ends is what the suite looks at.
                while let messages = try? await channel.receive() { try? await channel.send(messages) }
            }
            group.addTask {
                while let texts = try? await channel.receiveText() { try? await channel.sendText(texts) }
            }
        }
        await channel.close(code: 1000, reason: "")
    }
}
