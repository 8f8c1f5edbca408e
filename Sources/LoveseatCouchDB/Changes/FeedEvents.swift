import LoveseatStorage
import NIOConcurrencyHelpers
import NIOCore

/// The events that a feed waits for: a commit, the time of its next sign of life, or the end of the client or the database.
final class FeedEvents: Sendable {
    enum Event: Sendable { case changed, tick }

    let stream: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let changes: ChangeHub
    private let token: Int
    private let channel: any Channel
    private let timer = NIOLockedValueBox<Scheduled<Void>?>(nil)

    init(_ entry: Databases.Entry, _ channel: any Channel) {
        // The newest event is enough: each makes the feed look at the database again.
        let (stream, continuation) = AsyncStream<Event>.makeStream(bufferingPolicy: .bufferingNewest(1))
        self.stream = stream
        self.continuation = continuation
        self.channel = channel
        changes = entry.store.changes
        token = changes.subscribe(collection: entry.handle.number, onClose: { continuation.finish() }) { _ in
            continuation.yield(.changed)
        }
        channel.closeFuture.whenComplete { _ in continuation.finish() }
    }

    /// Sets the time of the next sign of life, or of the end.
    func schedule(_ request: ChangesRequest) {
        let continuation = continuation
        let next = channel.eventLoop.scheduleTask(
            in: .milliseconds(Int64(request.heartbeat ?? request.timeout))
        ) {
            _ = continuation.yield(.tick)
        }
        timer.withLockedValue { timer in
            timer?.cancel()
            timer = next
        }
    }

    func end() {
        changes.unsubscribe(token)
        timer.withLockedValue { $0?.cancel() }
        continuation.finish()
    }
}
