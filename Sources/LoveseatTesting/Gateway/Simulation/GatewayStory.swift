private import Foundation
import LoveseatBLIPReplication
package import LoveseatModel
import LoveseatStorage

/// A story of some clients of a gateway and one document of small contents, told step by step. Each sync is a session of its own that runs
/// to its end.
package final class GatewayStory {
    private static let database = "db"
    private static let documentID = "a"

    private let clock = VirtualClock()
    private let runtime: SimulatedRuntime
    private let twin: GatewayTwin
    private let clients: [GatewayClient]
    private let folder: String
    private var number: UInt64 = 0
    /// The errors of sessions, in words.
    package private(set) var failures: [String] = []

    /// `versions`: the clients that offer versions first, by their numbers.
    ///
    /// - Throws: `LoveseatError` if a client's database fails.
    package init(clients count: Int, allowsConflicts: Bool = false, versions: Set<Int> = []) throws {
        runtime = SimulatedRuntime(clock, seed: 44)
        twin = GatewayTwin(seed: 44)
        folder =
            FileManager.default.temporaryDirectory.appending(path: "loveseat-story-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var database = GatewayDatabase()
        database.options.allowsConflicts = allowsConflicts
        database.putUser(
            "ana",
            GatewayDatabase.PrincipalSettings(channels: ["_default": ["a"]], password: "pw")
        )
        twin.databases[Self.database] = database
        let (folder, clock) = (folder, clock)
        clients = try (0..<count).map { index in
            let peer = try SimulatedPeer(
                index: index,
                collections: [.default],
                blobFolder: "\(folder)/\(index)",
                seed: UInt64(index + 1),
                clock: clock
            )
            let client = GatewayClient(peer, user: "ana")
            if versions.contains(index) { client.offers = ReplicationProtocol.versionsFirst }
            return client
        }
        for client in clients { client.peer.onDamage = { [unowned self] in failures.append($0) } }
    }

    // The system removes what stays in its folder for temporary files.
    deinit { try? FileManager.default.removeItem(atPath: folder) }

    private func body(_ number: Int) -> JSONValue { ["channels": ["a"], "n": JSONValue(number)] }

    /// A client saves a content, or deletes the document if there is none.
    package func save(_ client: Int, _ number: Int?) throws {
        let peer = clients[client].peer
        _ = try peer.store.write {
            try $0.save(
                Self.documentID,
                in: peer.collections[0],
                body: number.map { JSONText(canonical: body($0)) } ?? .emptyObject,
                isDeleted: number == nil,
                condition: .lastWriteWins
            )
        }
    }

    /// Somebody writes over REST, on top of what the gateway has.
    package func write(_ number: Int?) throws {
        let current = twin.databases[Self.database]?.currentRevision(of: Self.documentID)
        try twin.databases[Self.database]?.edit(
            Self.documentID,
            number.map { body($0).object ?? [:] } ?? [:],
            isDeleted: number == nil,
            parent: current.flatMap { $0.isDeleted ? nil : $0.text }
        )
    }

    /// An administrator adds a branch beside what the gateway has.
    package func branch(_ number: Int) throws {
        try twin.databases[Self.database]?.branch(Self.documentID, body(number).object ?? [:])
    }

    /// The gateway becomes one of version 4. The document has no version until somebody writes it.
    package func upgrade() throws {
        let wall = SimulatedWallClock(clock)
        try twin.databases[Self.database]?.beginVersions(by: SourceID(high: 4, low: 4)) {
            UInt64(clamping: wall.now) * 1_000_000
        }
    }

    /// The vector of the gateway's document; empty if it has none.
    package var vector: VersionVector {
        twin.databases[Self.database]?.vector(of: Self.documentID) ?? VersionVector()
    }

    /// A client pushes and pulls once.
    package func sync(_ client: Int) throws {
        number += 1
        let upgrade = GatewayTwin.Upgrade(
            database: Self.database,
            login: ("ana", "pw"),
            protocols: clients[client].offers.map(\.rawValue)
        )
        let accepted = try twin.accept(upgrade)
        var plan = GatewayLink.Plan()
        plan.link.latency = 0...1
        let link = try GatewayLink(
            clients[client],
            accepted,
            plan: plan,
            runtime: runtime,
            seed: number,
            trace: { _ in },
            fetch: { _ in false },
            onEnd: { [unowned self] link in
                if let failure = link.failure { failures.append("client \(client): \(failure)") }
            }
        )
        link.open(accepted.negotiated)
        for _ in 0..<100_000 {
            // The session has ended, and nothing is scheduled any more.
            guard clock.step() else { return }
        }
        failures.append("client \(client): the session does not end")
    }

    /// The content of a client's document; nil if there is none.
    package func shown(_ client: Int) -> Int? {
        guard let current = clients[client].peer.tree(Self.documentID, in: 0)?.current, !current.isDeleted
        else {
            return nil
        }
        return current.body.flatMap { JSONElement($0)["n"]?.int }
    }

    /// Returns a client's knowledge of the document, in words.
    package func knowledge(of client: Int) -> String {
        clients[client].peer.tree(Self.documentID, in: 0)?.description ?? "nothing"
    }

    /// The content of the gateway's document; nil if there is none.
    package var gateway: Int? {
        twin.databases[Self.database]?.content(of: Self.documentID, for: "ana")?.body["n"]?.int
    }
}
