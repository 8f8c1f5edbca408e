import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Every pass ends when nobody edits, and sends nothing twice that the peer took, whatever the peer answers.
struct PassEndTests {
    @Test(arguments: ScriptedHub.Habit.allCases)
    func `a pass sends what a peer took no second time, and ends`(_ habit: ScriptedHub.Habit) throws {
        for seed in PropertySeeds.of("PASS", 100) {
            let hub = try ScriptedHub(habit, seed: seed)
            for _ in 0..<4 {
                try hub.edit()
                try hub.pass()
            }
            #expect(hub.faults.isEmpty, "\(habit), seed \(seed): \(hub.faults.joined(separator: "; "))")
        }
    }

    /// The script of the field: the peer keeps no checkpoint, announces what it has, and takes it again.
    @Test(arguments: [false, true])
    func `a peer that lost its checkpoint and takes again what it announced is sent it once`(
        _ isContinuous: Bool
    ) throws {
        let hub = try ScriptedHub(.takes, seed: 1)
        for _ in 0..<2 { try hub.pass(announcing: [("d", ["1-aa"])], isContinuous: isContinuous) }
        #expect(hub.faults.isEmpty, "\(hub.faults)")
    }
}

/// A peer without a memory, which answers what the protocol allows.
final class ScriptedHub {
    enum Habit: CaseIterable, Sendable {
        /// It takes everything, again and again.
        case takes
        /// It says something else each time.
        case wavers
        /// It takes what is proposed, and says then that it has something else.
        case takesAndConflicts
        /// It agrees to proposals, and refuses the revisions.
        case refuses
    }

    private(set) var faults: [String] = []
    private let habit: Habit
    private let ours: ReplayedPeer
    private var random: SeededGenerator
    /// Lines of revisions, newest first, that somebody has had, by document.
    private var lines: [String: [[String]]] = [:]
    /// How often the peer took a revision in this pass.
    private var taken: [String: Int] = [:]
    private static let documents = ["d0", "d1", "d2"]
    /// More than any honest pass of three documents needs.
    private static let requestsPerPass = 200

    init(_ habit: Habit, seed: UInt64) throws {
        (self.habit, random) = (habit, SeededGenerator(seed: seed))
        ours = try ReplayedPeer()
        _ = try ours.collection(.default)
    }

    /// Edits and deletes some documents here, and makes up revisions of the peer.
    func edit() throws {
        let handle = try ours.collection(.default)
        for id in Self.documents where random.chance(0.6) {
            for _ in 0..<random.int(1...3) {
                let isDeleted = random.chance(0.2)
                let body = JSONText(canonical: isDeleted ? [:] : ["n": JSONValue(random.int(0...3))])
                _ = try ours.store.write {
                    try $0.save(
                        id,
                        in: handle,
                        body: body,
                        isDeleted: isDeleted,
                        condition: .lastWriteWins
                    )
                }
            }
            try noteOurs(id)
            if random.chance(0.5) {
                let base = (lines[id] ?? []).randomElement(using: &random) ?? []
                let tail = Array(base.dropFirst(random.int(0...base.count)))
                let generation = (tail.first.flatMap { RevisionID($0) }?.generation ?? 0) + 1
                lines[id, default: []].append(["\(generation)-\(random.pick(["aa", "0b", "ff"]))"] + tail)
            }
        }
    }

    private func noteOurs(_ id: String) throws {
        guard let record = try ours.record(id) else { return }
        let line = try record.tree().line(record.revision).map(\.text)
        if lines[id]?.contains(line) != true { lines[id, default: []].append(line) }
    }

    func pass() throws {
        var announced: [(String, [String])] = []
        for id in Self.documents where random.chance(0.6) {
            if let line = lines[id]?.randomElement(using: &random) { announced.append((id, line)) }
        }
        try pass(announcing: announced, isContinuous: random.chance(0.4), pulls: random.chance(0.8))
    }

    func pass(announcing: [(id: String, line: [String])], isContinuous: Bool, pulls: Bool = true) throws {
        taken = [:]
        let line = try ours.activeLine { plan in
            (plan.pushes, plan.pulls, plan.isContinuous) = (true, pulls, isContinuous)
        }
        if pulls {
            for (index, entry) in announcing.enumerated() {
                try announce(entry.id, entry.line, sequence: index + 1, line)
            }
            try line.tell("changes", [:], "[]")
        }
        var requests = 0
        while !line.requests.isEmpty, requests < Self.requestsPerPass {
            requests += 1
            let request = line.requests.removeFirst()
            try answer(request.message, request.number, line)
        }
        if requests == Self.requestsPerPass { faults.append("the pass does not end") }
        if !isContinuous, !line.isClosed { faults.append("the pass waits") }
        if let failure = line.failure { faults.append(failure.message) }
        faults += taken.filter { $0.value > 1 }.map { "\($0.key) was sent \($0.value) times" }
    }

    private func announce(_ id: String, _ revisions: [String], sequence: Int, _ line: ReplayedPeer.Line)
        throws
    {
        let list: JSONValue = [[JSONValue(sequence), .string(id), .string(revisions[0])]]
        let reply = try line.ask("changes", [:], JSONText(canonical: list).description).get()
        guard try JSONElement(parsing: reply.body)[0]?.kind == .array else { return }
        var properties: MessageProperties = [
            "id": id, "rev": revisions[0], "sequence": "\(sequence)",
        ]
        if revisions.count > 1 { properties["history"] = revisions.dropFirst().joined(separator: ",") }
        try line.tell("rev", properties, #"{"n":\#(random.int(0...3))}"#)
    }

    private func answer(_ message: Message, _ number: UInt64, _ line: ReplayedPeer.Line) throws {
        switch message.profile {
        case "proposeChanges":
            var items: [JSONValue] = []
            for item in try JSONElement(parsing: message.body).items {
                items.append(verdict(on: item[0]?.string ?? ""))
            }
            // An empty list stands for zeros.
            let answer = JSONText(canonical: .array(habit == .takes ? [] : items))
            try line.puppet.reply(Message(body: answer.bytes), to: number)
        case "rev":
            let status = refusal()
            let name = "\(message.properties["id"] ?? "") \(message.properties["rev"] ?? "")"
            if status == 0 { taken[name, default: 0] += 1 }
            guard !message.noReply else { return }
            if status == 0 {
                try line.puppet.reply(Message(), to: number)
            } else {
                try line.puppet.reply(ReplyError("HTTP", status, "no"), to: number)
            }
        case "setCheckpoint": try line.puppet.reply(Message(["rev": "0-1"]), to: number)
        case "subChanges":
            try line.puppet.reply(Message(), to: number)
            try line.runUntilQuiet()
            try line.tell("changes", [:], "[]")
        default:
            guard !message.noReply else { return }
            try line.puppet.reply(ReplyError("HTTP", 404, "missing"), to: number)
        }
        try line.runUntilQuiet()
    }

    private func verdict(on id: String) -> JSONValue {
        let rev = lines[id]?.randomElement(using: &random)?.randomElement(using: &random)
        let conflicts: [JSONValue] = [
            409, ["status": 409, "rev": ""], ["status": 409, "rev": .string(rev ?? "1-ee")],
            ["status": 409, "rev": "3-ee"],
        ]
        switch habit {
        case .takes, .refuses: return 0
        case .wavers: return random.pick([0, 0, 304, 403] + conflicts)
        case .takesAndConflicts:
            let wasTaken = taken.keys.contains { $0.hasPrefix(id + " ") }
            return wasTaken ? random.pick(conflicts) : 0
        }
    }

    /// How a revision is refused; 0 if it is taken.
    private func refusal() -> Int {
        switch habit {
        case .takes, .takesAndConflicts: 0
        case .wavers: random.chance(0.7) ? 0 : random.pick([403, 404, 409, 422, 500])
        case .refuses: random.pick([403, 409, 409, 409, 422])
        }
    }
}
