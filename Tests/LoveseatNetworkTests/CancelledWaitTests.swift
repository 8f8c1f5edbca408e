import Foundation
import LoveseatCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

/// Every public call that waits returns when its task is cancelled, however long what it waits for takes.
///
/// What is waited for here never comes before the gate is opened, which is when the call has returned.
@Suite(.timeLimit(.minutes(1)))
struct CancelledWaitTests {
    private let scratch: Scratch
    private let database: Database
    private let sights: LoveseatCore.Collection
    private let gate = Gate()

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        sights = try database.defaultCollection()
        try sights.save(Document(id: "a"))
    }

    /// What does not come until it is opened, not even if the task is cancelled.
    private final class Gate: Sendable {
        private let state = NIOLockedValueBox<(isOpen: Bool, waiters: [CheckedContinuation<Void, Never>])>(
            (false, [])
        )
        private let threads = DispatchSemaphore(value: 0)

        func wait() async {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLockedValue { state in
                    if !state.isOpen { state.waiters.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        }

        func block() {
            threads.wait()
            threads.signal()
        }

        func open() {
            let waiters = state.withLockedValue { state in
                defer { state = (true, []) }
                return state.waiters
            }
            for waiter in waiters { waiter.resume() }
            threads.signal()
        }
    }

    /// A transport that does nothing, and whose end does not come.
    private struct StuckTransport: MessageTransport {
        let gate: Gate
        func send(_ bytes: [UInt8]) async throws { await gate.wait() }
        func receive() async throws -> [UInt8]? {
            await gate.wait()
            return nil
        }
        func close() async { await gate.wait() }
    }

    /// Cancels a call when it waits, and expects it to return.
    private func expectEnd(
        of name: String,
        at location: SourceLocation = #_sourceLocation,
        _ call: @escaping @Sendable () async throws -> Void
    ) async throws {
        let hasEnded = NIOLockedValueBox(false)
        let task = Task {
            defer { hasEnded.withLockedValue { $0 = true } }
            try await call()
        }
        // Most get as far as the wait; the property holds wherever they are.
        try await Task.sleep(for: .milliseconds(20))
        #expect(!hasEnded.withLockedValue { $0 }, "\(name) does not wait", sourceLocation: location)
        task.cancel()
        // If it does not return, the time limit ends the test here, with the name.
        print("waiting for the end of: \(name)")
        _ = await task.result
    }

    /// A replicator that connects for ever.
    private func stuckReplicator(_ isConnecting: NIOLockedValueBox<Bool> = .init(false)) throws -> Replicator
    {
        let gate = gate
        let endpoint = MessageEndpoint(uid: "stuck", protocolType: .messageStream) {
            isConnecting.withLockedValue { $0 = true }
            await gate.wait()
            throw MessagingError(error: LoveseatError(.timeout, "late"), isRecoverable: false)
        }
        return Replicator(ReplicatorConfiguration(collections: [sights], target: endpoint))
    }

    // MARK: Core

    @Test func `feeds, live values and live queries end`() async throws {
        let (changes, values) = (try sights.changes(), try sights.observeCount())
        let results = try database.createQuery("SELECT COUNT(*) AS n FROM _").changes()
        try await expectEnd(of: "Feed") { for await _ in changes {} }
        try await expectEnd(of: "LiveValues") { for try await _ in values {} }
        try await expectEnd(of: "QueryChanges") { for await _ in results {} }
    }

    @Test func `transactions, indexes and reads that wait for their turn end`() async throws {
        let (database, sights, gate) = (database, sights, gate)
        let began = NIOLockedValueBox(false)
        let writer = Task.detached {
            try await database.write { _ in
                began.withLockedValue { $0 = true }
                gate.block()
            }
        }
        try await eventually { began.withLockedValue { $0 } }
        try await expectEnd(of: "write") { try await database.write { _ in } }
        try await expectEnd(of: "createIndex") {
            try await sights.createIndex(ValueIndexConfiguration(["n"]), withName: "n")
        }
        gate.open()
        try await writer.value
    }

    @Test func `a blob of a stream that never ends is not stored`() async throws {
        let database = database
        let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
        continuation.yield([1, 2, 3])
        try await expectEnd(of: "saveBlob") {
            let blob = try await database.saveBlob(stream: stream)
            Issue.record("\(blob.length ?? 0) bytes of a part of the stream were stored")
        }
    }

    @Test func `waiting for a replicator ends, and the replicator goes on`() async throws {
        let replicator = try stuckReplicator()
        replicator.start()
        try await expectEnd(of: "waitUntilStopped") { await replicator.waitUntilStopped() }
        #expect(replicator.status.activity != .stopped)
        gate.open()
        #expect(await replicator.waitUntilStopped().activity == .stopped)
    }

    @Test(arguments: [false, true])
    func `closing ends, and the database is closed later`(_ deletes: Bool) async throws {
        let isConnecting = NIOLockedValueBox(false)
        let replicator = try stuckReplicator(isConnecting)
        replicator.start()
        try await eventually { isConnecting.withLockedValue { $0 } }
        let database = database
        try await expectEnd(of: deletes ? "delete" : "close") {
            if deletes { try await database.delete() } else { try await database.close() }
        }
        gate.open()
        try await eventually { database.path == nil }
        if deletes {
            let folder = scratch.path
            try await eventually { !Database.exists(withName: "trips", inDirectory: folder) }
        }
    }

    @Test func `a task that was cancelled before waits until the database is closed`() async throws {
        let replicator = try stuckReplicator()
        replicator.start()
        let (database, gate) = (database, gate)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await database.close()
            return database.path
        }
        Task { gate.open() }
        #expect(try await task.value == nil)
    }

    // MARK: Network

    @Test func `starting, stopping and changing the access of a listener end`() async throws {
        let gate = gate
        let isAsked = NIOLockedValueBox(false)
        var configuration = URLEndpointListenerConfiguration(collections: [sights])
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        configuration.accessPolicy = AccessPolicy { _, _, document in
            if document != nil {
                isAsked.withLockedValue { $0 = true }
                gate.block()
            }
            return .write
        }
        let listener = URLEndpointListener(configuration)
        try await listener.start()
        let copy = try scratch.database("copy")
        let replicator = Replicator(
            ReplicatorConfiguration(
                collections: [try copy.defaultCollection()],
                target: URLEndpoint(try #require(listener.urls?.first))
            )
        )
        replicator.start()
        try await eventually { isAsked.withLockedValue { $0 } }
        try await expectEnd(of: "accessChanged") { await listener.accessChanged() }
        try await expectEnd(of: "stop") { await listener.stop() }
        try await expectEnd(of: "start") { try await listener.start() }
        gate.open()
        await listener.stop()
        #expect(listener.port == nil)
        await replicator.waitUntilStopped()
    }

    @Test func `closing connections of a message endpoint listener ends`() async throws {
        let gate = gate
        let listener = MessageEndpointListener(
            MessageEndpointListenerConfiguration(collections: [sights], protocolType: .messageStream)
        )
        let number = listener.accept(StuckTransport(gate: gate))
        try await expectEnd(of: "close") { await listener.close(number) }
        try await expectEnd(of: "closeAll") { await listener.closeAll() }
        gate.open()
        await listener.closeAll()
    }

    @Test func `sockets end to receive and to send, and go on to work`() async throws {
        let (one, other) = try await SocketTransport.pair()
        try await expectEnd(of: "receive") { _ = try await one.receive() }
        try await other.send([7])
        #expect(try await one.receive() == [7])
        let large = [UInt8](repeating: 1, count: 32 << 20)
        try await expectEnd(of: "send") { try await one.send(large) }
        var received = 0
        while received < large.count { received += try #require(try await other.receive()).count }
        #expect(received == large.count)
        await one.close()
        #expect(try await other.receive() == nil)
    }

    @Test func `pairing and connecting with a server that says nothing end`() async throws {
        // It accepts connections, and no more than the kernel does.
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let url = try #require(URL(string: "wss://127.0.0.1:\(port)/trips"))
        let code = try PairingCode(digits: "123456", url: url)
        let database = database
        let identity = try TLSIdentity.createIdentity(
            for: [.serverAuth, .clientAuth],
            attributes: [certAttrCommonName: "here"],
            label: nil,
            in: FileIdentityStore(folder: URL(filePath: scratch.path))
        )
        try await expectEnd(of: "pair") { _ = try await code.pair(with: database, identity: identity) }
        try await server.close()
    }

    @Test func `two tasks that iterate one feed share its events`() async throws {
        let changes = try sights.changes()
        let sights = sights
        let seen = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var seen: [String] = []
                    for await change in changes {
                        seen += change.documentIDs
                        if change.documentIDs.contains("end") { break }
                        try sights.save(Document(id: "end"))
                    }
                    return seen
                }
            }
            try await Task.sleep(for: .milliseconds(20))
            try sights.save(Document(id: "first"))
            let first = try await group.next() ?? []
            group.cancelAll()
            return try await first + (group.next() ?? [])
        }
        #expect(Set(seen) == ["first", "end"])
        #expect(seen.count == 2)
    }
}
