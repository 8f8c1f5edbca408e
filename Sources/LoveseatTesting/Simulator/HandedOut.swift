/// The changes that the sessions of a history have been given, for a mistake of two sessions at once.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class HandedOut: @unchecked Sendable {
    private var changes: [UInt64: Set<String>] = [:]

    /// One session's view.
    struct Session {
        fileprivate let all: HandedOut
        fileprivate let number: UInt64
        fileprivate let place: String

        /// Whether another open session between the two peers was given a change.
        func isElsewhere(_ change: String) -> Bool {
            all.changes.contains { $0.key != number && $0.value.contains("\(place) \(change)") }
        }

        func note(_ change: String) { all.changes[number, default: []].insert("\(place) \(change)") }
    }

    func session(_ number: UInt64, _ edge: Edge) -> Session {
        Session(all: self, number: number, place: "\(edge.source)>\(edge.target)")
    }

    func end(_ number: UInt64) { changes[number] = nil }
}
