package import LoveseatBLIP
package import LoveseatModel
package import LoveseatReplication
private import Synchronization

/// Runs one connection's replication, active or passive, from its first message to its last.
///
/// The only driver: real peers run it on the wall clock, the simulator on a virtual one. It decides nothing.
package actor ReplicationDriver: Replication {
    /// Mistakes that the simulator plants in the driver, to prove that it notices them.
    package struct Omissions: OptionSet, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        /// A wake-up is lost: effects that come up while the driver sends wait for the next event.
        package static let secondLook = Omissions(rawValue: 1)
        /// Nothing is read while the driver waits for room to send, acknowledgements included.
        package static let readingWhileSending = Omissions(rawValue: 2)
        /// Timers are not cancelled.
        package static let cancelling = Omissions(rawValue: 4)
    }

    /// The amount that is handed to the transport at once: enough to be efficient, little enough that the peer is not kept waiting for it.
    private static let batchBytes = 64 << 10
    private static let batchFrames = 256
    /// How long a peer that does not read is given to take the queued frames at the end.
    private static let farewell = Duration.seconds(2)

    package nonisolated let unownedExecutor: UnownedSerialExecutor
    private let executor: any SerialExecutor
    private let runtime: ReplicationRuntime
    private let peer: ReplicationConnection
    private let channel: any MessageChannel
    private let negotiated: ReplicationProtocol?
    private let hooks: ReplicationHooks
    private let omissions: Omissions
    /// Collections in which something was saved, and of which the session has not been told.
    private let changed = Mutex<Set<CollectionName>>([])
    private var timers: [ReplicationTimer: Task<Void, Never>] = [:]
    private var resolutions = Resolutions()
    private var isSending = false
    private var sending: Task<Void, Never>?
    private var end = Ending()

    /// Resolvers and fetches under way.
    private struct Resolutions {
        var tasks: [Int: Task<Void, Never>] = [:]
        private var next = 0

        mutating func nextNumber() -> Int {
            defer { next += 1 }
            return next
        }
    }

    /// How the connection ends.
    private struct Ending {
        /// The channel was closed.
        var isGone = false
        var goodbye: (code: Int, reason: String)?
        /// Closes the channel of a peer that takes nothing.
        var farewell: Task<Void, Never>?
        var failure: LoveseatError?
    }

    /// `negotiated`: nil if the transport negotiates no form of the protocol. `spill`: takes received bodies that are too much for memory. `deflater` and `checksum`: replace zlib's. `omissions`: mistakes to
    /// make on purpose; none outside of a simulation.
    package init(
        session: sending ReplicationSession,
        channel: any MessageChannel,
        negotiated: ReplicationProtocol?,
        runtime: ReplicationRuntime,
        compressionLevel: Int,
        spill: sending (any BodySpill)? = nil,
        deflater: (any Deflater)? = nil,
        checksum: ChecksumFunction? = nil,
        hooks: ReplicationHooks,
        omissions: Omissions = []
    ) {
        var limits = BLIPLimits()
        limits.compressionLevel = compressionLevel
        peer = ReplicationConnection(
            session: session,
            limits: limits,
            spill: spill,
            deflater: deflater,
            checksum: checksum
        )
        self.channel = channel
        self.negotiated = negotiated
        self.hooks = hooks
        self.omissions = omissions
        self.runtime = runtime
        executor = runtime.makeDriverExecutor()
        unownedExecutor = executor.asUnownedSerialExecutor()
    }

    /// Revisions handed to the transport so far.
    package var revisionsSent: Int { peer.revisionsSent }

    package func run() async -> LoveseatError? {
        let stopObserving = hooks.observe { [weak self] in self?.noteChange(in: $0) }
        defer { stopObserving() }
        updateTime()
        perform(peer.connected(negotiated))
        do {
            while end.goodbye == nil, let frames = try await channel.receive() {
                updateTime()
                for (index, frame) in frames.enumerated() where end.goodbye == nil {
                    perform(peer.receive(frame))
                    // Frames to be sent get their turn in between.
                    if index % 50 == 49 { await runtime.yield(of: self, on: executor) }
                }
                if omissions.contains(.readingWhileSending) { await sending?.value }
            }
            if end.goodbye == nil, end.failure == nil {
                end.failure = LoveseatError(.webSocketGoingAway, "the peer closed the connection")
            }
        } catch {
            if end.goodbye == nil, end.failure == nil { end.failure = LoveseatError(channel: error) }
        }
        end.isGone = true
        perform(peer.disconnected())
        for timer in timers.keys { cancel(timer) }
        // Resolvers that have begun are waited for; the others leave their conflicts to the next replication.
        let unfinished = resolutions.tasks.sorted { $0.key < $1.key }.map(\.value)
        for resolution in unfinished { resolution.cancel() }
        for resolution in unfinished { await resolution.value }
        end.farewell?.cancel()
        if let goodbye = end.goodbye { await channel.close(code: goodbye.code, reason: goodbye.reason) }
        return end.failure
    }

    /// Notes a commit. All commits until the driver gets to them are one event.
    private nonisolated func noteChange(in collection: CollectionName) {
        let isFirst = changed.withLock { changed in
            defer { changed.insert(collection) }
            return changed.isEmpty
        }
        if isFirst { runtime.task { [self] in await handleChanges() } }
    }

    private func handleChanges() {
        let names = changed.withLock { changed in
            defer { changed = [] }
            return changed
        }
        updateTime()
        let indices = peer.session.collectionIndices
        for index in names.compactMap({ indices[$0] }).sorted() { perform(peer.localChange(index)) }
    }

    private func updateTime() { peer.now = runtime.unixTime() / 1_000 }

    /// Looks for documents that the peer may no longer read. Call this when its permissions may have changed.
    package func accessChanged() { perform(peer.accessChanged()) }

    package func stop() { perform(peer.stop()) }

    package func pending(listing limit: Int, unread: Int) -> PendingTransfers {
        peer.session.pending(listing: limit, unread: unread)
    }

    private func perform(_ first: [ReplicationConnection.Action]) {
        for action in first {
            switch action {
            case .setTimer(let timer, let milliseconds): setTimer(timer, milliseconds)
            case .cancelTimer(let timer): cancel(timer)
            case .resolve(let notice): resolve(notice)
            case .fetch(let notice): fetch(notice)
            case .report(.failure(let error)): end.failure = end.failure ?? error
            case .report(.document(var event)) where event.error != nil:
                event.name = peer.session.name(of: event.collection)
                hooks.report(.document(event))
            case .report(let report): hooks.report(report)
            case .close(let code, let reason): sayGoodbye(code, reason)
            }
        }
        startSending()
    }

    /// Begins to close the connection. Queued frames are sent first, but a peer that takes none of them is not waited for.
    private func sayGoodbye(_ code: Int, _ reason: String) {
        end.goodbye = (code, reason)
        let channel = channel
        end.farewell = runtime.task(after: Self.farewell) { await channel.close(code: code, reason: reason) }
    }

    private func cancel(_ timer: ReplicationTimer) {
        let task = timers.removeValue(forKey: timer)
        if !omissions.contains(.cancelling) { task?.cancel() }
    }

    private func setTimer(_ timer: ReplicationTimer, _ milliseconds: Int) {
        cancel(timer)
        timers[timer] = runtime.task(after: .milliseconds(milliseconds)) { [self] in await fire(timer) }
    }

    private func fire(_ timer: ReplicationTimer) {
        if Task.isCancelled { return }
        timers[timer] = nil
        updateTime()
        perform(peer.timerFired(timer))
    }

    // Resolvers and fetches may wait, so they are tasks of the runtime.

    private func resolve(_ notice: ConflictNotice) {
        let work = hooks.resolve
        begin { await .resolved(notice, work(notice)) }
    }

    private func fetch(_ notice: FetchNotice) {
        let work = hooks.fetch
        begin { await .fetched(notice, isComplete: work(notice)) }
    }

    private enum Outcome: Sendable {
        case resolved(ConflictNotice, LoveseatError?)
        case fetched(FetchNotice, isComplete: Bool)
    }

    private func begin(_ work: @escaping @Sendable () async -> Outcome) {
        let number = resolutions.nextNumber()
        resolutions.tasks[number] = runtime.task { [self] in await complete(number, work()) }
    }

    private func complete(_ number: Int, _ outcome: Outcome) {
        resolutions.tasks[number] = nil
        switch outcome {
        case .resolved(let notice, let error):
            perform(peer.resolved(notice.collection, documentID: notice.documentID, error))
        case .fetched(let notice, let isComplete): perform(peer.fetched(notice, isComplete: isComplete))
        }
    }

    // MARK: Sending

    private func startSending() {
        if isSending || end.isGone || (end.goodbye == nil && peer.hasNothingToSend) { return }
        isSending = true
        sending = runtime.task(on: executor) { [self] in await send() }
    }

    private func send() async {
        defer { isSending = false }
        while !end.isGone {
            var batch: [[UInt8]] = []
            var bytes = 0
            while bytes < Self.batchBytes, batch.count < Self.batchFrames {
                let (frame, actions) = peer.nextFrame()
                if !actions.isEmpty { perform(actions) }
                guard let frame else {
                    // These actions may have queued more frames.
                    if actions.isEmpty { break }
                    continue
                }
                batch.append(frame)
                bytes += frame.count
            }
            if batch.isEmpty {
                // Everything was sent. Closing the channel wakes the reader.
                if let goodbye = end.goodbye {
                    await channel.close(code: goodbye.code, reason: goodbye.reason)
                }
                return
            }
            do { try await channel.send(batch) } catch {
                // The reader hears of it too, with the reason.
                return
            }
            if omissions.contains(.secondLook) { return }
        }
    }
}

extension LoveseatError {
    init(channel error: any Error) {
        self =
            (error as? LoveseatError)
            ?? LoveseatError(.webSocketAbnormalClose, "the connection broke: \(error)")
    }
}
