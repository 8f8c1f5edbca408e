import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// `ReplicationDriver`: runs a session over a connection.
struct DriverTests {
    @Test func `the driver says goodbye when all is done, and returns no error`() throws {
        let peer = try Conversation(active: { $0.pushes = true })
        try peer.line.connect(.mobile3)
        #expect(!peer.line.isClosed)
        try peer.refuse(try peer.take("getCheckpoint"), 404)
        #expect(!peer.line.isClosed)
        try peer.keepCheckpoints()
        #expect(peer.line.isClosed)
        #expect(peer.line.failure == nil)
    }

    @Test func `the driver returns why a connection broke`() throws {
        let peer = try Conversation(active: { $0.pulls = true })
        try peer.line.connect(.mobile3)
        try peer.line.cut()
        #expect(peer.line.failure?.code == .webSocketAbnormalClose)
    }

    @Test func `the driver closes the connection to a peer whose frames cannot be read`() throws {
        let peer = try Conversation(passive: [])
        try peer.line.connect(.mobile3)
        try peer.line.post([0x01])
        #expect(peer.line.isClosed)
        #expect(peer.line.failure?.code == .remoteError)
    }

    @Test func `the driver goes on after a commit, and waits in between`() throws {
        let peer = try Conversation(
            active: {
                $0.pushes = true
                $0.isContinuous = true
            }
        )
        try peer.begin()
        #expect(!peer.has("proposeChanges"))
        #expect(!peer.line.isClosed)
        try peer.store.save("a", in: peer.collection)
        try peer.line.localChange()
        #expect(peer.has("proposeChanges"))
    }

    @Test func `the driver makes one proposal of several commits that it hears of at once`() throws {
        let peer = try Conversation(
            active: {
                $0.pushes = true
                $0.isContinuous = true
            }
        )
        try peer.begin()
        for id in ["a", "b", "c"] { try peer.store.save(id, in: peer.collection) }
        try peer.line.localChange()
        let list = try JSONElement(parsing: try peer.take("proposeChanges").message.body)
        #expect(Array(list.items).count == 3)
        #expect(!peer.has("proposeChanges"))
    }

    /// A channel to a peer that reads nothing until its second message was read.
    ///
    /// @unchecked because the driver, the channel and the test run on one thread.
    private final class StubbornChannel: MessageChannel, @unchecked Sendable {
        private var messages: [[UInt8]]
        private var sender: CheckedContinuation<Void, Never>?
        private(set) var sent: [[UInt8]] = []
        private var reads = 0

        init(_ messages: [[UInt8]]) { self.messages = messages }

        func send(_ messages: [[UInt8]]) async throws {
            if reads < 2 { await withCheckedContinuation { sender = $0 } }
            sent += messages
        }

        func receive() async throws -> [[UInt8]]? {
            if messages.isEmpty { return nil }
            reads += 1
            if reads == 2 { sender?.resume() }
            return [messages.removeFirst()]
        }

        func close(code: Int, reason: String) async {}
    }

    @Test func `the driver reads while the peer takes nothing`() throws {
        let (scratch, store, _) = try Conversation.database([])
        defer { withExtendedLifetime(scratch) {} }
        let puppet = BLIPConnection()
        for tag: UInt64 in 1...2 {
            try puppet.send(Message(["Profile": "getCheckpoint", "client": "cp-\(tag)"]), tag: tag)
        }
        var frames: [[UInt8]] = []
        while let frame = try puppet.nextFrame() { frames.append(frame) }
        let clock = VirtualClock()
        let runtime = SimulatedRuntime(clock, seed: 0).runtime()
        let channel = StubbornChannel(frames)
        let replicas = DatabaseReplicas(store: store, nowMilliseconds: { 0 })
        let plan = PassivePlan(collections: [.default])
        let driver = ReplicationDriver(
            session: ReplicationSession(passive: plan, replicas: replicas),
            channel: channel,
            negotiated: .mobile3,
            runtime: runtime,
            compressionLevel: 0,
            hooks: ReplicationHooks()
        )
        runtime.task { _ = await driver.run() }
        while clock.step() {}
        for frame in channel.sent { try puppet.receive(frame) }
        #expect(puppet.drainEvents().filter { if case .failure = $0 { true } else { false } }.count == 2)
    }
}
