import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Synchronization
import Testing

@Suite(.ownThreads) struct MessageEndpointTests {
    private let world: World
    private let other: World

    init() throws { (world, other) = (try World(), try World()) }

    private func listener(_ type: ProtocolType = .messageStream) -> MessageEndpointListener {
        MessageEndpointListener(
            config: MessageEndpointListenerConfiguration(collections: [other.sights], protocolType: type)
        )
    }

    /// Replicates once, and returns the error.
    private func replicate(_ app: PipeApp, _ type: ProtocolType) async throws -> NSError? {
        var config = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: world.sights)],
            target: MessageEndpoint(uid: "app", target: nil, protocolType: type, delegate: app)
        )
        config.maxAttempts = 1
        let replicator = Replicator(config: config)
        let heard = Heard<Replicator.Status>()
        replicator.addChangeListener(withQueue: heard.queue) { heard.add($0.status) }
        replicator.start()
        try await eventually { heard.all.last?.activity == .stopped }
        return heard.all.last?.error.map { $0 as NSError }
    }

    @Test(arguments: [ProtocolType.messageStream, .byteStream])
    func `connections with callbacks replicate, and are closed once on each side`(
        _ type: ProtocolType
    ) async throws {
        try world.sights.save(document: MutableDocument(id: "tower").setInt(330, forKey: "metres"))
        try other.sights.save(document: MutableDocument(id: "louvre"))
        let listener = listener(type)
        let heard = Heard<Replicator.ActivityLevel>()
        listener.addChangeListener(withQueue: heard.queue) { heard.add($0.status.activity) }
        let app = PipeApp(listener)
        #expect(try await replicate(app, type) == nil)
        #expect(try other.sights.document(id: "tower")?.int(forKey: "metres") == 330)
        #expect(try world.sights.document(id: "louvre") != nil)
        listener.closeAll()
        #expect(listener.connections.isEmpty)
        #expect(heard.settled.first == .connecting)
        #expect(heard.settled.last == .stopped)
        #expect(app.closings == [1, 1])
    }

    @Test(arguments: PipeEnd.Stage.allCases, [true, false])
    func `an error in a callback is transient or final as the app says`(
        _ stage: PipeEnd.Stage,
        _ isRecoverable: Bool
    ) async throws {
        try world.sights.save(document: MutableDocument(id: "tower"))
        let app = PipeApp(listener(), fails: stage, isRecoverable: isRecoverable)
        let error = try await replicate(app, .messageStream)
        #expect(error?.domain == CBLError.domain)
        #expect(
            error?.code
                == (isRecoverable
                    ? CBLError.webSocketCloseUserTransient : CBLError.webSocketCloseUserPermanent)
        )
    }

    @Test func `an accepted connection is opened, and ends when it is closed`() async throws {
        let listener = listener()
        let heard = Heard<Replicator.ActivityLevel>()
        let (end, second) = (PipeEnd(), PipeEnd())
        listener.addChangeListener(withQueue: heard.queue) { change in
            if change.connection as? PipeEnd === end { heard.add(change.status.activity) }
        }
        listener.accept(connection: end)
        listener.accept(connection: second)
        #expect(listener.connections.count == 2)
        try await eventually { end.isOpen && second.isOpen }
        listener.close(connection: end)
        try await eventually { heard.all.last == .stopped }
        #expect(listener.connections.compactMap { $0 as? PipeEnd }.allSatisfy { $0 === second })
        #expect(end.closings == 1)
        #expect(second.closings == 0)
        listener.closeAll()
        #expect(listener.connections.isEmpty)
        #expect(second.closings == 1)
        // There is nothing left to wait for.
        listener.closeAll()
    }

    @Test func `a passive connection that cannot be opened stops with the app's advice`() async throws {
        let listener = listener()
        let heard = Heard<Replicator.Status>()
        let token = listener.addChangeListener(withQueue: heard.queue) { heard.add($0.status) }
        listener.accept(connection: PipeEnd((.open, isRecoverable: false)))
        try await eventually { heard.all.last?.activity == .stopped }
        let error = try #require(heard.all.last?.error) as NSError
        #expect(error.code == CBLError.webSocketCloseUserPermanent)
        token.remove()
    }

    @Test func `closing all connections ends their replicators with an error`() async throws {
        let listener = listener()
        let app = PipeApp(listener)
        var config = ReplicatorConfiguration(
            collections: [CollectionConfiguration(collection: world.sights)],
            target: MessageEndpoint(uid: "app", target: nil, protocolType: .messageStream, delegate: app)
        )
        config.continuous = true
        config.maxAttempts = 1
        let observed = Observed(config)
        observed.replicator.start()
        try await eventually { observed.isAt(.idle) }
        listener.closeAll()
        #expect(listener.connections.isEmpty)
        try await eventually { observed.isAt(.stopped) }
        #expect(observed.error != nil)
    }

    @Test func `closing the database ends connections`() async throws {
        let listener = listener()
        let end = PipeEnd()
        listener.accept(connection: end)
        try await eventually { end.isOpen }
        try other.database.close()
        #expect(end.closings == 1)
        try await eventually { listener.connections.isEmpty }
        // One that comes too late is not waited for.
        listener.accept(connection: PipeEnd())
        listener.closeAll()
        #expect(listener.connections.isEmpty)
    }

    @Test func `a message is its bytes`() {
        let data = Data([0, 255, 7])
        #expect(Message.fromData(data).toData() == data)
    }
}

/// An app whose connections are two ends of a pipe in memory.
private final class PipeApp: MessageEndpointDelegate, Sendable {
    private let ends = Mutex<[PipeEnd]>([])
    private let listener: MessageEndpointListener
    private let failure: (stage: PipeEnd.Stage, isRecoverable: Bool)?

    init(_ listener: MessageEndpointListener, fails stage: PipeEnd.Stage? = nil, isRecoverable: Bool = true) {
        self.listener = listener
        failure = stage.map { ($0, isRecoverable) }
    }

    var closings: [Int] { ends.withLock { $0.map(\.closings) } }

    func createConnection(endpoint: MessageEndpoint) -> any MessageEndpointConnection {
        let (near, far) = (PipeEnd(failure), PipeEnd())
        near.join(far)
        far.join(near)
        ends.withLock { $0 += [near, far] }
        listener.accept(connection: far)
        return near
    }
}

/// One end of a pipe, which can be told to fail.
final class PipeEnd: MessageEndpointConnection, Sendable {
    enum Stage: CaseIterable, Sendable { case open, send, receive }
    struct Failure: Error {}

    private struct State: @unchecked Sendable {
        var other: PipeEnd?
        var connection: (any ReplicatorConnection)?
        var early: [Message] = []
        var closings = 0
        var received = 0
        var hasEnded = false
    }

    private let failure: (stage: Stage, isRecoverable: Bool)?
    private let state = Mutex(State())

    init(_ failure: (stage: Stage, isRecoverable: Bool)? = nil) { self.failure = failure }

    var closings: Int { state.withLock { $0.closings } }
    var isOpen: Bool { state.withLock { $0.connection != nil } }
    private var other: PipeEnd? { state.withLock { $0.other } }

    func join(_ other: PipeEnd) { state.withLock { $0.other = other } }

    private func error(at stage: Stage) -> MessagingError? {
        guard let failure, failure.stage == stage else { return nil }
        return MessagingError(error: Failure(), isRecoverable: failure.isRecoverable)
    }

    func open(
        connection: any ReplicatorConnection,
        completion: @escaping (Bool, MessagingError?) -> Void
    ) {
        if let error = error(at: .open) {
            completion(false, error)
            other?.end(nil)
            return
        }
        let handle = Handle(connection: connection)
        let early = state.withLock { state in
            state.connection = handle.connection
            defer { state.early = [] }
            return state.early
        }
        completion(true, nil)
        for message in early { connection.receive(message: message) }
        if state.withLock({ $0.hasEnded }) { connection.close(error: nil) }
    }

    func send(message: Message, completion: @escaping (Bool, MessagingError?) -> Void) {
        if let error = error(at: .send) { return completion(false, error) }
        other?.arrive(message)
        completion(true, nil)
    }

    func close(error: (any Error)?, completion: @escaping () -> Void) {
        state.withLock { $0.closings += 1 }
        other?.end(nil)
        completion()
    }

    private func arrive(_ message: Message) {
        let (handle, received) = state.withLock { state in
            if state.connection == nil { state.early.append(message) }
            state.received += 1
            return (Handle(connection: state.connection), state.received)
        }
        if received == 3, let error = error(at: .receive) { return end(error) }
        handle.connection?.receive(message: message)
    }

    private func end(_ error: MessagingError?) {
        let handle = state.withLock { state in
            state.hasEnded = true
            return Handle(connection: state.connection)
        }
        handle.connection?.close(error: error)
    }

    /// The replicator's side, which is safe to use from any thread.
    private struct Handle: @unchecked Sendable { let connection: (any ReplicatorConnection)? }
}
