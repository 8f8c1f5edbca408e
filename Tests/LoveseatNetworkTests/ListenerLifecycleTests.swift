import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatPlatform
import LoveseatTesting
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

/// Listeners that are started and stopped at once or between two syncs, and clients that say too much too early.
struct ListenerLifecycleTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
    }

    private func listener(
        port: UInt16 = 0,
        _ change: (inout URLEndpointListenerConfiguration) -> Void = { _ in }
    ) throws -> URLEndpointListener {
        var configuration = URLEndpointListenerConfiguration(collections: [try far.defaultCollection()])
        configuration.networkInterface = "127.0.0.1"
        configuration.disableTLS = true
        configuration.port = port
        configuration.handshakeSeconds = 600
        change(&configuration)
        return URLEndpointListener(configuration)
    }

    @Test func `starting a listener many times at once starts it once`() async throws {
        let first = try listener()
        try await first.start()
        let port = try #require(first.port)
        await first.stop()
        let second = try listener(port: port)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { try await second.start() } }
            try await group.waitForAll()
        }
        #expect(second.port == port)
        await second.stop()
        #expect(second.port == nil)
        // Nothing of it is left on the port.
        let third = try listener(port: port)
        try await third.start()
        await third.stop()
    }

    @Test func `starts and stops at once end as the last of them says`() async throws {
        let listener = try listener()
        for _ in 0..<20 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<6 {
                    group.addTask {
                        if number % 2 == 0 { try await listener.start() } else { await listener.stop() }
                    }
                }
                try await group.waitForAll()
            }
            await listener.stop()
            #expect(listener.port == nil)
            #expect(listener.urls == nil)
        }
        // Nothing keeps the database open.
        try await far.close()
    }

    #if os(Linux)
    /// The descriptor of the socket that accepts connections on a port.
    private func descriptor(listeningOn port: UInt16) -> Int32? {
        (0..<Int32(4_096)).first { descriptor in
            var (accepts, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
            guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) == 0, accepts != 0 else {
                return false
            }
            var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
            let status = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getsockname(descriptor, $0, &length)
                }
            }
            return status == 0 && address.sin_port == port.bigEndian
        }
    }

    @Test func `a listener whose port the system closes has stopped, and can be started again`() async throws
    {
        let listener = try listener()
        try await listener.start()
        let port = try #require(listener.port)
        let socket = try #require(descriptor(listeningOn: port))
        // Accepting fails from now on.
        #expect(shutdown(socket, Int32(SHUT_RDWR)) == 0)
        try await eventually("the listener's end") { listener.port == nil }
        #expect(listener.urls == nil)
        try await listener.start()
        #expect(listener.port != nil)
        await listener.stop()
        // Nothing keeps the database open.
        try await far.close()
    }
    #endif

    @Test func `a replicator that is told so comes back to a listener that was restarted`() async throws {
        for reconnects in [false, true] {
            let first = try listener()
            try await first.start()
            let port = try #require(first.port)
            var configuration = ReplicatorConfiguration(
                collections: [try near.defaultCollection()],
                target: URLEndpoint(try #require(URL(string: "ws://127.0.0.1:\(port)/far")))
            )
            configuration.continuous = true
            configuration.reconnectsAfterGoingAway = reconnects
            let replicator = Replicator(configuration)
            replicator.start()
            for await status in replicator.statuses where status.activity == .idle { break }
            let statuses = replicator.statuses
            await first.stop()
            guard reconnects else {
                #expect(await replicator.waitUntilStopped().error?.code == .webSocketGoingAway)
                continue
            }
            for await status in statuses where status.activity == .offline {
                #expect(status.error?.code == .webSocketGoingAway)
                break
            }
            let second = try listener(port: port)
            try await second.start()
            try far.defaultCollection().save(Document(id: "after"))
            // Does not wait for the time to be up.
            replicator.resume()
            for await status in replicator.statuses
            where status.activity == .idle || status.activity == .stopped { break }
            #expect(try near.defaultCollection().document(id: "after") != nil)
            replicator.stop()
            await replicator.waitUntilStopped()
            await second.stop()
        }
    }

    /// Writes until the other side takes no more for a second, or `limit` is reached; returns how many bytes it took.
    private func flood(port: UInt16, _ head: String, limit: Int) -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0, fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0 else { return limit }
        var written = head.utf8.count
        guard Array(head.utf8).withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) == written
        else {
            return limit
        }
        let junk = [UInt8](repeating: 0x41, count: 1 << 16)
        while written < limit {
            var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&polled, 1, 1_000) == 1 else { break }
            let count = junk.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { break }
            written += count
        }
        return written
    }

    @Test func `nothing more is read from a client while the authenticator is asked about it`() async throws {
        let (isAsked, asked) = AsyncStream<Void>.makeStream()
        let (mayAnswer, answer) = AsyncStream<Void>.makeStream()
        let listener = try listener {
            $0.authenticator = ListenerPasswordAuthenticator { _, _ in
                asked.yield()
                for await _ in mayAnswer { break }
                return false
            }
        }
        try await listener.start()
        let port = try #require(listener.port)
        let head = """
            GET /far/_blipsync HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YTpi\r\nConnection: Upgrade\r\n\
            Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
            Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n\r\n
            """
        let limit = 64 << 20
        let taken = await Task.detached { flood(port: port, head, limit: limit) }.value
        // What the system's own buffers take.
        #expect(taken < limit / 2)
        for await _ in isAsked { break }
        answer.finish()
        await listener.stop()
    }
}
