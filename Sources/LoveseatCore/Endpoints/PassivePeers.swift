import LoveseatModel
import LoveseatReplication
import LoveseatStorage
private import Synchronization

/// The passive side of any number of connections to a database.
package final class PassivePeers: Sendable {
    private let database: Database
    private let collections: [Collection]
    private let isReadOnly: Bool
    private let usesDeltas: Bool
    private let state = Mutex(State())

    private struct State {
        var nextNumber = 0
        var conversations: [Int: (conversation: Conversation, isBusy: Bool)] = [:]
        var isStopped = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    package init(database: Database, collections: [Collection], isReadOnly: Bool, usesDeltas: Bool) {
        self.database = database
        self.collections = collections
        self.isReadOnly = isReadOnly
        self.usesDeltas = usesDeltas
    }

    /// How many peers are connected, and how many of them are being sent or sending something.
    package var counts: (connected: Int, active: Int) {
        state.withLock { ($0.conversations.count, $0.conversations.values.count { $0.isBusy }) }
    }

    /// Serves one peer until its connection ends.
    package func serve(_ connection: PeerConnection) async {
        let store: DocumentStore
        do throws(LoveseatError) { store = try database.store } catch {
            return await connection.channel.close(code: 1001, reason: error.message)
        }
        var plan = PassivePlan(collections: collections.map(\.handle.name))
        plan.isReadOnly = isReadOnly
        plan.usesDeltas = usesDeltas
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        let conversation = Conversation(
            session: ReplicationSession(passive: plan),
            replica: StoreReplica(store: store, nowMilliseconds: { ExpirationTimer.now }),
            store: store,
            collections: collections.map(\.handle),
            channel: connection.channel,
            // Only an active puller takes conflicts in.
            resolve: { _ in nil },
            report: { [weak self] report in
                guard case .activity(let isBusy, _) = report else { return }
                self?.state.withLock { $0.conversations[number]?.isBusy = isBusy }
            }
        )
        let isAccepted = state.withLock { state in
            if !state.isStopped { state.conversations[number] = (conversation, true) }
            return !state.isStopped
        }
        guard isAccepted else { return await connection.channel.close(code: 1001, reason: "") }
        _ = await conversation.run(connection.negotiated)
        let waiters = state.withLock { state in
            state.conversations[number] = nil
            guard state.conversations.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
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
