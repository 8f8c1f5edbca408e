/// Decides in which steps a machine checks conditions that cost as much as what it holds, so that the checks of all steps together cost a fixed
/// amount each: a machine that holds little is checked at each step, one that holds 6,400 entries at each hundredth.
package struct InvariantPace {
    private static let entriesPerStep = 64
    private var steps = 0

    package init() {}

    /// Counts a step of a machine that holds this many entries, and says whether it is checked now.
    package mutating func isDue(holding entries: Int) -> Bool {
        steps += 1
        if steps < entries / Self.entriesPerStep { return false }
        steps = 0
        return true
    }
}
