package import LoveseatBLIP
package import LoveseatBLIPReplication
package import LoveseatModel
package import LoveseatReplication

/// The driver that ships, on a virtual clock, and a peer that says what a test or a fuzzer wants.
///
/// @unchecked because everything of it runs on the thread that calls it.
package final class PuppetLine: @unchecked Sendable {
    package let puppet = BLIPConnection()
    /// Why the driver ended, if that was an error.
    package private(set) var failure: LoveseatError?
    /// Whether the driver has said goodbye, or has ended.
    package var isClosed: Bool { hasEnded || !link.isOpen }
    /// Pulls documents by their IDs, and returns whether the peer was asked for all.
    package var onFetch: (FetchNotice) -> Bool {
        get { shared.pull }
        set { shared.pull = newValue }
    }
    /// Called with everything that the puppet hears.
    package var onEvent: (BLIPConnection.Event) -> Void = { _ in }
    private let clock = VirtualClock()
    private let link: SimulatedLink
    private let runtime: ReplicationRuntime
    private let makeDriver: (ReplicationProtocol?) -> ReplicationDriver
    private let shared = Shared()
    /// The driver's reports to the app.
    package var reports: [ReplicationReport] { shared.reports }
    private var hasEnded = false
    private var driver: ReplicationDriver?
    private var puppetFailure: BLIPError?

    /// The state that the driver's hooks and this line share. Both run on one thread, which the compiler cannot see.
    private final class Shared: @unchecked Sendable {
        var notify: (@Sendable (CollectionName) -> Void)?
        var pull: (FetchNotice) -> Bool = { _ in false }
        var reports: [ReplicationReport] = []
    }

    /// `resolve`: settles a conflict, and returns why it could not.
    package init(
        _ session: (any ReplicaSource) -> ReplicationSession,
        _ replicas: any ReplicaSource,
        resolve: @escaping (ConflictNotice) -> LoveseatError? = { _ in nil }
    ) {
        let simulated = SimulatedRuntime(clock, seed: 0)
        runtime = simulated.runtime()
        link = SimulatedLink(clock, seed: 0)
        // The driver and everything else run on one thread.
        nonisolated(unsafe) let session = session(replicas)
        nonisolated(unsafe) let resolver = resolve
        var hooks = ReplicationHooks()
        hooks.resolve = { resolver($0) }
        hooks.fetch = { [shared] in shared.pull($0) }
        hooks.report = { [shared] in shared.reports.append($0) }
        hooks.observe = { [shared] notify in
            shared.notify = notify
            return {}
        }
        makeDriver = { [link, runtime, hooks] negotiated in
            ReplicationDriver(
                session: session,
                channel: link.channel(.near),
                negotiated: negotiated,
                runtime: runtime,
                compressionLevel: BLIPLimits().compressionLevel,
                hooks: hooks
            )
        }
    }

    /// Begins the conversation, and waits until nobody has anything to say.
    ///
    /// `negotiated`: nil over a transport that negotiates no form of the protocol.
    package func connect(_ negotiated: ReplicationProtocol?) throws {
        link.listen(.far, { [unowned self] in receive($0) })
        let driver = makeDriver(negotiated)
        self.driver = driver
        runtime.task { [self] in
            failure = await driver.run()
            hasEnded = true
        }
        try runUntilQuiet()
    }

    /// Something was saved in a collection.
    package func localChange(in name: CollectionName = .default) throws {
        shared.notify?(name)
        try runUntilQuiet()
    }

    /// The documents that are in flight or wait for their turn, according to the driver; nil before there is a driver.
    package func pending(listing limit: Int, unread: Int) throws -> PendingTransfers? {
        guard let driver else { return nil }
        var found: PendingTransfers?
        // The driver and everything else run on one thread, and `runUntilQuiet()` returns after the task.
        nonisolated(unsafe) let keep: (PendingTransfers) -> Void = { found = $0 }
        runtime.task { keep(await driver.pending(listing: limit, unread: unread)) }
        try runUntilQuiet()
        return found
    }

    /// Carries what the puppet has to say, and lets time pass until neither side says anything more.
    ///
    /// - Throws: `BLIPError` if the driver says what no peer can read.
    package func runUntilQuiet() throws {
        // Less than it takes the driver to give up a peer that says nothing.
        let limit = clock.now + 200_000
        while true {
            while let frame = try puppet.nextFrame() { link.post([frame], from: .far) }
            if let puppetFailure { throw puppetFailure }
            // Neither side says anything more before the limit.
            guard clock.step(until: limit) else { return }
        }
    }

    /// Sends bytes to the driver as one frame, whatever they are.
    package func post(_ frame: [UInt8]) throws {
        link.post([frame], from: .far)
        try runUntilQuiet()
    }

    /// Breaks the connection.
    package func cut() throws {
        link.cut()
        try runUntilQuiet()
    }

    private func receive(_ frame: [UInt8]) {
        do throws(BLIPError) { try puppet.receive(frame) } catch { puppetFailure = puppetFailure ?? error }
        for event in puppet.drainEvents() { onEvent(event) }
    }
}
