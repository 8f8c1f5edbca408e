import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

/// Replication over transports that the app supplies (blip.md §13, replication.md §22).
struct MessageEndpointTests {
    private let scratch: Scratch
    private let near: Database
    private let far: Database

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
    }

    private static let documents = isSanitized ? 60 : 300

    private func fill(_ count: Int = documents) throws {
        for database in [near, far] {
            let collection = try database.defaultCollection()
            try database.write { transaction in
                for number in 0..<count {
                    try transaction.save(
                        Document(id: "\(database.name)\(number)", ["n": JSONValue(number)]),
                        in: collection
                    )
                }
            }
            let content = (0..<200_000).map {
                UInt8(truncatingIfNeeded: $0 &* 31 &+ database.name.utf8.count)
            }
            let blob = try database.saveBlob(content, contentType: "image/jpeg")
            try collection.save(Document(id: "blob-\(database.name)", ["blob": blob.json]))
        }
    }

    private func listener(_ type: ProtocolType) throws -> MessageEndpointListener {
        MessageEndpointListener(
            MessageEndpointListenerConfiguration(
                collections: [try far.defaultCollection()],
                protocolType: type
            )
        )
    }

    private func replicator(
        _ endpoint: MessageEndpoint,
        _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
    ) throws -> Replicator {
        var configuration = ReplicatorConfiguration(
            collections: [try near.defaultCollection()],
            target: endpoint
        )
        configuration.maxAttempts = 1
        change(&configuration)
        return Replicator(configuration)
    }

    private func run(_ replicator: Replicator) async -> LoveseatError? {
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    private func expectEqual(at location: SourceLocation = #_sourceLocation) throws {
        let (here, there) = (try near.defaultCollection().contents(), try far.defaultCollection().contents())
        #expect(here == there, sourceLocation: location)
        #expect(here.count > 2 * Self.documents, sourceLocation: location)
    }

    // MARK: Transports of ours

    @Test func `a pair of sockets carries push and pull with blobs`() async throws {
        try fill()
        let listener = try listener(.byteStream)
        let endpoint = MessageEndpoint(uid: "pair", protocolType: .byteStream) {
            let (one, other) = try await SocketTransport.pair()
            listener.accept(other)
            return one
        }
        #expect(await run(try replicator(endpoint)) == nil)
        try expectEqual()
        await listener.closeAll()
    }

    @Test func `a stream of bytes over TCP carries push and pull with blobs`() async throws {
        try fill()
        let listener = try listener(.byteStream)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let port = UInt16(server.channel.localAddress?.port ?? 0)
        let accepting = Task {
            try await server.executeThenClose { clients in
                for try await client in clients { listener.accept(AcceptedStream(client)) }
            }
        }
        let endpoint = MessageEndpoint(uid: "tcp", protocolType: .byteStream) {
            try await SocketTransport(host: "127.0.0.1", port: port)
        }
        #expect(await run(try replicator(endpoint)) == nil)
        try expectEqual()
        accepting.cancel()
        await listener.closeAll()
        // Nobody listens there any more.
        _ = await accepting.result
        #expect(await run(try replicator(endpoint))?.code == .init(Int(ECONNREFUSED), domain: .posix))
    }

    @Test(arguments: [ProtocolType.messageStream, .byteStream])
    func `filters and resolvers work over any transport`(_ type: ProtocolType) async throws {
        let link = LossyLink(seed: 1, lifetime: 1_000_000...1_000_000, cutsPieces: type == .byteStream)
        let listener = try listener(type)
        let endpoint = MessageEndpoint(uid: "link", protocolType: type) {
            let (one, other) = link.connect()
            listener.accept(other)
            return one
        }
        for (database, value) in [(near, 1), (far, 2)] {
            let collection = try database.defaultCollection()
            try collection.save(Document(id: "both", ["n": JSONValue(value)]))
            try collection.save(Document(id: "secret \(value)"))
        }
        var entry = CollectionConfiguration(collection: try near.defaultCollection())
        entry.pushFilter = { document, _ in !document.id.hasPrefix("secret") }
        entry.pullFilter = { document, _ in !document.id.hasPrefix("secret") }
        entry.conflictResolver = ConflictResolver.custom { conflict in
            var merged = Document(id: conflict.documentID)
            let values = [conflict.localDocument, conflict.remoteDocument].map { $0?["n"]?.int ?? 0 }
            merged["n"] = JSONValue(values.reduce(0, +))
            return merged
        }
        let configuration = ReplicatorConfiguration(collections: [entry], target: endpoint)
        _ = await run(Replicator(configuration))
        #expect(try near.defaultCollection().document(id: "secret 2") == nil)
        #expect(try far.defaultCollection().document(id: "secret 1") == nil)
        for database in [near, far] {
            #expect(try database.defaultCollection().document(id: "both")?["n"]?.int == 3)
        }
        await listener.closeAll()
    }

    @Test func `a peer gets what the access policy gives to whom the app says it is`() async throws {
        let collection = try far.defaultCollection()
        for owner in ["ana", "bob"] {
            try collection.save(Document(id: owner, ["owner": .string(owner)]))
        }
        var configuration = MessageEndpointListenerConfiguration(
            collections: [collection],
            protocolType: .messageStream
        )
        configuration.accessPolicy = AccessPolicy { peer, _, document in
            document.map { $0["owner"]?.string == peer.username ? .read : .none } ?? .read
        }
        let listener = MessageEndpointListener(configuration)
        let link = LossyLink(seed: 1, lifetime: 1_000_000...1_000_000)
        let endpoint = MessageEndpoint(uid: "link", protocolType: .messageStream) {
            let (one, other) = link.connect()
            listener.accept(other, as: PeerIdentity(username: "bob"))
            return one
        }
        #expect(await run(try replicator(endpoint) { $0.replicatorType = .pull }) == nil)
        #expect(Array(try near.defaultCollection().contents().keys) == ["bob"])
        await listener.closeAll()
    }

    @Test(arguments: [ProtocolType.messageStream, .byteStream])
    func `a link that keeps breaking is connected anew until both have the same`(
        _ type: ProtocolType
    ) async throws {
        try fill(300)
        // A piece of a stream of bytes holds many messages.
        let lifetime = type == .byteStream ? 5...15 : 100...300
        let link = LossyLink(seed: 7, lifetime: lifetime, cutsPieces: type == .byteStream)
        let listener = try listener(type)
        let endpoint = MessageEndpoint(uid: "link", protocolType: type) {
            let (one, other) = link.connect()
            listener.accept(other)
            return one
        }
        var error: LoveseatError?
        for _ in 0..<1_000 {
            error = await run(try replicator(endpoint))
            guard error?.code == .webSocketCloseUserTransient || error?.code == .webSocketGoingAway else {
                break
            }
        }
        #expect(error == nil)
        #expect(link.connections > 2)
        try expectEqual()
        await listener.closeAll()
    }

    @Test func `closing all connections stops both sides`() async throws {
        let listener = try listener(.messageStream)
        let link = LossyLink(seed: 1, lifetime: 1_000_000...1_000_000)
        let endpoint = MessageEndpoint(uid: "link", protocolType: .messageStream) {
            let (one, other) = link.connect()
            listener.accept(other)
            return one
        }
        let changes = listener.changes
        let replicator = try replicator(endpoint) { $0.continuous = true }
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { break }
        await listener.closeAll()
        #expect(await replicator.waitUntilStopped().error?.code == .webSocketGoingAway)
        var seen: [Replicator.ActivityLevel] = []
        for await change in changes {
            seen.append(change.status.activity)
            if change.status.activity == .stopped { break }
        }
        #expect(seen.first == .connecting)
        #expect(seen.contains(.idle))
    }

    @Test func `closing the database ends what it serves over transports`() async throws {
        let listener = try listener(.messageStream)
        let link = LossyLink(seed: 1, lifetime: 1_000_000...1_000_000)
        let endpoint = MessageEndpoint(uid: "link", protocolType: .messageStream) {
            let (one, other) = link.connect()
            listener.accept(other)
            return one
        }
        let replicator = try replicator(endpoint) { $0.continuous = true }
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { break }
        try await far.close()
        #expect(await replicator.waitUntilStopped().error?.code == .webSocketGoingAway)
    }

    @Test(arguments: FailingTransport.Stage.allCases, [true, false])
    private func `an error of a transport is transient or final as the app says`(
        _ stage: FailingTransport.Stage,
        _ isRecoverable: Bool
    ) async throws {
        try fill()
        let listener = try listener(.messageStream)
        let link = LossyLink(seed: 1, lifetime: 1_000_000...1_000_000)
        let attempts = NIOLockedValueBox(0)
        let endpoint = MessageEndpoint(uid: "app", protocolType: .messageStream) {
            let attempt = attempts.withLockedValue { attempts in
                attempts += 1
                return attempts
            }
            // A recoverable error is gone the third time.
            let isMended = isRecoverable && attempt > 2
            let error = MessagingError(error: FailingTransport.Failure(), isRecoverable: isRecoverable)
            if stage == .connect, !isMended { throw error }
            let (near, far) = link.connect()
            listener.accept(far)
            return isMended ? near : FailingTransport(near, at: stage, with: error)
        }
        let once = await run(try replicator(endpoint))
        #expect(once?.code == (isRecoverable ? .webSocketCloseUserTransient : .webSocketCloseUserPermanent))
        // A recoverable one is tried again, over a new connection.
        let retried = await run(
            try replicator(endpoint) {
                $0.maxAttempts = 3
                $0.maxAttemptWaitTime = 1
            }
        )
        if isRecoverable {
            #expect(retried == nil)
            try expectEqual()
            #expect(attempts.withLockedValue { $0 } == 3)
        } else {
            #expect(retried?.code == .webSocketCloseUserPermanent)
            #expect(attempts.withLockedValue { $0 } == 2)
        }
        await listener.closeAll()
    }

    @Test func `an endpoint needs a uid`() async throws {
        let endpoint = MessageEndpoint(uid: "", protocolType: .messageStream) {
            try await SocketTransport.pair().0
        }
        #expect(await run(try replicator(endpoint))?.code == .invalidParameter)
    }
}

/// A transport of an app's own, in its three methods.
private final class AcceptedStream: MessageTransport {
    private let incoming: Mailbox
    private let outgoing: AsyncStream<ByteBuffer>.Continuation

    init(_ channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>) {
        let (stream, continuation) = AsyncStream<ByteBuffer>.makeStream()
        let mailbox = Mailbox(limit: 1 << 20) {}
        (incoming, outgoing) = (mailbox, continuation)
        Task {
            try await channel.executeThenClose { inbound, outbound in
                async let writing: Void = {
                    for await bytes in stream { try await outbound.write(bytes) }
                    outbound.finish()
                }()
                for try await bytes in inbound { mailbox.deliver([Array(bytes.readableBytesView)]) }
                mailbox.finish()
                continuation.finish()
                try await writing
            }
        }
    }

    func send(_ bytes: [UInt8]) async throws { outgoing.yield(ByteBuffer(bytes: bytes)) }
    func receive() async throws -> [UInt8]? { try await incoming.receive().map { Array($0.joined()) } }
    func close() async {
        outgoing.finish()
        incoming.finish()
    }
}

/// A transport that fails as an app's own may.
private struct FailingTransport: MessageTransport {
    enum Stage: CaseIterable, Sendable { case connect, send, receive }
    struct Failure: Error {}

    private let transport: any MessageTransport
    private let stage: Stage
    private let error: MessagingError
    private let received = NIOLockedValueBox(0)

    init(_ transport: any MessageTransport, at stage: Stage, with error: MessagingError) {
        (self.transport, self.stage, self.error) = (transport, stage, error)
    }

    func send(_ bytes: [UInt8]) async throws {
        if stage == .send { throw error }
        try await transport.send(bytes)
    }

    func receive() async throws -> [UInt8]? {
        let bytes = try await transport.receive()
        let isThird = received.withLockedValue { received in
            received += 1
            return received == 3
        }
        if stage == .receive, isThird { throw error }
        return bytes
    }

    func close() async { await transport.close() }
}
