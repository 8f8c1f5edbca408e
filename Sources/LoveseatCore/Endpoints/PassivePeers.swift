package import LoveseatModel
package import LoveseatReplication
import LoveseatStorage
private import Synchronization

/// The passive side of any number of connections to a database.
package final class PassivePeers: Sendable {
    private let database: Database
    private let collections: [Collection]
    private let isReadOnly: Bool
    private let usesDeltas: Bool
    private let compressionLevel: Int
    private let policy: AccessPolicy?
    private let proven = ProvenBlobs()
    private let state = Mutex(State())

    private struct State {
        var nextNumber = 0
        var conversations: [Int: (conversation: Conversation, isBusy: Bool)] = [:]
        var isStopped = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    package init(
        database: Database,
        collections: [Collection],
        isReadOnly: Bool,
        usesDeltas: Bool,
        compressionLevel: Int,
        policy: AccessPolicy? = nil
    ) {
        self.compressionLevel = compressionLevel
        self.policy = policy
        self.database = database
        self.collections = collections
        self.isReadOnly = isReadOnly
        self.usesDeltas = usesDeltas
        // A database that cannot be written loses no bodies, and one that is closed serves nobody.
        if policy != nil { try? database.store.keepDeletedBodies() }
    }

    /// How many peers are connected, and how many of them are being sent or sending something.
    package var counts: (connected: Int, active: Int) {
        state.withLock { ($0.conversations.count, $0.conversations.values.count { $0.isBusy }) }
    }

    /// Serves one peer until its connection ends; returns why if that is an error.
    @discardableResult
    package func serve(
        _ connection: PeerConnection,
        report: @escaping @Sendable (ReplicationReport) -> Void = { _ in }
    ) async -> LoveseatError? {
        let store: DocumentStore
        do throws(LoveseatError) { store = try database.store } catch {
            await connection.channel.close(code: 1001, reason: error.message)
            return error
        }
        var plan = PassivePlan(collections: collections.map(\.handle.name))
        plan.isReadOnly = isReadOnly
        plan.usesDeltas = usesDeltas
        plan.restrictsAccess = policy != nil
        let access = policy.map { PeerAccess(peer: connection.peer, policy: $0) }
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        let conversation = Conversation(
            session: ReplicationSession(passive: plan),
            replica: StoreReplica(
                store: store,
                peer: connection.peer,
                access: access,
                proven: proven,
                nowMilliseconds: { ExpirationTimer.now }
            ),
            store: store,
            collections: collections.map(\.handle),
            channel: connection.channel,
            compressionLevel: compressionLevel,
            // Only an active puller takes conflicts in.
            resolve: { _ in nil },
            report: { [weak self] event in
                report(event)
                guard case .activity(let isBusy, _) = event else { return }
                self?.state.withLock { $0.conversations[number]?.isBusy = isBusy }
            }
        )
        let isAccepted = state.withLock { state in
            if !state.isStopped { state.conversations[number] = (conversation, true) }
            return !state.isStopped
        }
        guard isAccepted else {
            await connection.channel.close(code: 1001, reason: "")
            return nil
        }
        let failure = await conversation.run(connection.negotiated)
        let waiters = state.withLock { state in
            state.conversations[number] = nil
            guard state.conversations.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
        return failure
    }

    /// The policy's answers have changed. Peers that are connected are told of what they may not have any more.
    package func accessChanged() async {
        for conversation in state.withLock({ $0.conversations.values.map(\.conversation) }) {
            await conversation.accessChanged()
        }
    }

    /// Says goodbye to every peer, takes no more, and returns when none is left.
    package func stop() async {
        let conversations = state.withLock { state in
            state.isStopped = true
            return state.conversations.values.map(\.conversation)
        }
        for conversation in conversations { await conversation.stop() }
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if !state.conversations.isEmpty { state.waiters.append(continuation) }
                return state.conversations.isEmpty
            }
            if isIdle { continuation.resume() }
        }
    }
}
