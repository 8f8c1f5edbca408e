import LoveseatCore
import LoveseatModel
import LoveseatWeb
import Synchronization

/// Tells pages what has changed: one loop for all of them, which runs while there is a page.
final class LiveUpdates: Sendable {
    private static let lookEvery = Duration.milliseconds(250)
    /// Peers are looked at each fourth time.
    private static let looksPerSecond = 4
    private static let maximumReaders = 16
    private static let maximumWaiting = 32

    private let database: Database
    private let backend: any InspectorBackend
    private let state = Mutex(State())

    private struct State {
        var next = 0
        var readers: [Int: AsyncStream<EventStream.Event>.Continuation] = [:]
        var loop: Task<Void, Never>?
        var isStopped = false
    }

    init(_ database: Database, _ backend: any InspectorBackend) {
        self.database = database
        self.backend = backend
    }

    /// The events for one more page.
    ///
    /// - Throws: `busy` if too many pages are open.
    func subscribe() throws(LoveseatError) -> AsyncStream<EventStream.Event> {
        let (events, reader) = AsyncStream<EventStream.Event>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.maximumWaiting)
        )
        let isAccepted = state.withLock { state in
            guard !state.isStopped, state.readers.count < Self.maximumReaders else { return false }
            let number = state.next
            state.next += 1
            state.readers[number] = reader
            reader.onTermination = { [weak self] _ in self?.remove(number) }
            if state.loop == nil {
                state.loop = Task { [weak self] in
                    // The sleep fails after stop(), which the next look finds.
                    while let self, await self.look() { try? await Task.sleep(for: Self.lookEvery) }
                }
            }
            return true
        }
        guard isAccepted else {
            throw LoveseatError(.busy, "the inspector is open in too many tabs: close one")
        }
        return events
    }

    private func remove(_ number: Int) { state.withLock { _ = $0.readers.removeValue(forKey: number) } }

    /// Ends all streams.
    func stop() {
        let (readers, loop) = state.withLock { state in
            state.isStopped = true
            defer { state.readers = [:] }
            return (Array(state.readers.values), state.loop)
        }
        loop?.cancel()
        for reader in readers { reader.finish() }
    }

    private let last = Mutex(Last())

    private struct Last {
        var version = SeenVersion()
        var event = 0
        var look = 0
    }

    /// Looks once; false if there are no readers any more.
    private func look() async -> Bool {
        let hasReaders = state.withLock { state in
            if state.readers.isEmpty || state.isStopped { state.loop = nil }
            return state.loop != nil
        }
        guard hasReaders else { return false }
        let database = database
        // A database that cannot be read, as while it closes, has no version: the pages read it themselves, and show why.
        let version = try? await Reading.run { try DatabaseInspection(database).dataVersion() }
        let (hasChanged, asksPeers, event) = last.withLock { last in
            defer { last.look += 1 }
            return (last.version.see(version), last.look % Self.looksPerSecond == 0, last.event)
        }
        if hasChanged {
            publish(.init(name: "changed", json: ["version": version.map { JSONValue($0) } ?? .null]))
        }
        guard asksPeers else { return true }
        // A process that is just starting or ending is asked again.
        guard let report = try? await backend.peers(after: event) else {
            publish(.init(name: "peers", json: ["isServing": false]))
            return true
        }
        // The process that serves the database may be another one by now, which counts from the beginning.
        last.withLock { last in
            let number = report["lastEvent"]?.int ?? 0
            let sent = report["events"]?.array?.last?["number"]?.int ?? event
            last.event = number < event ? 0 : sent
        }
        var json = report
        json["isServing"] = true
        publish(.init(name: "peers", json: json))
        return true
    }

    private func publish(_ event: EventStream.Event) {
        let slow = state.withLock { state in
            var slow: [AsyncStream<EventStream.Event>.Continuation] = []
            for (number, reader) in state.readers {
                guard case .dropped = reader.yield(event) else { continue }
                slow.append(reader)
                state.readers[number] = nil
            }
            return slow
        }
        // Ending a stream takes the lock again.
        for reader in slow { reader.finish() }
    }
}
