import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatModel
import LoveseatTesting
import Synchronization
import Testing

/// Verdicts that contradict each other, by resolvers and by people.
///
/// `LOVESEAT_VERDICT_SEEDS` is the number of random histories; `LOVESEAT_VERDICT_FIRST` is the first seed.
struct VerdictTests {
    @Test(arguments: PropertySeeds.of("VERDICT", 40))
    func `whatever resolvers and people decide, a document that nobody deleted is there, and all runs end`(
        _ seed: UInt64
    ) async throws {
        var history = try await VerdictHistory(seed: seed)
        for _ in 0..<50 where !Task.isCancelled {
            try await history.step()
            let lost = try history.lost(everywhere: true)
            guard lost.isEmpty else {
                Issue.record("seed \(seed): nobody has \(lost)\n\(history.log.joined(separator: "\n"))")
                break
            }
        }
        let rounds = try await history.settle()
        #expect(rounds < VerdictHistory.maximumRounds, "seed \(seed): the peers do not come to rest")
        let lost = try history.lost(everywhere: false)
        if !lost.isEmpty {
            Issue.record(
                "seed \(seed): somebody sees \(lost) deleted\n\(history.log.joined(separator: "\n"))"
            )
        }
        await history.mesh.end()
    }

    @Test(arguments: ["local", "remote"], [true, false])
    func
        `two devices whose resolvers choose opposite versions agree with their hub after one has seen the other's verdict`(
            _ rule: String,
            _ isCouch: Bool
        ) async throws
    {
        let (devices, hub) = (try (0..<2).map { try ActiveSide("device\($0)") }, try await PassiveSide())
        for (index, device) in devices.enumerated() {
            for id in 0..<6 { try device.save("d\(id)", ["by": JSONValue(index)]) }
        }
        for type in [.push, .pull] + [ReplicatorType](repeating: .pushAndPull, count: 5) {
            for device in devices {
                let pass = try await device.replicate(
                    try device.configuration(with: hub, isCouch, type, resolver(rule))
                )
                // A database at Couchbase's wire refuses a push that does not descend from what it has.
                let refused =
                    type == .push && !isCouch ? pass.failed.filter { $0.value.code == .httpConflict } : [:]
                #expect(pass.status.error == nil)
                #expect(pass.failed.count == refused.count)
            }
        }
        let held = try (devices.map { try $0.collection } + [hub.database.defaultCollection()]).map { place in
            try (0..<6).map { try place.document(id: "d\($0)")?["by"]?.int }
        }
        #expect(!held[0].contains(nil))
        #expect(Set(held).count == 1)
    }

    @Test(arguments: ["local", "remote"], [true, false])
    func `resolvers that go on disagreeing are stopped on both sides, with all versions`(
        _ rule: String,
        _ isCouch: Bool
    ) async throws {
        let (devices, hub) = (try (0..<2).map { try ActiveSide("device\($0)") }, try await PassiveSide())
        for (index, device) in devices.enumerated() { try device.save("d", ["by": JSONValue(index)]) }
        var errors: [[LoveseatError]] = [[], []]
        var rounds = 0
        // Each decides before it can see what the other has decided.
        while errors.contains(where: \.isEmpty), rounds < 12 {
            for type in [ReplicatorType.push, .pull] {
                for (index, device) in devices.enumerated() {
                    let pass = try await device.replicate(
                        try device.configuration(with: hub, isCouch, type, resolver(rule))
                    )
                    errors[index] += pass.failed.values
                }
            }
            rounds += 1
        }
        let contents = try devices.map { device in
            let collection = try device.collection
            let versions =
                try [collection.document(id: "d")].compactMap { $0 } + collection.conflicts(of: "d")
            return Set(versions.compactMap { $0["by"]?.int })
        }
        let places = try (devices.map { try $0.collection } + [hub.database.defaultCollection()])
        #expect(try places.allSatisfy { try $0.document(id: "d") != nil })
        if isCouch {
            #expect(contents == [[0, 1], [0, 1]])
            #expect(errors.allSatisfy { !$0.isEmpty })
            #expect(errors.joined().allSatisfy { $0.code == .conflict && $0.message.contains("came back") })
        } else {
            // The hub decides by its own rule what it shows, so one of the two sees the other's verdict.
            #expect(contents.allSatisfy { !$0.isEmpty })
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["local", "remote"], [true, false])
    func
        `two databases that resolve every conflict at the same time, each in its own favour, end`(
            _ rule: String,
            _ isCouch: Bool
        ) async throws
    {
        let mesh = try await PeerMesh(2)
        for (index, peer) in mesh.peers.enumerated() { try peer.save("d", ["by": JSONValue(index)]) }
        var errors: [Set<String>] = [[], []]
        for _ in 0..<12 where errors.contains(where: \.isEmpty) {
            // Neither decides before the other has pulled.
            let meeting = Meeting(of: 2)
            let passes = try await withThrowingTaskGroup(of: (Int, ActiveSide.Pass).self) { group in
                for active in 0..<2 {
                    let link = PeerMesh.Link(active: active, passive: 1 - active, isCouch: isCouch)
                    var configuration = try mesh.configuration(link, .pull)
                    configuration.collections[0].conflictResolver = ConflictResolver.custom {
                        await meeting.arrive()
                        return rule == "local"
                            ? $0.localDocument ?? $0.remoteDocument : $0.remoteDocument ?? $0.localDocument
                    }
                    let ready = configuration
                    group.addTask {
                        let pass = try await mesh.peers[active].replicate(ready)
                        await meeting.arrive(forGood: true)
                        return (active, pass)
                    }
                }
                var passes: [(Int, ActiveSide.Pass)] = []
                for try await pass in group { passes.append(pass) }
                return passes
            }
            for (index, pass) in passes {
                #expect(pass.status.error == nil)
                errors[index].formUnion(pass.failed.values.map { "\($0.code): \($0.message)" })
            }
        }
        for (index, peer) in mesh.peers.enumerated() {
            let collection = try peer.collection
            let current = try collection.document(id: "d")
            let versions = try [current].compactMap { $0 } + collection.conflicts(of: "d")
            #expect(current != nil)
            // Over CouchDB's wire the pulls decide one after the other: then one verdict stands.
            if isCouch, errors[index].isEmpty {
                #expect(try current?["by"] == mesh.peers[1 - index].collection.document(id: "d")?["by"])
                continue
            }
            #expect(Set(versions.compactMap { $0["by"]?.int }) == [0, 1], "peer \(index)")
            #expect(!errors[index].isEmpty)
            #expect(errors[index].allSatisfy { $0.contains("came back 4 times") })
        }
        await mesh.end()
    }

    private func resolver(_ rule: String) -> any ConflictResolverProtocol {
        ConflictResolver.custom {
            rule == "local" ? $0.localDocument ?? $0.remoteDocument : $0.remoteDocument ?? $0.localDocument
        }
    }
}

extension ActiveSide {
    fileprivate func configuration(
        with hub: PassiveSide,
        _ isCouch: Bool,
        _ type: ReplicatorType,
        _ resolver: any ConflictResolverProtocol
    ) throws -> ReplicatorConfiguration {
        var configuration =
            isCouch
            ? try configuration(CouchDBEndpoint(url: hub.url()), type)
            : ReplicatorConfiguration(
                collections: [try collection],
                target: DatabaseEndpoint(database: hub.database)
            )
        configuration.replicatorType = type
        configuration.collections[0].conflictResolver = resolver
        return configuration
    }
}

/// A place where each of several tasks waits until all have come.
private actor Meeting {
    private var missing: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(of count: Int) { missing = count }

    /// `forGood`: whether nobody has to wait for the others.
    func arrive(forGood: Bool = false) async {
        missing = forGood ? 0 : missing - 1
        guard missing > 0 else {
            for other in waiting { other.resume() }
            waiting = []
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }
}

/// Two to five databases, each with a listener and a resolver of its own, links of both wires between them, and people.
private struct VerdictHistory {
    static let maximumRounds = 60
    /// Nobody deletes those before the last.
    private static let documents = (0..<4).map { "d\($0)" }

    private enum Rule: CaseIterable, Sendable { case local, remote, newest, merge, random, nothing }

    private var generator: SeededGenerator
    let mesh: PeerMesh
    private var rules: [Rule] = []
    private var links: [PeerMesh.Link] = []
    private var made: Set<String> = []
    private let chances: Chances
    private(set) var log: [String] = []

    private var peers: [ActiveSide] { mesh.peers }

    private final class Chances: Sendable {
        private let generator: Mutex<SeededGenerator>
        init(seed: UInt64) { generator = Mutex(SeededGenerator(seed: seed)) }
        func next() -> Bool { generator.withLock { $0.chance(0.5) } }
    }

    init(seed: UInt64) async throws {
        generator = SeededGenerator(seed: seed)
        chances = Chances(seed: seed &+ 1)
        let count = generator.int(2...5)
        mesh = try await PeerMesh(count)
        for index in 0..<count {
            rules.append(generator.pick(Rule.allCases))
            log.append("peer \(index): \(rules[index])")
        }
        for index in 1..<count {
            let other = generator.int(0...index - 1)
            let isForward = generator.chance(0.5)
            links.append(
                PeerMesh.link(index, other, isCouch: generator.chance(0.6), isForward: isForward)
            )
        }
        let last = count - 1
        links.append(PeerMesh.Link(active: 0, passive: last, isCouch: generator.chance(0.5)))
        links.append(PeerMesh.Link(active: last, passive: 0, isCouch: generator.chance(0.5)))
        log += links.map(\.description)
    }

    mutating func step() async throws {
        let index = generator.int(0...peers.count - 1)
        let id = generator.pick(Self.documents)
        switch generator.int(0...11) {
        case 0...3: try edit(id, at: index)
        case 4: try delete(index)
        case 5...6: try decide(id, at: index)
        case 7:
            // All see the same, and decide before they see each other's decisions.
            for link in links { try await replicate(link, .pull) }
            for link in links { try await replicate(link, .push) }
        default: try await replicate(generator.pick(links), generator.pick([.push, .pull, .pushAndPull]))
        }
    }

    private mutating func edit(_ id: String, at index: Int) throws {
        let collection = try peers[index].collection
        var document = try collection.document(id: id) ?? Document(id: id)
        // Few values, so that two peers often make the same revision.
        document["n"] = JSONValue(generator.int(0...3))
        try collection.save(&document)
        made.insert(id)
        log.append("\(index) edits \(id): \(document.revisionID?.text ?? "")")
    }

    private mutating func delete(_ index: Int) throws {
        let collection = try peers[index].collection
        let id = Self.documents[Self.documents.count - 1]
        guard let document = try collection.document(id: id) else { return }
        try collection.delete(document)
        log.append("\(index) deletes \(id)")
    }

    /// A person ends a conflict.
    private mutating func decide(_ id: String, at index: Int) throws {
        let collection = try peers[index].collection
        let conflicts = try collection.conflicts(of: id)
        guard !conflicts.isEmpty else { return }
        let versions = try ([collection.document(id: id)].compactMap { $0 } + conflicts)
            .compactMap(\.revisionID)
        let kept = generator.pick(versions)
        let result = try collection.resolveConflicts(of: id, keeping: kept)
        log.append("\(index) decides \(id): \(kept) of \(versions), now \(result)")
    }

    private mutating func replicate(_ link: PeerMesh.Link, _ type: ReplicatorType) async throws {
        var configuration = try mesh.configuration(link, type)
        configuration.collections[0].conflictResolver = resolver(rules[link.active])
        let pass = try await peers[link.active].replicate(configuration)
        // A push without a pull is refused at Couchbase's wire if it descends from something else.
        let expected: Set<LoveseatError.Code> = link.isCouch ? [.conflict] : [.conflict, .httpConflict]
        let isFine = pass.status.error == nil && pass.failed.values.allSatisfy { expected.contains($0.code) }
        #expect(isFine, "\(log.last ?? ""): \(pass.status.error.map { "\($0)" } ?? "") \(pass.failed)")
        log.append("\(link.active) > \(link.passive) \(type) \(pass.failed.keys.sorted())")
    }

    private func resolver(_ rule: Rule) -> any ConflictResolverProtocol {
        let (chances, deletable) = (chances, Self.documents[Self.documents.count - 1])
        return ConflictResolver.custom { conflict in
            guard let local = conflict.localDocument, let remote = conflict.remoteDocument else {
                return conflict.documentID == deletable
                    ? nil : conflict.localDocument ?? conflict.remoteDocument
            }
            switch rule {
            case .local: return local
            case .remote: return remote
            case .newest:
                return (local.revisionID?.text ?? "") > (remote.revisionID?.text ?? "") ? local : remote
            case .merge:
                var merged = Document(id: conflict.documentID)
                merged["n"] = JSONValue(((local["n"]?.int ?? 0) + (remote["n"]?.int ?? 0)) % 4)
                return merged
            case .random: return chances.next() ? local : remote
            case .nothing: return conflict.documentID == deletable ? nil : chances.next() ? remote : local
            }
        }
    }

    /// Replicates over all links until nothing changes. Returns the number of rounds.
    mutating func settle() async throws -> Int {
        var before = try states()
        for round in 1..<Self.maximumRounds {
            for link in links { try await replicate(link, .pushAndPull) }
            let now = try states()
            if now == before { return round }
            before = now
        }
        return Self.maximumRounds
    }

    /// The documents that were made, that nobody may have deleted, and that nobody has, or of which somebody sees only the deletion.
    func lost(everywhere: Bool) throws -> [String] {
        try made.subtracting(Self.documents.suffix(1)).sorted().filter { id in
            let live = try peers.map { try $0.collection.document(id: id) != nil }
            let known = try peers.map { try !$0.leaves(id).isEmpty }
            return everywhere
                ? !live.contains(true) : zip(live, known).contains { isLive, isKnown in isKnown && !isLive }
        }
    }

    private func states() throws -> [[String: [String]]] { try mesh.states(of: Self.documents) }
}
