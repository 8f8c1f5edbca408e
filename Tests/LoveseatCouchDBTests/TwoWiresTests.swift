import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// Random histories of databases, some of whose links speak CouchDB's wire and the others Couchbase's: all agree at the end.
///
/// `LOVESEAT_WIRES_SEEDS` is the number of histories; `LOVESEAT_WIRES_FIRST` is the first seed.
struct TwoWiresTests {
    @Test(arguments: PropertySeeds.of("WIRES", 40))
    func `peers of both wires have the same winners and leaves at the end`(
        _ seed: UInt64
    ) async throws {
        try await run(TwoWiresHistory(seed: seed), seed)
    }

    /// `LOVESEAT_FAULTS_SEEDS` and `LOVESEAT_FAULTS_FIRST` are those of this test.
    @Test(arguments: PropertySeeds.of("FAULTS", 40))
    func `requests and answers that are lost, cut, late, repeated or replaced lose nothing`(
        _ seed: UInt64
    ) async throws {
        try await run(TwoWiresHistory(seed: seed, isFaulty: true), seed)
    }

    private func run(_ history: consuming TwoWiresHistory, _ seed: UInt64) async throws {
        var history = history
        for _ in 0..<60 { try await history.step() }
        let rounds = try await history.settle()
        let unserved = try await history.unserved()
        #expect(unserved.isEmpty, "seed \(seed)")
        #expect(rounds < TwoWiresHistory.maximumRounds, "seed \(seed): the peers do not come to rest")
        let states = try history.states()
        for (index, state) in states.enumerated() {
            for (id, leaves) in states[0] where state[id] != leaves {
                Issue.record(
                    """
                    seed \(seed), "\(id)": peer 0 has \(leaves), peer \(index) has \(state[id] ?? [])
                    \(history.log.joined(separator: "\n"))
                    """
                )
            }
            #expect(Set(state.keys) == Set(states[0].keys), "seed \(seed)")
            #expect(try history.mesh.peers[index].database.store.check() == [], "seed \(seed)")
        }
        #expect(try history.differences() == [], "seed \(seed)\n\(history.log.joined(separator: "\n"))")
        await history.mesh.end()
    }
}

/// Databases, each with a listener, and links between them.
private struct TwoWiresHistory {
    static let maximumRounds = 12
    private static let documents = (0..<6).map { "d\($0)" }

    private var generator: SeededGenerator
    let mesh: PeerMesh
    private var links: [PeerMesh.Link] = []
    private(set) var log: [String] = []

    private var peers: [ActiveSide] { mesh.peers }

    /// What happens to the requests of CouchDB's links; empty if nothing does.
    private var networks: [FaultyTransport?] = []
    private let isFaulty: Bool

    init(seed: UInt64, isFaulty: Bool = false) async throws {
        generator = SeededGenerator(seed: seed)
        self.isFaulty = isFaulty
        let count = generator.int(3...4)
        mesh = try await PeerMesh(count)
        // A chain that reaches everybody, with both wires in it, and one link more.
        for index in 1..<count {
            let other = generator.int(0...index - 1)
            let isCouch = index == 1 || (index > 2 && generator.chance(0.5))
            let isForward = generator.chance(0.5)
            links.append(PeerMesh.link(index, other, isCouch: isCouch, isForward: isForward))
        }
        links.append(PeerMesh.Link(active: 0, passive: count - 1, isCouch: generator.chance(0.5)))
        log += links.map(\.description)
        networks = links.enumerated().map { index, link in
            isFaulty && link.isCouch ? FaultyTransport(seed: seed &* 64 &+ UInt64(index)) : nil
        }
    }

    /// One edit, conflict or replication.
    mutating func step() async throws {
        let index = generator.int(0...peers.count - 1)
        let id = generator.pick(Self.documents)
        switch generator.int(0...9) {
        case 0...4: try edit(id, at: index)
        case 5: try delete(id, at: index)
        case 6: try await branch(id, at: index)
        default:
            let index = generator.int(0...links.count - 1)
            let link = links[index]
            let type = networks[index] == nil ? .pushAndPull : generator.pick(Self.types)
            networks[index]?.setProbability(generator.pick([0, 0.05, 0.2, 0.5]))
            try await replicate(index, type)
            for peer in [link.active, link.passive] {
                let unserved = try await ListedRevisions(of: "peer\(peer)", at: mesh.listeners[peer])
                    .unserved()
                #expect(unserved.isEmpty, "\(log.joined(separator: "\n"))")
            }
        }
    }

    private mutating func edit(_ id: String, at index: Int) throws {
        let collection = try peers[index].collection
        var document = try collection.document(id: id) ?? Document(id: id)
        document["n"] = JSONValue(generator.int(0...1_000_000))
        if generator.chance(0.2) {
            document["blob"] = try peers[index].database.saveBlob(generator.bytes(40)).json
        }
        try collection.save(&document)
        log.append("\(index) edits \(id): \(document.revisionID?.text ?? "")")
    }

    private mutating func delete(_ id: String, at index: Int) throws {
        let collection = try peers[index].collection
        guard let document = try collection.document(id: id) else { return }
        try collection.delete(document)
        log.append("\(index) deletes \(id)")
    }

    /// A peer of CouchDB's wire, such as a PouchDB, brings a branch that begins at some revision of the document.
    private mutating func branch(_ id: String, at index: Int) async throws {
        let history = try peers[index].history(id)
        let base = history.isEmpty ? [] : Array(history.dropFirst(generator.int(0...history.count - 1)))
        let generation = (base.first.flatMap { RevisionID($0) }.map { Int($0.generation) } ?? 0) + 1
        let digest = generator.bytes(16).map { String(format: "%02x", $0) }.joined()
        let ids = [digest] + base.map { String($0.drop { $0 != "-" }.dropFirst()) }
        let isDeleted = generator.chance(0.25)
        let body: JSONValue = [
            "_revisions": ["start": JSONValue(generation), "ids": .array(ids.map { .string($0) })],
            "_deleted": .bool(isDeleted), "branch": JSONValue(generation),
        ]
        let client = RawClient(port: try #require(mesh.listeners[index].port))
        let answer = try await offPool {
            try client.send(
                "PUT",
                "/peer\(index)/\(id)?new_edits=false",
                [("Content-Type", "application/json")],
                body: JSONText(canonical: body).bytes
            )
        }
        #expect(answer.status == (isDeleted ? 200 : 201), "\(answer.text)")
        log.append(
            "\(index) gets \(id): \(generation)-\(digest)\(isDeleted ? " deleted" : "") over \(base.first ?? "nothing")"
        )
    }

    private static let types: [ReplicatorType] = [.pushAndPull, .pushAndPull, .push, .pull]

    private mutating func replicate(_ index: Int, _ type: ReplicatorType = .pushAndPull) async throws {
        let (link, network) = (links[index], networks[index])
        let configuration = try mesh.configuration(link, type, over: network)
        let sides = [peers[link.active], peers[link.passive]]
        let listed = try Self.documents.map { id in try sides.map { try leaves(id, of: $0) } }
        let pass = try await peers[link.active].replicate(configuration)
        let happened = network?.takeLog() ?? []
        log.append("\(link.active) > \(link.passive) \(network == nil ? "" : "\(type)")")
        log += happened.map { "    \($0)" }
        log += [pass.status.error].compactMap { $0 }.map { "    ended with \($0)" }
        log += pass.failed.map { "    \($0.key): \($0.value)" }
        if happened.isEmpty {
            #expect(pass.status.error == nil, "\(log.joined(separator: "\n"))")
            #expect(pass.failed.isEmpty, "\(log.joined(separator: "\n"))")
        }
        guard link.isCouch, pass.status.error == nil, pass.failed.isEmpty else { return }
        // What says that it is done is done. A leaf that is listed since this pull (decision 0009) is pushed by the next session, and one that
        // this push brought may be listed no more here.
        for (id, listed) in zip(Self.documents, listed) {
            let near = try leaves(id, of: sides[0]).filter(listed[0].contains)
            let far = try leaves(id, of: sides[1]).filter(listed[1].contains)
            var missing: [String] = []
            if type != .pull {
                missing += near.filter { [known = try sides[1].known(id)] in !known.contains($0) }
            }
            if type != .push {
                missing += far.filter { [known = try sides[0].known(id)] in !known.contains($0) }
            }
            guard !missing.isEmpty else { continue }
            let trees = try sides.map { try $0.tree(id) }
            Issue.record(
                "\(id): \(missing) did not come\n\(log.joined(separator: "\n"))\n\(trees.joined(separator: "\n"))"
            )
        }
    }

    /// The tombstone of a losing leaf is shown no more when that leaf has descendants; a peer that saw it before keeps it. With passes in
    /// both directions, and no failures, everybody sees it or nobody.
    private func leaves(_ id: String, of peer: ActiveSide) throws -> [String] {
        try peer.leaves(id, closing: !isFaulty)
    }

    /// Equal revisions whose contents differ.
    func differences() throws -> [String] {
        var contents: [String: Set<String>] = [:]
        for peer in peers {
            for id in Self.documents {
                for (revision, content) in try peer.contents(id) {
                    contents["\(id) \(revision)", default: []].insert(content)
                }
            }
        }
        return contents.filter { $0.value.count > 1 }.map { "\($0.key): \($0.value.sorted())" }.sorted()
    }

    /// Replicates over all links until nothing changes. Returns the number of rounds.
    mutating func settle() async throws -> Int {
        var before = try states()
        for round in 1..<Self.maximumRounds {
            for index in links.indices {
                networks[index]?.setProbability(0)
                try await replicate(index)
            }
            let now = try states()
            if now == before { return round }
            before = now
        }
        return Self.maximumRounds
    }

    func states() throws -> [[String: [String]]] {
        try mesh.states(of: Self.documents, closing: !isFaulty)
    }

    /// What a peer lists and does not serve, over either wire.
    func unserved() async throws -> [String] {
        var found: [String] = []
        for (index, listener) in mesh.listeners.enumerated() {
            found += try await ListedRevisions(of: "peer\(index)", at: listener).unserved()
            let newcomer = try ActiveSide("newcomer")
            var configuration = ReplicatorConfiguration(
                collections: [try newcomer.collection],
                target: DatabaseEndpoint(database: peers[index].database)
            )
            configuration.replicatorType = .pull
            let pass = try await newcomer.replicate(configuration)
            found += pass.failed.keys.map { "peer\(index) lists \($0), which does not come over BLIP" }
            for id in Self.documents {
                let (theirs, came) = (try peers[index].leaves(id).first, try newcomer.leaves(id).first)
                // A pull into an empty database leaves deleted documents out.
                guard came != theirs, theirs?.hasSuffix(" deleted") == false else { continue }
                found.append("peer\(index) has \(id) \(theirs ?? ""), \(came ?? "nothing") came over BLIP")
            }
        }
        return found
    }
}
