import LoveseatBLIP
import LoveseatBLIPReplication
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
}
