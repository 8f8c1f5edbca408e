import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication

/// A gateway's database in a history, and the connections of its clients: how they are made, served and ended.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class GatewayTraffic: @unchecked Sendable {
    /// The parts of the history that the connections need, and what they report.
    struct Surroundings {
        let runtime: SimulatedRuntime
        /// Returns the seed of the next connection.
        let seed: () -> UInt64
        let trace: (String) -> Void
        /// Reports messages, for people; not a part of the trace.
        let detail: ((String) -> Void)?
        let onTaken: (GatewayLine.Pushed, GatewayClient) -> Void
        let onRefused: (GatewayLine.Pushed, ReplyError, GatewayClient) -> Void
        /// Called when a client has changed the database.
        let onChange: () -> Void
        let onEnd: (GatewayLink) -> Void
        let onProblem: (String) -> Void
    }

    /// The password of every user.
    static let password = "pw"

    let twin: GatewayTwin
    /// The plan that all connections begin with.
    let basis: GatewayLink.Plan
    private(set) var links: [GatewayLink] = []
    /// How many connections were made.
    private(set) var connections = 0
    /// The tasks that wait for the end of connections that fetch documents.
    private var fetches: [ObjectIdentifier: CheckedContinuation<Bool, Never>] = [:]
    private let name: String
    private var sequenceSeen = 0
    private let surroundings: Surroundings

    init(
        _ twin: GatewayTwin,
        database name: String,
        basis: GatewayLink.Plan,
        _ surroundings: Surroundings
    ) {
        (self.twin, self.name, self.basis, self.surroundings) = (twin, name, basis, surroundings)
        twin.onDrop = { [unowned self] _ in cutAll() }
    }

    var database: GatewayDatabase? { twin.databases[name] }

    func cutAll() { for link in links { link.cut() } }

    // MARK: Changes behind the clients' backs

    /// Writes over REST, on top of what is there, and returns the new revision. `body`: nil deletes the document. `user`: nil for an
    /// administrator.
    func edit(_ id: String, _ body: JSONObject?, by user: String? = nil, in path: String = "_default")
        throws(ReplyError) -> String?
    {
        let current = database?.currentRevision(of: id, in: path)
        return try twin.databases[name]?.edit(
            id,
            body ?? [:],
            isDeleted: body == nil,
            parent: current.flatMap { $0.isDeleted ? nil : $0.text },
            by: user,
            in: path
        )
    }

    /// Something may have changed at the gateway: continuous feeds look.
    func scheduleWork() { for link in links { link.scheduleWork() } }

    // MARK: Connections

    @discardableResult
    func open(_ client: GatewayClient, _ plan: GatewayLink.Plan) -> GatewayLink? {
        surroundings.trace("connect \(client.peer.index)")
        let seed = surroundings.seed()
        do {
            let upgrade = GatewayTwin.Upgrade(
                database: name,
                login: (client.user, Self.password),
                protocols: client.offers.map(\.rawValue)
            )
            let accepted = try twin.accept(upgrade)
            let link = try GatewayLink(
                client,
                accepted,
                plan: plan,
                runtime: surroundings.runtime,
                seed: seed,
                trace: surroundings.trace,
                fetch: { [unowned self] in await fetch($0, for: client) },
                onEnd: { [unowned self] in ended($0) }
            )
            if let detail = surroundings.detail {
                link.line.onMessage = { detail("\(client.peer.index) \($0)") }
            }
            link.line.onTaken = { [surroundings] in surroundings.onTaken($0, client) }
            link.line.onRefused = { [surroundings] in surroundings.onRefused($0, $1, client) }
            link.onWorked = { [unowned self] in worked($0) }
            connections += 1
            links.append(link)
            link.open(accepted.negotiated)
            return link
        } catch is GatewayTwin.UpgradeRefusal {
            surroundings.trace("refused")
        } catch {
            surroundings.onProblem("a connection could not be made: \(error)")
        }
        return nil
    }

    /// Pulls documents by their IDs over a connection of its own; returns whether it ended well.
    private func fetch(_ notice: FetchNotice, for client: GatewayClient) async -> Bool {
        var plan = basis
        plan.pushes = false
        plan.fetch = notice
        guard !Task.isCancelled, let link = open(client, plan) else { return false }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { fetches[ObjectIdentifier(link)] = $0 }
        } onCancel: {
            link.cut()
        }
    }

    private func worked(_ link: GatewayLink) {
        // Most work of a gateway changes nothing: it answers, and announces.
        guard let last = database?.lastSequence, last != sequenceSeen else { return }
        sequenceSeen = last
        surroundings.onChange()
        for other in links where other !== link { other.scheduleWork() }
    }

    private func ended(_ link: GatewayLink) {
        links.removeAll { $0 === link }
        fetches.removeValue(forKey: ObjectIdentifier(link))?.resume(returning: link.failure == nil)
        surroundings.onEnd(link)
    }
}
