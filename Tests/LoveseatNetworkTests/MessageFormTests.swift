import Foundation
import LoveseatBLIP
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatStorage
import LoveseatTesting
import Testing

/// A peer of Couchbase Lite 4 at the other end of a transport of whole messages, over which nothing is negotiated.
private actor LiteApp {
    private let database: LiteDatabase
    private(set) var errors: [String] = []

    init() {
        database = LiteDatabase(SourceID(high: 7, low: 7)) { UInt64(Date().timeIntervalSince1970 * 1e9) }
    }

    func save(_ id: String, _ number: Int) throws { try database.edit(id, ["n": JSONValue(number)]) }

    /// The property `n` of each document.
    var contents: [String: Int] {
        database.documents().compactMapValues { $0.current.isDeleted ? nil : $0.current.body?["n"]?.int }
    }

    var blobs: Set<[UInt8]> { Set(database.blobs.values) }

    /// Serves a client until it leaves.
    func serve(_ transport: any MessageTransport) async throws {
        try await run(LiteSession(passive: database, client: "client"), transport)
    }

    /// Replicates once, as the client.
    func replicate(_ transport: any MessageTransport, pushes: Bool, pulls: Bool) async throws {
        var plan = LitePlan([LitePlan.Binding(checkpointID: "cp-lite-\(pushes)-\(pulls)")])
        (plan.pushes, plan.pulls) = (pushes, pulls)
        let session = LiteSession(active: database, plan, server: "x-msg-endpt:loveseat")
        session.start()
        try await run(session, transport)
    }

    private func run(_ session: LiteSession, _ transport: any MessageTransport) async throws {
        let line = LiteLine(session)
        while true {
            try line.work(time: 0)
            while let frame = try line.nextFrame() { try await transport.send(frame) }
            if session.isFinished { break }
            guard let frame = try await transport.receive() else { break }
            try line.receive(frame)
        }
        await transport.close()
        errors += session.documentErrors.map { "\($0.id): \($0.error.text)" }
        if let failure = session.failure { errors.append(failure.text) }
    }
}

/// Message endpoints and peers that name revisions in different ways (blip.md §13, docs/decisions/0015).
struct MessageFormTests {
    private let scratch: Scratch
    private let database: Database
    private let collection: LoveseatCore.Collection
    private let link = LossyLink(seed: 1, lifetime: 1_000_000...1_000_000)
    private let app = LiteApp()

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("db")
        collection = try database.defaultCollection()
    }

    private func save(_ id: String, _ number: Int) throws {
        var document = try collection.document(id: id) ?? Document(id: id)
        document["n"] = JSONValue(number)
        try collection.save(&document)
    }

    private func expect(
        _ contents: [String: Int],
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        for (id, number) in contents {
            #expect(
                try collection.document(id: id)?["n"]?.int == number,
                "\(id) here",
                sourceLocation: location
            )
        }
        #expect(try collection.contents().count == contents.count, sourceLocation: location)
        #expect(await app.contents == contents, sourceLocation: location)
        #expect(await app.errors == [], sourceLocation: location)
    }

    private func listener() -> MessageEndpointListener {
        MessageEndpointListener(
            MessageEndpointListenerConfiguration(collections: [collection], protocolType: .messageStream)
        )
    }

    @Test func `an app of Couchbase Lite 4 pushes to and pulls from a listener`() async throws {
        let listener = listener()
        try save("ours", 1)
        try await app.save("theirs", 1)
        for (pushes, pulls) in [(true, false), (false, true), (true, true)] {
            let (one, other) = link.connect()
            listener.accept(other)
            try await app.replicate(one, pushes: pushes, pulls: pulls)
        }
        try await expect(["ours": 1, "theirs": 1])
        try save("theirs", 2)
        try await app.save("ours", 2)
        let (one, other) = link.connect()
        listener.accept(other)
        try await app.replicate(one, pushes: true, pulls: true)
        try await expect(["ours": 2, "theirs": 2])
        await listener.closeAll()
    }

    @Test(arguments: [[ReplicatorType.pushAndPull], [.push, .pull], [.pull, .push]])
    func `a replicator pushes to and pulls from an app of Couchbase Lite 4`(_ types: [ReplicatorType])
        async throws
    {
        try save("ours", 1)
        try await app.save("theirs", 1)
        try await replicate(types)
        try await expect(["ours": 1, "theirs": 1])
        try save("theirs", 2)
        try await app.save("ours", 2)
        try await replicate(types)
        try await expect(["ours": 2, "theirs": 2])
    }

    private func replicate(_ types: [ReplicatorType]) async throws {
        for type in types {
            let endpoint = MessageEndpoint(uid: "lite", protocolType: .messageStream) { [link, app] in
                let (one, other) = link.connect()
                Task { try await app.serve(other) }
                return one
            }
            var configuration = ReplicatorConfiguration(collections: [collection], target: endpoint)
            configuration.maxAttempts = 1
            configuration.replicatorType = type
            let replicator = Replicator(configuration)
            replicator.start()
            #expect(await replicator.waitUntilStopped().error == nil)
        }
    }

    @Test func `blobs reach an app of Couchbase Lite 4`() async throws {
        let content = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let blob = try database.saveBlob(content, contentType: "image/jpeg")
        try collection.save(Document(id: "a", ["n": 1, "blob": blob.json]))
        try await replicate([.push])
        try await expect(["a": 1])
        #expect(await app.blobs == [content])
    }

    @Test(arguments: [ProtocolType.messageStream, .byteStream])
    func `two Loveseats need no versions`(_ type: ProtocolType) async throws {
        let other = try scratch.database("other")
        let listener = MessageEndpointListener(
            MessageEndpointListenerConfiguration(
                collections: [try other.defaultCollection()],
                protocolType: type
            )
        )
        try save("a", 1)
        let link = LossyLink(seed: 1, lifetime: 1_000_000...1_000_000, cutsPieces: type == .byteStream)
        let endpoint = MessageEndpoint(uid: "other", protocolType: type) {
            let (one, far) = link.connect()
            listener.accept(far)
            return one
        }
        let replicator = Replicator(ReplicatorConfiguration(collections: [collection], target: endpoint))
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(try other.defaultCollection().document(id: "a")?["n"]?.int == 1)
        #expect(try database.store.source == nil)
        #expect(try other.store.source == nil)
        await listener.closeAll()
    }
}
