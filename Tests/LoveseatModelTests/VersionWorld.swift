import LoveseatModel
import LoveseatTesting

/// A document at several peers whose clocks are apart: random edits, pulls, merges and resolutions, with an oracle that remembers
/// which edits went into each state.
struct VersionWorld {
    /// A state of the document somewhere.
    struct State: Equatable {
        var vector = VersionVector()
        /// The versions whose edits went into the state.
        var edits: Set<Version> = []
        var content = 0
    }

    /// A resolution or a merge: both sides, and the outcome.
    struct Resolution {
        var winner: State
        var loser: State
        var outcome: State
        var isMerge: Bool
    }

    private struct Peer {
        var author: VersionAuthor
        var state = State()
        /// All of its own edits. A peer that edits has seen them, whatever its state says.
        var own: Set<Version> = []
        /// How far its clock is ahead, in nanoseconds.
        var lead: Int64
    }

    private var generator: SeededGenerator
    private let adopts: Bool
    private var peers: [Peer] = []
    private var time: UInt64 = 0x18E9_F1F2_E876_1234
    private var contents = 0
    /// Every state that was stored somewhere, in order.
    private(set) var states: [State] = []
    private(set) var resolutions: [Resolution] = []
    /// Versions that were issued twice.
    private(set) var duplicates: [Version] = []

    var peerCount: Int { peers.count }

    /// Runs a history. `adopts`: whether one side may win a conflict as it is; otherwise all conflicts are merged.
    init(seed: UInt64, adopts: Bool) throws {
        generator = SeededGenerator(seed: seed)
        self.adopts = adopts
        for number in 0..<generator.int(2...6) {
            // Sources are not in the order of peers.
            let source = SourceID(high: generator.next(), low: UInt64(number) + 1)
            let lead = Int64(generator.int(-110...110)) * 1_000_000_000
            peers.append(Peer(author: try VersionAuthor(source), lead: lead))
        }
        for _ in 0..<generator.int(5...40) { try step() }
    }

    private mutating func step() throws {
        time += generator.pick([0, 1, 70_000, 1_000_000_000, 10_000_000_000])
        let index = generator.int(0...peers.count - 1)
        if generator.chance(0.05) { peers[index].lead -= Int64(generator.int(0...20)) * 1_000_000_000 }
        if generator.chance(0.1) { try restart(index) }
        let others = peers.indices.filter { $0 != index && !peers[$0].state.vector.isEmpty }
        if others.isEmpty || generator.chance(0.45) {
            try edit(index)
        } else {
            try pull(index, from: generator.pick(others))
        }
    }

    private func wall(_ index: Int) -> UInt64 { time.advanced(by: Int(peers[index].lead)) }

    /// The peer forgets all times but those of its own versions.
    private mutating func restart(_ index: Int) throws {
        let clock = try HybridClock(after: peers[index].own.map(\.time).max() ?? 0)
        peers[index].author = try VersionAuthor(peers[index].author.source, clock: clock)
    }

    private mutating func edit(_ index: Int) throws {
        let state = peers[index].state
        let vector = try peers[index].author.edit(state.vector, wall: wall(index))
        issue(vector, by: index, over: state.edits)
    }

    /// Stores new content.
    private mutating func issue(_ vector: VersionVector, by index: Int, over edits: Set<Version>) {
        guard let version = vector.current else { return }
        if !peers[index].own.insert(version).inserted { duplicates.append(version) }
        contents += 1
        store(State(vector: vector, edits: edits.union(peers[index].own), content: contents), at: index)
    }

    private mutating func store(_ state: State, at index: Int) {
        peers[index].state = state
        states.append(state)
    }

    private mutating func pull(_ index: Int, from other: Int) throws {
        let (own, theirs) = (peers[index].state, peers[other].state)
        do throws(VersionError) {
            try peers[index].author.see(theirs.vector, wall: wall(index))
        } catch {
            // Clocks that are more than two minutes apart.
            return
        }
        switch theirs.vector.relation(to: own.vector) {
        case .newer:
            store(theirs, at: index)
        case .older:
            break
        case .same:
            guard adopts, generator.chance(0.5) else { return }
            store(try Self.resolved(own, over: theirs), at: index)
        case .conflict:
            try resolve(own, theirs, at: index)
        }
    }

    private mutating func resolve(_ own: State, _ theirs: State, at index: Int) throws {
        let isOwnWinner = generator.chance(0.5)
        let (winner, loser) = isOwnWinner ? (own, theirs) : (theirs, own)
        let merges = !adopts || generator.chance(0.3) || !winner.vector.canWinUnchanged(over: loser.vector)
        if merges {
            let vector = try peers[index].author.merge(winner.vector, loser.vector, wall: wall(index))
            let source = peers[index].author.source
            // A merge names the two versions that it merges. It has no place for a later one by an author of these.
            let edits = winner.edits.union(loser.edits).filter { edit in
                edit.source == source
                    || !vector.mergeVersions.contains { $0.source == edit.source && $0.time < edit.time }
            }
            issue(vector, by: index, over: edits)
        } else {
            store(try Self.resolved(winner, over: loser), at: index)
        }
        resolutions.append(
            Resolution(winner: winner, loser: loser, outcome: peers[index].state, isMerge: merges)
        )
    }

    private static func resolved(_ winner: State, over loser: State) throws -> State {
        State(
            vector: try winner.vector.winning(over: loser.vector),
            edits: winner.edits.union(loser.edits),
            content: winner.content
        )
    }

    /// How two states are related by the edits that went into them.
    static func relation(_ state: State, to other: State) -> StateRelation? {
        guard let current = state.vector.current, let otherCurrent = other.vector.current else { return nil }
        if current == otherCurrent { return .same }
        let (covers, isCovered) = (state.edits.contains(otherCurrent), other.edits.contains(current))
        if covers != isCovered { return covers ? .newer : .older }
        return .conflict
    }
}
