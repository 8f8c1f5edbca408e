/// How often a peer has taken documents away, and how many of those times a checkpoint covers (docs/decisions/0006-lost-commits.md).
package struct RemovalCount: Hashable, Sendable {
    /// Whether the peer has ever taken documents away.
    package let hasAny: Bool
    /// Whether it did after the last checkpoint was sent to it.
    package let isUncovered: Bool
    private var saved: Int
    private var begun: Int

    /// `counted`: how often it did, nil for never. `covered`: the number that was saved with the last checkpoint. Version 0.2.0 saved one
    /// without counting.
    package init(counted: Int? = nil, covered: Int? = nil) {
        hasAny = counted != nil || covered != nil
        isUncovered = counted ?? 0 > covered ?? 0
        (saved, begun) = (covered ?? 0, covered ?? 0)
    }

    /// Notes that a checkpoint is sent to the peer. `counted`: how often the peer has taken documents away by now.
    package mutating func checkpointBegan(at counted: Int?) { begun = counted ?? begun }

    /// The number to save with the checkpoint; nil if it is saved already.
    package var unsaved: Int? { begun > saved ? begun : nil }

    /// Notes that the checkpoint was saved, with the number.
    package mutating func checkpointSaved() { saved = begun }
}
