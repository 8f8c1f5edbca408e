import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Random histories of several databases over links that break, as the simulator has them, but with everything real except
/// the wire: whatever happened, all end up equal.
struct TransportHistoryTests {
    /// One database, and what it serves others with.
    private struct Peer {
        let database: Database
        let listener: MessageEndpointListener

        init(_ scratch: Scratch, _ number: Int, _ type: ProtocolType) throws {
            database = try scratch.database("peer\(number)")
            let collections = [
                try database.defaultCollection(), try database.createCollection(name: "notes"),
            ]
            listener = MessageEndpointListener(
                MessageEndpointListenerConfiguration(collections: collections, protocolType: type)
            )
        }

        var collections: [LoveseatCore.Collection] { listener.config.collections }

        func replicator(with other: Peer, _ type: ProtocolType, over link: LossyLink) -> Replicator {
            let endpoint = MessageEndpoint(uid: other.database.name, protocolType: type) {
                let (one, far) = link.connect()
                other.listener.accept(far)
                return one
            }
            var configuration = ReplicatorConfiguration(collections: collections, target: endpoint)
            configuration.maxAttempts = 1
            return Replicator(configuration)
        }

        /// Documents that are there, with their revisions.
        func contents() throws -> [[String: String]] {
            try collections.map { try $0.contents().filter { !$0.value.hasSuffix(" deleted") } }
        }

        func edit(_ generator: inout SeededGenerator) throws {
            let collection = generator.pick(collections)
            let id = "doc\(generator.int(0...9))"
            guard var document = try collection.document(id: id) else {
                try collection.save(Document(id: id, ["by": .string(database.name)]))
                return
            }
            switch generator.int(0...9) {
            case 0, 1: try collection.delete(document)
            case 2:
                document["blob"] = try database.saveBlob(generator.bytes(30_000), contentType: "x/y").json
                try collection.save(document)
            default:
                document["n"] = JSONValue(generator.int(0...1_000_000))
                try collection.save(document)
            }
        }
    }

    @Test(arguments: [ProtocolType.messageStream, .byteStream], 1...4 as ClosedRange<UInt64>)
    func `several databases become equal over links that break`(_ type: ProtocolType, _ seed: UInt64)
        async throws
    {
        var generator = SeededGenerator(seed: seed)
        let scratch = try Scratch()
        var peers = try (0..<generator.int(3...4)).map { try Peer(scratch, $0, type) }
        let lifetime = type == .byteStream ? 2...20 : 10...80
        let frail = LossyLink(seed: seed, lifetime: lifetime, cutsPieces: type == .byteStream)
        for _ in 0..<12 {
            for _ in 0..<generator.int(1...6) {
                try peers[generator.int(0...peers.count - 1)].edit(&generator)
            }
            let one = generator.int(0...peers.count - 1)
            let other = (one + generator.int(1...peers.count - 1)) % peers.count
            let replicator = peers[one].replicator(with: peers[other], type, over: frail)
            replicator.start()
            // Edits come while it runs.
            try peers[other].edit(&generator)
            _ = await replicator.waitUntilStopped()
            if generator.chance(0.2) {
                await peers[one].listener.closeAll()
                try await peers[one].database.close()
                peers[one] = try Peer(scratch, one, type)
            }
        }
        let sound = LossyLink(seed: seed, lifetime: 1_000_000...1_000_000, cutsPieces: type == .byteStream)
        var contents: [[[String: String]]] = []
        for _ in 0..<10 {
            for index in peers.indices {
                let next = peers[(index + 1) % peers.count]
                let replicator = peers[index].replicator(with: next, type, over: sound)
                replicator.start()
                #expect(await replicator.waitUntilStopped().error == nil)
            }
            contents = try peers.map { try $0.contents() }
            if contents.allSatisfy({ $0 == contents[0] }) { break }
        }
        for other in contents.dropFirst() { #expect(other == contents[0]) }
        #expect(contents[0].contains { !$0.isEmpty })
        for peer in peers {
            await peer.listener.closeAll()
            try await peer.database.close()
        }
    }
}
