import LoveseatNetwork
import NIOCore
import NIOEmbedded
import Testing

/// `HalfOpenConnections`: limits the connections that have not authenticated.
struct HalfOpenConnectionsTests {
    private func connection() throws -> EmbeddedChannel {
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "x")).wait()
        return channel
    }

    @Test func `half-open connections beyond the limit close the oldest`() throws {
        let halfOpen = HalfOpenConnections(limit: 2, patience: .seconds(10))
        let channels = try (0..<5).map { _ in try connection() }
        for channel in channels { halfOpen.add(channel) }
        #expect(channels.map(\.isActive) == [false, false, false, true, true])
    }

    @Test func `half-open connections are closed when their time is up`() throws {
        let halfOpen = HalfOpenConnections(limit: 2, patience: .seconds(10))
        let channel = try connection()
        halfOpen.add(channel)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(9_999))
        #expect(channel.isActive)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(!channel.isActive)
    }

    @Test func `half-open connections that are admitted stay open and make room`() throws {
        let halfOpen = HalfOpenConnections(limit: 2, patience: .seconds(10))
        let channels = try (0..<3).map { _ in try connection() }
        halfOpen.add(channels[0])
        halfOpen.add(channels[1])
        #expect(halfOpen.remove(channels[0]))
        halfOpen.add(channels[2])
        #expect(channels.map(\.isActive) == [true, true, true])
        channels[0].embeddedEventLoop.advanceTime(by: .seconds(60))
        #expect(channels[0].isActive)
        #expect(!halfOpen.remove(channels[0]))
    }

    @Test func `half-open connections that close by themselves make room`() throws {
        let halfOpen = HalfOpenConnections(limit: 1, patience: .seconds(10))
        let (first, second) = (try connection(), try connection())
        halfOpen.add(first)
        try first.close().wait()
        first.embeddedEventLoop.run()
        #expect(!halfOpen.remove(first))
        halfOpen.add(second)
        #expect(second.isActive)
    }
}
