import NIOConcurrencyHelpers
package import NIOCore

/// Connections that have not authenticated yet: a limited number, each for a limited time. The oldest is closed
/// first, so that silent ones cannot keep others out.
package final class HalfOpenConnections: Sendable {
    private let limit: Int
    private let patience: TimeAmount
    private let waiting = NIOLockedValueBox<[(id: ObjectIdentifier, channel: any Channel)]>([])

    package init(limit: Int, patience: TimeAmount) {
        self.limit = limit
        self.patience = patience
    }

    package func add(_ channel: any Channel) {
        let oldest = waiting.withLockedValue { waiting -> (any Channel)? in
            waiting.append((ObjectIdentifier(channel), channel))
            return waiting.count > limit ? waiting.removeFirst().channel : nil
        }
        oldest?.close(promise: nil)
        let deadline = channel.eventLoop.scheduleTask(in: patience) {
            if self.remove(channel) { channel.close(promise: nil) }
        }
        channel.closeFuture.whenComplete { _ in
            deadline.cancel()
            self.remove(channel)
        }
    }

    /// Removes a connection that got its response or was closed; returns whether it was waiting.
    @discardableResult
    package func remove(_ channel: any Channel) -> Bool {
        waiting.withLockedValue { waiting in
            guard let index = waiting.firstIndex(where: { $0.id == ObjectIdentifier(channel) }) else {
                return false
            }
            waiting.remove(at: index)
            return true
        }
    }
}
