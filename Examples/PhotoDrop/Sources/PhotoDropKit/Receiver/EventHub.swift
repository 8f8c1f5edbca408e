import Loveseat
import PhotoDropCore
import Synchronization

/// Passes a session's events to any number of readers. A reader that connects again gets what it has missed.
package final class EventHub: Sendable {
    /// The events that a reader may leave waiting. Then its stream ends, and it has to connect again.
    package static let maximumWaiting = 256

    /// An event with its number, if it is one that must not be missed.
    package struct Entry: Sendable {
        package let number: Int?
        package let event: DropEvent
    }

    private struct State {
        var journal: [Entry] = []
        var senders: [SenderID: SenderStatus] = [:]
        var readers = StreamReaders<Entry>()

        var sortedSenders: [SenderStatus] { senders.values.sorted { $0.id.text < $1.id.text } }
    }

    private let state = Mutex(State())

    package init() {}

    package func publish(_ event: DropEvent) {
        let slow = state.withLock { state in
            let number = event.isKept ? state.journal.count + 1 : nil
            let entry = Entry(number: number, event: event)
            if number != nil { state.journal.append(entry) }
            if case .sender(let sender) = event { state.senders[sender.id] = sender }
            return state.readers.yield(entry)
        }
        for reader in slow { reader.finish() }
    }

    /// The senders as they are.
    package var senders: [SenderStatus] { state.withLock { $0.sortedSenders } }

    /// The photos of the session, in the order in which they were saved, and those that could not be saved, as JSON with a `state`.
    package var photos: [JSONObject] {
        var order: [String] = []
        var photos: [String: JSONObject?] = [:]
        func set(_ id: String, _ json: JSONObject, _ state: String) {
            if photos.updateValue(json, forKey: id) == nil { order.append(id) }
            photos[id]??["state"] = .string(state)
        }
        for entry in state.withLock({ $0.journal }) {
            switch entry.event {
            case .saved(let photo): set(photo.id, entry.event.json, "saved")
            case .failed(let id, _, _): set(id, entry.event.json, "failed")
            case .gone(let id, _): photos.updateValue(nil, forKey: id)
            case .sender, .progress, .remark, .end: break
            }
        }
        return order.compactMap { photos[$0] ?? nil }
    }

    /// Adds a reader. Returns the senders as they are with the events after a number, and a stream of everything from now on.
    ///
    /// `maximumWaiting`: see ``maximumWaiting``; nil for a reader that must get everything over one stream.
    package func subscribe(after number: Int, maximumWaiting: Int? = EventHub.maximumWaiting) -> (
        missed: [Entry], live: AsyncStream<Entry>
    ) {
        let (live, reader) = AsyncStream<Entry>.makeStream(
            bufferingPolicy: maximumWaiting.map { .bufferingOldest($0) } ?? .unbounded
        )
        let missed = state.withLock { state -> [Entry] in
            let key = state.readers.add(reader)
            reader.onTermination = { [weak self] _ in self?.state.withLock { $0.readers.remove(key) } }
            return state.sortedSenders.map { Entry(number: nil, event: .sender($0)) }
                + state.journal.dropFirst(max(0, number))
        }
        return (missed, live)
    }

    /// The number of readers.
    package var readerCount: Int { state.withLock { $0.readers.count } }

    /// Ends all streams.
    package func finish() {
        for reader in state.withLock({ $0.readers.removeAll() }) { reader.finish() }
    }
}
