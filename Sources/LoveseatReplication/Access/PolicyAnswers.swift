import LoveseatModel
private import Synchronization

/// The answer of an access policy about a collection or a revision.
package enum AccessRight: UInt8, Hashable, Sendable, Comparable {
    case none, read, write

    package static func < (one: AccessRight, other: AccessRight) -> Bool { one.rawValue < other.rawValue }
}

/// The answers of a policy about one peer and one collection, at one moment: the policy is asked about each revision once.
final class PolicyAnswers: Sendable {
    /// A revision, told apart by all of its content: an edit that is not stored has no revision ID of its own.
    private struct Question: Hashable {
        let candidate: FilterCandidate

        static func == (one: Self, other: Self) -> Bool {
            one.candidate.revision == other.candidate.revision
                && one.candidate.isDeleted == other.candidate.isDeleted
                && one.candidate.documentID.isExactly(other.candidate.documentID)
                && one.candidate.body == other.candidate.body
        }

        func hash(into hasher: inout Hasher) {
            ExactText(candidate.documentID).hash(into: &hasher)
            hasher.combine(candidate.revision)
            hasher.combine(candidate.body.bytes.count)
        }
    }

    private struct State {
        var collection: AccessRight?
        var revisions: [Question: AccessRight] = [:]
    }

    private let policy: @Sendable (FilterCandidate?) -> AccessRight
    private let state = Mutex(State())

    init(_ policy: @escaping @Sendable (FilterCandidate?) -> AccessRight) { self.policy = policy }

    /// The most that the peer may do in the collection.
    var collection: AccessRight {
        if let known = state.withLock({ $0.collection }) { return known }
        let right = policy(nil)
        state.withLock { $0.collection = right }
        return right
    }

    /// The right to a revision, which is never higher than that to the collection.
    func right(to candidate: FilterCandidate) -> AccessRight {
        let collection = collection
        if collection == .none { return .none }
        let question = Question(candidate: candidate)
        if let known = state.withLock({ $0.revisions[question] }) { return known }
        let right = min(collection, policy(candidate))
        state.withLock { $0.revisions[question] = right }
        return right
    }
}
