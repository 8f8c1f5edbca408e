package import LoveseatModel
private import Synchronization

/// A queue of received messages, which reports when it is full and when it has room again.
package final class Mailbox: Sendable {
    private enum End {
        case goodbye
        case failure(LoveseatError)
    }

    private struct State {
        var messages: [[UInt8]] = []
        var bytes = 0
        var end: End?
        var reader: CheckedContinuation<Void, Never>?
    }

    /// Called when a full mailbox was emptied.
    private let onRoom: @Sendable () -> Void
    private let limit: Int
    private let state = Mutex(State())

    /// `limit`: the number of bytes from which it counts as full.
    package init(limit: Int, onRoom: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.onRoom = onRoom
    }

    package var isFull: Bool { state.withLock { $0.bytes >= limit } }

    /// Adds messages, and returns whether there is room for more. After the end they are dropped.
    @discardableResult
    package func deliver(_ messages: [[UInt8]]) -> Bool {
        let (reader, hasRoom) = state.withLock { state in
            guard state.end == nil else { return (nil as CheckedContinuation<Void, Never>?, true) }
            state.messages += messages
            state.bytes += messages.reduce(0) { $0 + $1.count }
            defer { state.reader = nil }
            return (state.reader, state.bytes < limit)
        }
        reader?.resume()
        return hasRoom
    }

    /// No message follows: the peer closed the connection, or, with an error, the connection broke. The first call counts.
    package func finish(_ error: LoveseatError? = nil) {
        state.withLock { state in
            if state.end == nil { state.end = error.map { .failure($0) } ?? .goodbye }
            defer { state.reader = nil }
            return state.reader
        }?.resume()
    }

    /// Returns everything that has arrived, which may be nothing; nil at the end.
    package func dequeueMessages() throws(LoveseatError) -> [[UInt8]]? {
        let (messages, wasFull, end) = state.withLock { state in
            defer { (state.messages, state.bytes) = ([], 0) }
            return (state.messages, state.bytes >= limit, state.end)
        }
        if !messages.isEmpty {
            if wasFull { onRoom() }
            return messages
        }
        switch end {
        case .goodbye: return nil
        case .failure(let error): throw error
        case nil: return []
        }
    }

    /// Waits for messages and returns all that have arrived; nil at the end. One reader at a time.
    package func receive() async throws(LoveseatError) -> [[UInt8]]? {
        while true {
            let messages = try dequeueMessages()
            guard let messages, messages.isEmpty else { return messages }
            await waitForMessages()
        }
    }

    /// Waits like ``receive()``, until the task is cancelled.
    ///
    /// - Throws: ``LoveseatError``, `CancellationError`.
    package func receiveUnlessCancelled() async throws -> [[UInt8]]? {
        try await withTaskCancellationHandler {
            while true {
                let messages = try dequeueMessages()
                guard let messages, messages.isEmpty else { return messages }
                try Task.checkCancellation()
                await waitForMessages(endsIfCancelled: true)
            }
        } onCancel: {
            wake()
        }
    }

    private func waitForMessages(endsIfCancelled: Bool = false) async {
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                guard state.messages.isEmpty, state.end == nil else { return false }
                state.reader = continuation
                return true
            }
            if !mustWait { return continuation.resume() }
            // The task may have been cancelled before the reader waited.
            if endsIfCancelled, Task.isCancelled { wake() }
        }
    }

    private func wake() {
        state.withLock { state in
            defer { state.reader = nil }
            return state.reader
        }?.resume()
    }
}
