package import LoveseatBLIPReplication
package import LoveseatModel
package import LoveseatReplication
private import Synchronization

/// The drivers of all accepted connections.
package final class ReplicationServer: Sendable {
    private let state = Mutex(State())

    private struct State {
        var nextNumber = 0
        var drivers: [Int: (driver: ReplicationDriver, isBusy: Bool)] = [:]
        var isStopped = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    package init() {}

    /// The number of connected peers, and of those that transfer something.
    package var counts: (connected: Int, active: Int) {
        state.withLock { ($0.drivers.count, $0.drivers.values.count { $0.isBusy }) }
    }

    /// Serves one peer until its connection ends; returns why if that is an error. `makeDriver` creates the driver, and passes its reports
    /// to its argument.
    package func serve(
        _ connection: PeerConnection,
        makeDriver: (_ report: @escaping @Sendable (ReplicationReport) -> Void) -> ReplicationDriver
    ) async -> LoveseatError? {
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        let driver = makeDriver { [weak self] event in
            // Other reports do not say whether the connection is busy.
            guard case .activity(let isBusy, _) = event else { return }
            self?.state.withLock { $0.drivers[number]?.isBusy = isBusy }
        }
        let isAccepted = state.withLock { state in
            if !state.isStopped { state.drivers[number] = (driver, true) }
            return !state.isStopped
        }
        guard isAccepted else {
            await connection.channel.close(code: 1001, reason: "")
            return nil
        }
        let failure = await driver.run()
        let waiters = state.withLock { state in
            state.drivers[number] = nil
            guard state.drivers.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
        return failure
    }

    /// Called when the access policy's answers have changed. Connected peers are informed of documents that they lose.
    package func accessChanged() async {
        for driver in state.withLock({ $0.drivers.sorted { $0.key < $1.key }.map(\.value.driver) }) {
            await driver.accessChanged()
        }
    }

    /// Closes every connection, accepts no more, and returns when none is left.
    package func stop() async {
        let drivers = state.withLock { state in
            state.isStopped = true
            return state.drivers.sorted { $0.key < $1.key }.map(\.value.driver)
        }
        for driver in drivers { await driver.stop() }
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if !state.drivers.isEmpty { state.waiters.append(continuation) }
                return state.drivers.isEmpty
            }
            if isIdle { continuation.resume() }
        }
    }
}
