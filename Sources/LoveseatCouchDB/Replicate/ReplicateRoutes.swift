import Foundation
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatNetwork
import LoveseatStorage
import NIOHTTP1

/// `_replicate` (protocol/couchdb.md §4).
///
/// A client must not be able to make this host connect to others, so the only hosts that are connected to are those that the app allows.
/// The listener's own URLs mean its databases, and are not connected to either.
struct ReplicateResource: Resource {
    let server: CouchDBServer

    func replicate(_ exchange: Exchange) async throws -> Reply {
        // As CouchDB, which reads the body first.
        if exchange.isRead { throw CouchDBError.badRequest("Missing request body") }
        guard server.settings.policy == nil else {
            throw CouchDBError.forbidden("with an access policy, clients start no replications")
        }
        try Self.requireJSON(exchange)
        guard let body = try await json(exchange) else { throw CouchDBError.invalidJSON }
        let request = try ReplicateRequest(body)
        let names = (source: localName(of: request.source), target: localName(of: request.target))
        let id = request.id(server: server.uuid, names)
        let name = id + (request.isContinuous ? "+continuous" : "")
        if request.cancels {
            let name = request.replicationID ?? name
            guard await server.jobs.cancel(name) else { throw CouchDBError.missing }
            return .json(200, ["ok": true, "_local_id": .string(name)])
        }
        guard let source = request.source, let target = request.target else { throw CouchDBError.missing }
        try await requirePermission(source, names.source, exchange)
        try await requirePermission(target, names.target, exchange)
        if names.target != nil, server.settings.incomingFilter != nil {
            throw CouchDBError.forbidden(
                "this listener filters what clients write: replicate into another database"
            )
        }
        if names.source != nil, server.settings.isWriteOnly {
            throw CouchDBError.forbidden("this listener is write-only")
        }
        if names.target != nil, server.settings.isReadOnly {
            throw CouchDBError.forbidden("this listener is read-only")
        }
        let work = try await work(id, request, (source, names.source), (target, names.target))
        var task = ReplicationTask(
            id: id,
            source: names.source ?? source.name,
            target: names.target ?? target.name,
            isContinuous: request.isContinuous
        )
        task.user = exchange.peer.name
        task.started = ReplicatingClients.now
        let job = try server.jobs.start(name, task, work)
        if request.isContinuous { return .json(202, ["ok": true, "_local_id": .string(name)]) }
        // A client that disconnects does not end the replication.
        do { return .json(200, try await job.task.value) } catch is CancellationError {
            return .json(200, ["ok": "stopped"])
        }
    }

    /// The name of the database of this listener that is meant; nil for a database elsewhere.
    private func localName(of side: ReplicateRequest.Side?) -> String? {
        guard let side, side.url != nil else { return side?.name }
        return server.urls().contains(where: side.isAt) ? side.databaseName : nil
    }

    /// Refuses hosts that the app does not allow, and wrong credentials for this listener.
    private func requirePermission(
        _ side: ReplicateRequest.Side,
        _ localName: String?,
        _ exchange: Exchange
    ) async throws {
        if localName == nil, let url = side.url {
            guard server.settings.allowsReplicationWith?(url) ?? false else {
                throw CouchDBError.forbidden(
                    "this listener may not replicate with \(side.place): name a database of this listener, or allow the host where the listener is started"
                )
            }
        } else if server.authentication.isRequired, let authorization = side.authorization {
            guard server.settings.allowsBasic else {
                throw CouchDBError.forbidden(
                    "this listener accepts Digest only: leave out the credentials of \(side.name)"
                )
            }
            do {
                _ = try await server.authentication.identify(authorization, exchange.peer.address, nil)
            } catch {
                guard error.status == .unauthorized else { throw error }
                throw CouchDBError.wrongCredentials(side.name)
            }
        }
    }

    // MARK: Work

    private typealias Work = @Sendable (ReplicationJobs.Progress) async throws -> JSONValue

    private func work(
        _ id: String,
        _ request: ReplicateRequest,
        _ source: (side: ReplicateRequest.Side, name: String?),
        _ target: (side: ReplicateRequest.Side, name: String?)
    ) async throws -> Work {
        switch (source.name, target.name) {
        case (nil, nil):
            throw CouchDBError.notImplemented("the source or the target must be a database of this listener")
        case (let name?, nil):
            return try remoteWork(id, request, .push, try open(name, source.side), target.side)
        case (nil, let name?):
            if request.createsTarget { try await createTarget(name) }
            return try remoteWork(id, request, .pull, try open(name, target.side), source.side)
        case (let sourceName?, let targetName?):
            let source = try open(sourceName, source.side)
            if request.createsTarget { try await createTarget(targetName) }
            var replication = LocalReplication(
                id: id,
                source: source,
                target: try open(targetName, target.side)
            )
            replication.filter = try filter(of: request)
            replication.winnersOnly = request.winnersOnly
            replication.isContinuous = request.isContinuous
            if let since = request.since {
                replication.since = try source.position(of: since.string ?? "\(since.value)")
            }
            return { [replication] in try await replication.run($0) }
        }
    }

    private func remoteWork(
        _ id: String,
        _ request: ReplicateRequest,
        _ direction: ReplicatorType,
        _ local: Databases.Entry,
        _ remote: ReplicateRequest.Side
    ) throws -> Work {
        let replication = RemoteReplication(
            id: id,
            local: local,
            remote: remote,
            configuration: try configuration(request, direction, local, remote)
        )
        return { try await replication.run($0) }
    }

    private func open(_ name: String, _ side: ReplicateRequest.Side) throws -> Databases.Entry {
        do { return try server.databases.entry(name) } catch let error as CouchDBError
            where error == .noDatabase
        {
            throw CouchDBError.cannotOpen(side.name)
        }
    }

    private func createTarget(_ name: String) async throws {
        do { try await DatabaseResource(server).create(name) } catch let error as CouchDBError
            where error.status == 412
        {}
    }

    private func filter(of request: ReplicateRequest) throws -> ChangesRequest.Filter {
        if let ids = request.documentIDs { return .ids(DocumentSet(ids)) }
        if let selector = request.selector {
            do { return .selector(try Selector(parsing: selector.value)) } catch {
                throw CouchDBError.badRequest("Selector error: \(error.reason)")
            }
        }
        if request.filter == "_design" { return .design }
        guard request.filter == nil else {
            throw CouchDBError.notImplemented(
                "this listener stores design documents, and does not run their functions"
            )
        }
        return .none
    }

    /// The configuration of a replicator between one collection and exactly the database of a URL.
    private func configuration(
        _ request: ReplicateRequest,
        _ direction: ReplicatorType,
        _ local: Databases.Entry,
        _ remote: ReplicateRequest.Side
    ) throws -> ReplicatorConfiguration {
        guard let url = remote.url else { throw CouchDBError.missing }
        guard request.since == nil, !request.winnersOnly else {
            throw CouchDBError.notImplemented(
                "`since_seq` and `winning_revs_only` work between databases of this listener only"
            )
        }
        guard request.documentIDs != [] else { throw CouchDBError.badRequest("`doc_ids` is empty") }
        if direction == .push, request.filter != nil { _ = try filter(of: request) }
        var endpoint = CouchDBEndpoint(url: url)
        endpoint.isExact = true
        endpoint.allowsURL = server.settings.allowsReplicationWith
        endpoint.createsTarget = direction == .push && request.createsTarget
        endpoint.selector = request.selector.map { JSONText(canonical: $0.value) }
        endpoint.filter = request.filter
        endpoint.filterParameters = request.filterParameters
        var collection = CollectionConfiguration(collection: local.collection)
        collection.documentIDs = request.documentIDs
        var configuration = ReplicatorConfiguration(collections: [collection], target: endpoint)
        configuration.replicatorType = direction
        configuration.continuous = request.isContinuous
        configuration.authenticator = remote.credentials
        configuration.headers = remote.headers
        configuration.adoptsOtherUsersChanges = true
        configuration.isListed = false
        server.settings.prepareReplication?(url, &configuration)
        if !request.isContinuous { configuration.maxAttempts = 1 }
        return configuration
    }
}

extension CouchDBError {
    static func cannotOpen(_ name: String) -> Self { Self(500, "db_not_found", "could not open \(name)") }
    static func wrongCredentials(_ name: String) -> Self {
        Self(500, "replication_auth_error", "\(name) refused the user name and password")
    }
}
