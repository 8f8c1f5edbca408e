import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// The effects of an event: the database is asked at once, everything else is left to the driver.
struct SessionEffects {
    /// The database's first failure that is not one request's or one document's. The session ends with it after the event.
    private(set) var failure: LoveseatError?
    private(set) var queue: [ReplicationEffect] = []

    /// The protocol violations that the peer is told of.
    private(set) var violations: [ReplyError] = []

    mutating func append(_ effect: ReplicationEffect) {
        if case .replyError(let error, _, _) = effect, error.isViolation { violations.append(error) }
        queue.append(effect)
    }

    mutating func drain() -> [ReplicationEffect] {
        defer { (queue, violations) = ([], []) }
        return queue
    }

    mutating func fail(_ error: LoveseatError) { failure = failure ?? error }

    /// Asks the database; nil where the session cannot go on. A database that has failed is not asked again.
    @discardableResult
    mutating func ask<Answer>(_ question: () throws -> Answer) -> Answer? {
        guard failure == nil else { return nil }
        do { return try question() } catch {
            fail(LoveseatError(store: error))
            return nil
        }
    }

    /// Asks the database on behalf of a peer. An error is sent to the peer as the answer.
    mutating func answering<Answer>(_ request: UInt64, _ question: () throws -> Answer) -> Answer? {
        do { return try question() } catch {
            let error = ReplyError(LoveseatError(store: error))
            append(.replyError(error, to: request, isUrgent: false))
            return nil
        }
    }
}

extension LoveseatError {
    /// Takes an error that a ``Replica`` threw, for a closure that does not declare its type.
    init(store error: any Error) {
        self = error as? LoveseatError ?? LoveseatError(.unexpectedError, "the database failed: \(error)")
    }
}
