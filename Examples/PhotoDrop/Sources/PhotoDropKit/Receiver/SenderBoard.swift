import Loveseat
import PhotoDropCore
import Synchronization

/// Keeps how far each sender is, and publishes what changes.
package final class SenderBoard: Sendable {
    /// How often the progress of one photo is published, at most.
    private static let interval = Duration.milliseconds(250)

    private struct Sender {
        var status: SenderStatus
        /// The photos of its batches.
        var announced: Set<String> = []
        var announcedBytes: [String: UInt64] = [:]
        var received: Set<String> = []
        var doneBatches: Set<String> = []
        var batches: Set<String> = []
        /// The names of its connections.
        var connections: Set<String> = []

        mutating func update() {
            status.received = received.count
            status.count = max(announced.count, status.count, received.count)
            status.bytes = announcedBytes.values.reduce(0, +)
            let isDone = !batches.isEmpty && batches == doneBatches
            status.state = isDone ? .done : connections.isEmpty ? .away : .sending
        }
    }

    private struct State {
        var senders: [SenderID: Sender] = [:]
        var lastProgress: [String: ContinuousClock.Instant] = [:]
    }

    private let hub: EventHub
    private let state = Mutex(State())

    package init(hub: EventHub) { self.hub = hub }

    /// A batch was stored.
    package func received(_ batch: BatchDocument) {
        change(batch.sender) { sender in
            sender.status.name = batch.senderName ?? sender.status.name
            sender.status.count = max(sender.status.count, batch.count)
            sender.announced.formUnion(batch.photos)
            sender.announcedBytes[batch.id] = batch.bytes
            sender.batches.insert(batch.id)
            if batch.isDone { sender.doneBatches.insert(batch.id) }
        }
    }

    /// A photo was stored.
    package func received(_ id: String, bytes: UInt64, from sender: SenderID?) {
        state.withLock { _ = $0.lastProgress.removeValue(forKey: id) }
        guard let sender else { return }
        change(sender) { sender in
            guard sender.received.insert(id).inserted else { return }
            sender.status.receivedBytes += bytes
        }
    }

    package func connected(_ connection: String, _ sender: SenderID) {
        change(sender) { $0.connections.insert(connection) }
    }

    package func disconnected(_ connection: String, _ sender: SenderID) {
        change(sender) { $0.connections.remove(connection) }
    }

    /// A part of a photo has arrived.
    package func transferred(_ transfer: BlobTransfer) {
        guard let id = transfer.documentID, !transfer.isPush else { return }
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            guard state.lastProgress[id].map({ now - $0 >= Self.interval }) ?? true else { return false }
            state.lastProgress[id] = now
            return true
        }
        guard isDue else { return }
        hub.publish(.progress(photo: id, sent: transfer.transferred, size: transfer.length))
    }

    package func name(of sender: SenderID?) -> String? {
        sender.flatMap { id in state.withLock { $0.senders[id]?.status.name } }
    }

    /// Whether every sender that has announced photos has sent them all.
    package var isEverySenderDone: Bool {
        state.withLock { $0.senders.values.allSatisfy { $0.status.state == .done } }
    }

    private func change(_ id: SenderID, _ body: (inout Sender) -> Void) {
        let news = state.withLock { state -> SenderStatus? in
            var sender = state.senders[id] ?? Sender(status: SenderStatus(id: id))
            let before = sender.status
            body(&sender)
            sender.update()
            state.senders[id] = sender
            return sender.status == before ? nil : sender.status
        }
        if let news { hub.publish(.sender(news)) }
    }
}
