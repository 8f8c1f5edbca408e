import LoveseatModel
import LoveseatTesting

/// A document at three to six peers that speak of vectors only, and decide by the rules R1 to R6 of version-vectors.md §12.1: the rules by themselves,
/// without trees. Numbers of rules are in comments.
struct RuleMesh {
    /// How a history is drawn.
    struct Plan {
        /// How often an edit deletes.
        var deletions = 0.0
        /// Whether all resolvers merge; otherwise the default rule decides.
        var merges = false
        /// Whether clocks are apart, by 110 seconds at most.
        var hasSkew = false
        /// Whether a newer state keeps what the one that it replaces included.
        var keepsReplaced = true
    }

    struct State: Hashable {
        var vector = VersionVector()
        /// The edits that the content shows; empty for a deletion.
        var content: Set<Int> = []
        var isDeleted = false

        func saysTheSame(as other: State) -> Bool { (content, isDeleted) == (other.content, other.isDeleted) }
    }

    private struct Peer {
        var author: VersionAuthor
        var state = State()
        let lead: Int64
    }

    private var generator: SeededGenerator
    private let plan: Plan
    private var peers: [Peer] = []
    private var links: [(Int, Int)] = []
    private var time: UInt64 = 0x18E9_F1F2_E876_1234
    private var number = 0
    private var contents: [Version: State] = [:]
    private(set) var problems: [String] = []
    /// How many rounds it took until nothing changed; nil if that did not happen.
    private(set) var rounds: Int?
    /// How many conflicts needed a resolver.
    private(set) var resolutions = 0

    var states: [State] { peers.map(\.state) }

    /// Runs a history: edits and syncs at random, and then rounds of all links until nothing changes.
    init(seed: UInt64, _ plan: Plan) throws {
        (generator, self.plan) = (SeededGenerator(seed: seed), plan)
        let count = generator.int(3...6)
        for number in 1...count {
            let source = SourceID(high: generator.next(), low: UInt64(number))
            let lead = plan.hasSkew ? Int64(generator.int(-55...55)) * 1_000_000_000 : 0
            peers.append(Peer(author: try VersionAuthor(source), lead: lead))
        }
        let isRing = generator.chance(0.5)
        for one in 0..<count {
            links += isRing ? [(one, (one + 1) % count)] : (0..<count).filter { $0 != one }.map { (one, $0) }
        }
        for _ in 0..<generator.int(5...60) {
            time += generator.pick([0, 1_000, 70_000, 1_000_000_000, 20_000_000_000])
            if generator.chance(0.5) {
                try edit(generator.int(0...count - 1))
            } else {
                let (one, other) = generator.pick(links)
                try sync(one, other)
            }
        }
        try settle()
    }

    private mutating func settle() throws {
        for round in 0..<20 {
            let before = states
            for (one, other) in links { try sync(one, other) }
            if states == before {
                rounds = round
                return
            }
            time += 1_000_000_000
        }
    }

    private func wall(_ index: Int) -> UInt64 { time.advanced(by: Int(peers[index].lead)) }

    private mutating func edit(_ index: Int) throws {
        let state = peers[index].state
        number += 1
        let isDeleted = !state.vector.isEmpty && !state.isDeleted && generator.chance(plan.deletions)
        let vector = try peers[index].author.edit(state.vector, wall: wall(index))
        let content = isDeleted ? [] : plan.merges ? state.content.union([number]) : [number]
        store(State(vector: vector, content: content, isDeleted: isDeleted), at: index)
    }

    // MARK: Syncs

    /// One peer pulls from another one, and pushes to it.
    private mutating func sync(_ active: Int, _ passive: Int) throws {
        try receive(peers[passive].state, at: active, isActive: true)
        try receive(peers[active].state, at: passive, isActive: false)
    }

    private mutating func receive(_ theirs: State, at index: Int, isActive: Bool) throws {
        let own = peers[index].state
        guard let current = theirs.vector.current else { return }
        try peers[index].author.see(theirs.vector, wall: wall(index))
        guard let ownCurrent = own.vector.current else { return store(theirs, at: index) }
        switch theirs.vector.relation(to: own.vector) {
        case .older: return
        case .same:
            // R4
            var united = own
            united.vector = own.vector.united(with: theirs.vector)
            store(united, at: index)
        // R5: whatever the parent is.
        case .newer:
            var newer = theirs
            // Otherwise states can be newer than each other in a circle, because the relation is not transitive.
            if plan.keepsReplaced, theirs.vector.canWinUnchanged(over: own.vector) {
                newer.vector = try theirs.vector.winning(over: own.vector)
            }
            store(newer, at: index)
        case .conflict:
            let (winner, loser) = current < ownCurrent ? (own, theirs) : (theirs, own)
            let includeEachOther = theirs.vector.covers(ownCurrent) && own.vector.covers(current)
            // R2, and R6
            if includeEachOther || own.saysTheSame(as: theirs) {
                try decide(for: winner, over: loser, at: index)
            } else if isActive {
                resolutions += 1
                try resolve(own, theirs, winner, loser, at: index)
            }
        }
    }

    private mutating func resolve(
        _ own: State,
        _ theirs: State,
        _ greater: State,
        _ smaller: State,
        at index: Int
    ) throws {
        if plan.merges, !own.isDeleted, !theirs.isDeleted {
            let union = own.content.union(theirs.content)
            for (winner, loser) in [(own, theirs), (theirs, own)] where union == winner.content {
                return try decide(for: winner, over: loser, at: index)
            }
            return store(State(vector: try merged(own, theirs, at: index), content: union), at: index)
        }
        // R1: a deletion, then the greater version.
        let deletions = [own, theirs].filter(\.isDeleted)
        if let deletion = deletions.first {
            try decide(for: deletion, over: deletion == own ? theirs : own, at: index)
        } else {
            try decide(for: greater, over: smaller, at: index)
        }
    }

    private mutating func decide(for winner: State, over loser: State, at index: Int) throws {
        var outcome = winner
        // R3
        outcome.vector =
            winner.vector.canWinUnchanged(over: loser.vector)
            ? try winner.vector.winning(over: loser.vector) : try merged(winner, loser, at: index)
        store(outcome, at: index)
    }

    /// A new version over both. A merge has no place for a later version by one of the two authors.
    private mutating func merged(_ one: State, _ other: State, at index: Int) throws -> VersionVector {
        let (first, second) = (one.vector, other.vector)
        if first.canWinUnchanged(over: second), second.canWinUnchanged(over: first),
            first.current?.source != second.current?.source
        {
            return try peers[index].author.merge(first, second, wall: wall(index))
        }
        return try peers[index].author.edit(first.united(with: second), wall: wall(index))
    }

    private mutating func store(_ state: State, at index: Int) {
        peers[index].state = state
        guard let version = state.vector.current else { return }
        if let known = contents[version], !known.saysTheSame(as: state) {
            problems.append("\(version) names \(known) and \(state)")
        }
        contents[version] = state
    }
}
