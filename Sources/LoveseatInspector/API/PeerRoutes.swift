import LoveseatCore
import LoveseatModel
import LoveseatWeb

/// `/api/peers`, `/api/pending` and `/api/mesh`.
extension InspectorRoutes {
    func peers(_ request: WebRequest) async throws -> WebReply {
        let number = try request.number("after", in: 0...Int.max, default: 0)
        let database = database
        let remotes = try await Reading.run { try PeerRecords(database).remotes(limit: 200) }
        if var report = try await backend.peers(after: number) {
            report["isServing"] = true
            report["remotes"] = .array(remotes.map { .string($0.withoutCredentials) })
            return .json(report)
        }
        let past = try await Reading.run { try PeerRecords(database).connections() }
        return .json([
            "isServing": false, "peers": [], "past": past ?? [], "rates": [], "events": [], "lastEvent": 0,
            "remotes": .array(remotes.map { .string($0.withoutCredentials) }),
        ])
    }

    /// Lists the documents that are not the same at a connected peer or a remote database, with the reasons; or explains one document.
    func pending(_ request: WebRequest) async throws -> WebReply {
        if let key = request.query["peer"] {
            guard let list = try await backend.pending(over: key) else {
                throw LoveseatError(.notFound, "no peer is connected: the database is not being served")
            }
            return .json(list)
        }
        let shown = try request.required("remote")
        let database = database
        let remote = try await Reading.run {
            try PeerRecords(database).remotes(limit: 10_000).first { $0.withoutCredentials == shown }
        }
        guard let remote else {
            throw LoveseatError(
                .notFound,
                "this database has not replicated with \(DocumentRow.cut(shown)), or it was the other side that connected"
            )
        }
        if let id = request.query["id"] {
            let collection = try await collection(request)
            let state = try await Reading.run {
                try PendingChanges(database).syncState(of: id, in: collection, at: remote)
            }
            return .json(["why": .string(state.name), "detail": .string(state.sentence)])
        }
        return .json(try await Reading.run { try Self.pending(at: remote, in: database) })
    }

    private static func pending(at remote: String, in database: Database) throws -> JSONValue {
        var list = PendingList()
        try PendingChanges(database).forEach(at: remote) { list.add($0) }
        var json = list.json
        json["remote"] = .string(remote.withoutCredentials)
        return json
    }

    func mesh() async throws -> WebReply {
        let (found, problem) = finder.found()
        // No process may serve the database: the picture then has no connections.
        let report = try? await backend.peers(after: .max)
        let database = database
        let id = try await Reading.run { try database.publicID }
        return .json(
            MeshPicture.json(name: database.name, ownID: id, found: found, report: report, problem: problem)
        )
    }
}
