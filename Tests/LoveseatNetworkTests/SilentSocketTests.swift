import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOCore
import NIOPosix
import Testing

// Group in ./test: sockets
/// By itself in `./test`: it has two thousand descriptors open, and Foundation's `Process`, which other tests use, reads
/// beyond a buffer where there are more than some 1,350.
struct SilentSocketTests {
    @Test func `a thousand silent sockets do not stop a working peer`() async throws {
        let scratch = try Scratch()
        let (near, far) = (try scratch.database("near"), try scratch.database("far"))
        var passive = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        passive.disableTLS = true
        passive.networkInterface = "127.0.0.1"
        passive.handshakeSeconds = 600
        let listener = URLEndpointListener(passive)
        try await listener.start()
        let port = Int(try #require(listener.port))
        var silent: [any NIOCore.Channel] = []
        for _ in 0..<1_000 {
            let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            silent.append(try await bootstrap.connect(host: "127.0.0.1", port: port).get())
        }
        try near.defaultCollection().save(Document(id: "d"))
        let replicator = Replicator(
            ReplicatorConfiguration(
                collections: [try near.defaultCollection()],
                target: URLEndpoint(try #require(listener.urls?.first))
            )
        )
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(try far.defaultCollection().count == 1)
        for channel in silent { channel.close(promise: nil) }
        await listener.stop()
    }
}
