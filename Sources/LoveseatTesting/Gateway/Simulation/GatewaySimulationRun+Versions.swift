import LoveseatBLIPReplication
import LoveseatModel
import LoveseatStorage

/// Histories in which the gateway becomes one of version 4, and some of its clients speak of versions.
extension GatewaySimulationRun {
    // MARK: Setting up

    /// Everybody may see everything. Some clients offer versions first, which they get as soon as the gateway has them.
    func setUpVersions() {
        var database = twin.databases[Self.database] ?? GatewayDatabase()
        database.options.keepsImplicitVersions = generator.chance(0.5)
        database.options.takesDeltas = generator.chance(0.3)
        for user in users {
            database.putUser(user, GatewayDatabase.PrincipalSettings(channels: [path: ["*"]]))
        }
        twin.databases[Self.database] = database
        let isFast = generator.chance(0.5)
        for (index, client) in clients.enumerated() {
            let speaksVersions = index == 0 || generator.chance(0.6)
            client.offers = speaksVersions ? ReplicationProtocol.versionsFirst : ReplicationProtocol.all
            // Versions that are more than two minutes ahead are refused.
            if isFast { client.peer.setClock(Int64(generator.int(-55_000...55_000))) }
        }
        if isFast { versions.wall.offset = Int64(generator.int(-55_000...55_000)) }
        if generator.chance(0.2) { upgrade() }
        trace("offers \(clients.map { $0.offers[0] })")
    }

    /// The gateway becomes one of version 4, which ends its connections. The documents that it has get none.
    func upgrade() {
        // In some histories it is one from the beginning.
        if versions.isUpgraded { return }
        trace("upgrade")
        versions.isUpgraded = true
        beginVersions()
        twin.restart()
    }

    /// The gateway gives versions from now on, under a new source.
    func beginVersions() {
        do throws(VersionError) {
            try twin.databases[Self.database]?.beginVersions(by: versions.newSource()) {
                [wall = versions.wall] in
                UInt64(clamping: wall.now) * 1_000_000
            }
        } catch { report.problems.append("the gateway cannot give versions: \(error)") }
    }

    /// A content that every user may write, into channels that all users have.
    func openBody() -> JSONValue {
        var body: JSONValue = ["n": JSONValue(generator.int(0...1_000_000))]
        body["channels"] = .array(channels().sorted().map { .string($0) })
        if generator.chance(0.2) {
            body["text"] = .string(String(repeating: "lorem ipsum ", count: generator.int(1...4_000)))
        }
        return body
    }

    // MARK: Names

    private var documents: [String: GatewayDocument] {
        twin.databases[Self.database]?.keyspaces[GatewayDatabase.keyspace(path)]?.documents ?? [:]
    }

    /// The name of the gateway's current revision; nil if it has none.
    func gatewayName(of id: String) -> RevisionName? {
        documents[id].flatMap { try? RevisionName($0.currentName) }
    }

    private func name(of id: RevisionID, in tree: RevisionTree?) -> RevisionName? {
        guard let tree else { return nil }
        let original = tree.original(id)
        return tree.versions.state(of: tree.contains(original) ? original : id).name
    }

    // MARK: Edits

    /// A client's user has saved a document.
    func noteEdit(of id: String, at client: GatewayClient, over before: RevisionTree?) {
        // The edit may have made nothing, such as a deletion of what is deleted.
        guard let tree = client.peer.tree(id, in: 0), let current = tree.current, let body = current.body,
            current.id != before?.current?.id, let made = name(of: current.id, in: tree)
        else { return }
        versions.oracle.edited(
            client.peer.index,
            id,
            made,
            isDeleted: current.isDeleted,
            JSONElement(body).value,
            on: before?.current.flatMap { name(of: $0.id, in: before) }
        )
    }

    /// Somebody has written a document over REST.
    func noteWrite(of id: String, isDeleted: Bool, _ body: JSONObject, over replaced: RevisionName?) {
        guard let document = documents[id], let made = gatewayName(of: id) else {
            return report.problems.append("what was written of \(id) is not there")
        }
        versions.oracle.edited(
            clients.count,
            id,
            made,
            isDeleted: isDeleted,
            .object(document.leaf?.body ?? body),
            on: replaced
        )
        noteTreeName(of: document, made)
    }

    /// The gateway has taken a revision, and may have given it other names.
    func noteNames(of pushed: GatewayLine.Pushed) {
        // A revision that the gateway knew, or that it does not keep, gets none.
        guard let document = documents[pushed.id], let taken = try? RevisionName(pushed.revision),
            pushed.revision == document.current || pushed.revision == document.vector.current?.text
        else { return }
        if let name = gatewayName(of: pushed.id) { versions.oracle.rename(pushed.id, taken, name) }
        noteTreeName(of: document, taken)
    }

    private func noteTreeName(of document: GatewayDocument, _ name: RevisionName) {
        // Every ID that the gateway makes is valid.
        guard let id = RevisionID(document.current) else { return }
        versions.oracle.rename(document.id, name, .revision(id))
    }

    // MARK: Checks

    /// Checks that a version has one content, at the gateway and at every client.
    func noteContents() {
        do {
            for client in clients {
                for (_, id) in try client.peer.drainChanges().documents {
                    guard let tree = client.peer.tree(id, in: 0) else { continue }
                    for (revision, vector) in tree.vectors.sorted(by: { $0.key < $1.key }) {
                        guard let node = tree.node(revision), let body = node.body else { continue }
                        let content = JSONElement(body).value
                        note(vector, of: id, isDeleted: node.isDeleted, content, at: client.peer.index)
                    }
                }
            }
        } catch { report.problems.append("a database cannot be read: \(error)") }
        if versions.sequenceNoted == twin.databases[Self.database]?.lastSequence { return }
        versions.sequenceNoted = twin.databases[Self.database]?.lastSequence
        for (id, document) in documents.sorted(by: { $0.key < $1.key }) {
            guard let body = document.leaf?.body else { continue }
            let isDeleted = document.isDeleted
            note(document.vector, of: id, isDeleted: isDeleted, .object(body), at: clients.count)
        }
    }

    private func note(
        _ vector: VersionVector,
        of id: String,
        isDeleted: Bool,
        _ body: JSONValue,
        at party: Int
    ) {
        // Versions that stand for revisions are abbreviations.
        guard let version = vector.current, version.source != .revisionTree else { return }
        let content = VersionContents.Content(isDeleted: isDeleted, body)
        if let problem = versions.contents.note(version, content, of: id, at: party) {
            report.problems.append(problem)
        }
    }

    /// In the end, the gateway and every client must hold the same, and that must be an edit that nobody who knew it has replaced.
    func compareWithEdits() {
        for id in versions.oracle.documents {
            let document = documents[id].flatMap { $0.isDeleted ? nil : $0 }
            let content = document?.leaf?.body.map { JSONValue.object($0) }
            for client in clients {
                let tree = client.peer.tree(id, in: 0)
                let current = tree?.current.flatMap { $0.isDeleted ? nil : $0 }
                if current?.body.map({ JSONElement($0).value }) == content, tree?.pending.isEmpty != false {
                    continue
                }
                report.problems.append("UNEQUAL \(id): client \(client.peer.index) and the gateway differ")
            }
            // A backup takes edits away.
            guard !simulation.restoresBackups, let finding = versions.oracle.problem(with: id, content) else {
                continue
            }
            report.problems.append(finding)
            if simulation.isVerbose { print(versions.oracle.account(of: id)) }
        }
    }
}
