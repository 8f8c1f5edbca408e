import LoveseatModel

/// The random numbers of a history. Choices that were added later have numbers of their own, so that a seed still gives the history that it gave before.
final class SimulationDice {
    var history: SeededGenerator
    /// For choices that were added later.
    var extras: SeededGenerator
    /// For the tidy worlds.
    var worlds: SeededGenerator
    /// For the untidy worlds.
    var untidy: SeededGenerator
    /// For links of another wire, and what happens on them.
    var wire: SeededGenerator

    init(seed: UInt64) {
        history = SeededGenerator(seed: seed)
        extras = SeededGenerator(seed: seed ^ 0x6875_6273)
        worlds = SeededGenerator(seed: seed ^ 0x776F_726C_6473)
        untidy = SeededGenerator(seed: seed ^ 0x706C_6170)
        wire = SeededGenerator(seed: seed ^ 0x7769_7265)
    }
}
