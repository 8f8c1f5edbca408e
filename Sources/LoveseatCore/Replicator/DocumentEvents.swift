import LoveseatReplication
private import Synchronization

/// Collects document events in batches of one direction: up to 100 documents, or those of 200 milliseconds.
final class DocumentEvents: Sendable {
    private static let maximumBatch = 100
    private static let maximumDelay = Duration.milliseconds(200)

    private struct State {
        var isPush = false
        var documents: [ReplicatedDocument] = []
        var timerIsSet = false
    }

    private let state = Mutex(State())
    private let deliver: @Sendable (DocumentReplication) -> Void

    private let runtime: ReplicationRuntime

    init(_ runtime: ReplicationRuntime, deliver: @escaping @Sendable (DocumentReplication) -> Void) {
        self.runtime = runtime
        self.deliver = deliver
    }

    func add(_ document: ReplicatedDocument, isPush: Bool) {
        let (ready, mustSetTimer) = state.withLock { state -> ([DocumentReplication], Bool) in
            var ready: [DocumentReplication] = []
            if state.isPush != isPush, let batch = Self.dequeueBatch(&state) { ready.append(batch) }
            state.isPush = isPush
            state.documents.append(document)
            if state.documents.count >= Self.maximumBatch, let batch = Self.dequeueBatch(&state) {
                ready.append(batch)
            }
            let mustSetTimer = !state.documents.isEmpty && !state.timerIsSet
            if mustSetTimer { state.timerIsSet = true }
            return (ready, mustSetTimer)
        }
        for batch in ready { deliver(batch) }
        if mustSetTimer { _ = runtime.task(after: Self.maximumDelay) { self.flush() } }
    }

    /// Delivers the collected events.
    func flush() {
        let batch = state.withLock { state in
            state.timerIsSet = false
            return Self.dequeueBatch(&state)
        }
        if let batch { deliver(batch) }
    }

    private static func dequeueBatch(_ state: inout State) -> DocumentReplication? {
        guard !state.documents.isEmpty else { return nil }
        defer { state.documents = [] }
        return DocumentReplication(isPush: state.isPush, documents: state.documents)
    }
}
