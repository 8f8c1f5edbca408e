import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// One run.
///
/// @unchecked because everything of it runs on the thread that calls ``run()``.
final class GatewaySimulationRun: @unchecked Sendable {
    /// The maximum number of frames of a connection: far more than any of these histories needs.
    private static let frameBudget = 20_000
    private static let stepBudget = 1_000_000

    let simulation: GatewaySimulation
    var generator: SeededGenerator
    let clock = VirtualClock()
    private let runtime: SimulatedRuntime
    let twin: GatewayTwin
    private(set) var clients: [GatewayClient] = []
    private(set) var path = "_default"
    /// The contents that people write where contents repeat.
    private(set) var repeatedBodies: [JSONValue] = []
    private(set) lazy var traffic = makeTraffic()
    var report = GatewaySimulation.Report()
    private(set) var audit: GatewayAudit
    /// The state of a history in which the gateway gives versions.
    let versions: GatewayVersionWorld
    private(set) var isQuiescing = false
    private let folder = SimulationFolder("gateway")
    static let database = "db"

    init(_ simulation: GatewaySimulation) throws {
        self.simulation = simulation
        generator = SeededGenerator(seed: simulation.seed)
        runtime = SimulatedRuntime(clock, seed: simulation.seed ^ 0x7475_726E)
        twin = GatewayTwin(seed: generator.next())
        versions = GatewayVersionWorld(clock, seed: simulation.seed)
        audit = GatewayAudit(twin, database: Self.database, path: "_default", users: [])
    }

    func run() throws -> GatewaySimulation.Report {
        try setUp()
        for client in clients {
            client.peer.onDamage = { [unowned self] in report.problems.append($0) }
        }
        scheduleHistory()
        runUntilQuiet()
        try quiesce()
        report.connections = traffic.connections
        for client in clients { try client.peer.store.close() }
        return report
    }

    var users: [String] { audit.users }

    func trace(_ event: String) {
        if simulation.isVerbose { print(clock.now, event) }
        report.trace.addEvent(event)
    }

    // MARK: Setting up

    private func setUp() throws {
        try folder.create()
        path = generator.chance(0.3) ? "app.one" : "_default"
        let keyspace = GatewayDatabase.keyspace(path)
        var options = GatewayDatabase.Options()
        options.keepsOldBodies = generator.chance(0.5)
        var database = GatewayDatabase(collections: [keyspace: Self.syncFunction], options: options)
        database.putRole("staff", GatewayDatabase.PrincipalSettings(channels: [path: ["s"]]))
        let users = Array(["ana", "ben", "cat"].prefix(generator.int(2...3)))
        for user in users {
            let settings = GatewayDatabase.PrincipalSettings(
                channels: [path: channels()],
                password: GatewayTraffic.password
            )
            database.putUser(user, settings)
        }
        twin.databases[Self.database] = database
        audit = GatewayAudit(twin, database: Self.database, path: path, users: users)
        if simulation.repeatsContents { repeatedBodies = (0..<3).map { _ in newBody() } }
        report.clients = generator.int(2...5)
        let names = [path == "_default" ? CollectionName.default : CollectionName(path: path)].compactMap {
            $0
        }
        for index in 0..<report.clients {
            let peer = try SimulatedPeer(
                index: index,
                collections: names,
                blobFolder: "\(folder.path)/\(index)",
                seed: generator.next(),
                clock: clock
            )
            clients.append(
                GatewayClient(peer, user: index < users.count ? users[index] : generator.pick(users))
            )
        }
        if simulation.speaksVersions { setUpVersions() }
    }

    /// Every kind of verdict and grant.
    private static let syncFunction: SyncFunction = { call in
        let document = call.document
        if document["forbid"] == true { throw SyncRefusal.forbidden("no way") }
        if let owner = document["owner"] { try call.requireUser(owner) }
        if let need = document["need"] { try call.requireAccess(need) }
        if let grant = document["grant"] { call.access(grant["user"], grant["channels"]) }
        if let part = document["part"] { call.role(part["user"], part["role"]) }
        call.channel(document["channels"])
    }

    func channels() -> Set<String> {
        Set((0..<generator.int(1...3)).map { _ in generator.pick(["a", "b", "c"]) })
    }

    // MARK: The history

    private func scheduleHistory() {
        func at(_ last: Int, _ action: @escaping () -> Void) {
            clock.schedule(after: generator.int(0...last), action)
        }
        for _ in 0..<generator.int(10...max(10, simulation.edits)) {
            at(20_000) { [unowned self] in act() }
        }
        for _ in 0..<clients.count * generator.int(2...6) {
            at(18_000) { [unowned self] in connect(generator.pick(clients)) }
        }
        for _ in 0..<generator.int(0...3) { at(20_000) { [unowned self] in disturb() } }
        if simulation.speaksVersions { at(10_000) { [unowned self] in upgrade() } }
        if simulation.restoresBackups {
            for _ in 0..<generator.int(1...3) { at(16_000) { [unowned self] in backUp() } }
            for _ in 0..<generator.int(1...2) { at(20_000) { [unowned self] in restore() } }
        }
        // Continuous connections go on until somebody ends them.
        clock.schedule(after: 25_000) { [unowned self] in traffic.cutAll() }
    }

    private func act() {
        switch generator.int(0...9) {
        case 0...4:
            do { try editAtClient() } catch { report.problems.append("an edit failed: \(error)") }
        case 5...7: editOverREST()
        default: administer()
        }
        changed()
    }

    /// Something may have changed at the gateway: continuous feeds look.
    func changed() {
        audit.note()
        traffic.scheduleWork()
    }

    private func disturb() {
        switch generator.int(0...3) {
        case 0:
            trace("restart")
            twin.restart()
        case 1:
            trace("offline")
            twin.setOnline(false, Self.database)
            clock.schedule(after: generator.int(1...3_000)) { [unowned self] in
                twin.setOnline(true, Self.database)
            }
        case 2:
            let client = generator.pick(clients)
            trace("crash \(client.peer.index)")
            for link in traffic.links where link.client === client { link.crash() }
        default:
            trace("cut all")
            traffic.cutAll()
        }
    }

    private func backUp() {
        trace("back up")
        audit.backUp()
    }

    /// Everything since the backup is gone: documents, checkpoints, users' rights and the numbers of sequences.
    private func restore() {
        if audit.backups.isEmpty { return }
        trace("restore a backup")
        let backup = generator.pick(audit.backups)
        twin.restore(backup.database, to: Self.database)
        if versions.isUpgraded { beginVersions() }
        twin.setOnline(true, Self.database)
        audit.note(restored: backup)
    }

    // MARK: Connections

    private func makeTraffic() -> GatewayTraffic {
        var basis = GatewayLink.Plan()
        basis.autoPurges = !simulation.keepsWhatIsTakenAway
        let surroundings = GatewayTraffic.Surroundings(
            runtime: runtime,
            seed: { [unowned self] in generator.next() },
            trace: { [unowned self] in trace($0) },
            detail: simulation.isVerbose ? { [clock] in print(clock.now, $0) } : nil,
            onTaken: { [unowned self] in acceptedPush($0, from: $1) },
            onRefused: { [unowned self] in refusedPush($0, $1, from: $2) },
            onChange: { [unowned self] in audit.note() },
            onEnd: { [unowned self] in ended($0) },
            onProblem: { [unowned self] in report.problems.append($0) }
        )
        return GatewayTraffic(twin, database: Self.database, basis: basis, surroundings)
    }

    private func refusedPush(_ refused: GatewayLine.Pushed, _ error: ReplyError, from client: GatewayClient) {
        if refused.isDeleted, audit.isDeleted(refused.id) { client.deletedAlready.insert(refused.id) }
        // A client sends the document again after a conflict, and an empty body is not JSON.
        guard error.code != 409, var body = GatewaySession.parse(refused.body) else { return }
        body["_attachments"] = nil
        client.refused[refused.id, default: []].insert(JSONText(canonical: body))
    }

    private func acceptedPush(_ pushed: GatewayLine.Pushed, from client: GatewayClient) {
        trace("gateway takes \(pushed.id) \(pushed.revision)")
        if simulation.speaksVersions { noteNames(of: pushed) }
        report.revisionsTaken += 1
        if audit.hasHad(pushed.revision, of: pushed.id) { audit.saved(pushed.id, by: client.user) }
        if let body = GatewaySession.parse(pushed.body).map({ JSONText(canonical: $0) }) {
            client.refused[pushed.id]?.remove(body)
        }
        if !pushed.isDeleted || isDecided(pushed, by: client) { return }
        if simulation.isVerbose, let tree = client.peer.tree(pushed.id, in: 0) {
            print("the client knows\n\(tree.description)")
        }
        report.problems.append(
            "INVENTED client \(client.peer.index) deletes \(pushed.id) \(pushed.revision), which nobody did there"
        )
    }

    private func ended(_ link: GatewayLink) {
        if simulation.isVerbose { printTrees(of: link.client) }
        report.longestConnection = max(report.longestConnection, link.frames)
        if link.frames > Self.frameBudget {
            report.problems.append("ENDLESS client \(link.client.peer.index): \(link.frames) frames")
        }
        for text in link.line.session.misunderstood {
            report.problems.append("MISUNDERSTOOD client \(link.client.peer.index): \(text)")
        }
        if let failure = link.failure {
            report.problems.append("client \(link.client.peer.index): a session failed: \(failure)")
        }
    }

    /// Prints what a client knows of each document that has more than one line.
    private func printTrees(of client: GatewayClient) {
        for number in 0...7 {
            guard let tree = client.peer.tree("d\(number)", in: 0), !tree.isLine else { continue }
            for line in tree.description.split(separator: "\n") {
                print("  client", client.peer.index, "d\(number):", line)
            }
        }
    }

    // MARK: The end

    private func runUntilQuiet() {
        let start = clock.steps
        while clock.step() {
            checkLists()
            if simulation.speaksVersions { noteContents() }
            guard clock.steps - start < Self.stepBudget else {
                report.problems.append("ENDLESS: \(Self.stepBudget) events and more to come")
                return
            }
        }
    }

    /// Checks that every way of fetching serves the leaves that a feed lists.
    private func checkLists() {
        if !report.problems.isEmpty { return }
        do { for client in clients { report.problems += try client.peer.newlyUnserved() } } catch {
            report.problems.append("the leaves of a database cannot be read: \(error)")
        }
    }

    /// Every client syncs over a good link, until a whole round changes nothing.
    private func quiesce() throws {
        isQuiescing = true
        twin.setOnline(true, Self.database)
        traffic.cutAll()
        runUntilQuiet()
        var rounds = 0
        while !report.problems.contains(where: { $0.hasPrefix("ENDLESS") }) {
            let before = (
                twin.databases[Self.database]?.lastSequence, try clients.map { try $0.peer.state(of: 0) }
            )
            for client in clients {
                var plan = traffic.basis
                plan.link.latency = 0...1
                traffic.open(client, plan)
                runUntilQuiet()
                for link in traffic.links {
                    report.problems.append("client \(client.peer.index): the last sync does not end")
                    link.cut()
                }
            }
            rounds += 1
            let after = (
                twin.databases[Self.database]?.lastSequence, try clients.map { try $0.peer.state(of: 0) }
            )
            if before.0 == after.0, before.1 == after.1, rounds > 1 { break }
            if rounds > 3 * clients.count + 5 {
                report.problems.append("ENDLESS: no rest after \(rounds) rounds")
                break
            }
        }
        for client in clients {
            report.problems += try audit.audit(client)
            report.problems += try client.peer.store.check().map { "client \(client.peer.index): \($0)" }
        }
        if simulation.speaksVersions { compareWithEdits() }
    }
}
