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
        var history = try await TwoWiresHistory(seed: seed)
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
        }
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

    init(seed: UInt64) async throws {
        generator = SeededGenerator(seed: seed)
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
            let link = generator.pick(links)
            try await replicate(link)
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

    private mutating func replicate(_ link: PeerMesh.Link) async throws {
        let pass = try await peers[link.active].replicate(try mesh.configuration(link, .pushAndPull))
        #expect(pass.status.error == nil, "\(log.last ?? "")")
        #expect(pass.failed.isEmpty)
        log.append("\(link.active) > \(link.passive)")
    }

    /// Replicates over all links until nothing changes. Returns the number of rounds.
    mutating func settle() async throws -> Int {
        var before = try states()
        for round in 1..<Self.maximumRounds {
            for link in links { try await replicate(link) }
            let now = try states()
            if now == before { return round }
            before = now
        }
        return Self.maximumRounds
    }

    func states() throws -> [[String: [String]]] { try mesh.states(of: Self.documents) }

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
