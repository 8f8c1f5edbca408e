import LoveseatBLIPReplication
package import LoveseatReplication
package import LoveseatStorage

/// A request to an endpoint: to connect, and to replicate over that connection.
package struct ReplicationRequest: Sendable {
    /// The work of a replication, for one connection.
    package struct Work {
        package let plan: ActivePlan
        package let store: DocumentStore
        package let replicas: DatabaseReplicas
        /// The collections whose changes the session is told of.
        package let observed: [CollectionHandle]
        package let hooks: ReplicationHooks

        package init(
            plan: ActivePlan,
            store: DocumentStore,
            replicas: DatabaseReplicas,
            observed: [CollectionHandle],
            hooks: ReplicationHooks
        ) {
            self.plan = plan
            self.store = store
            self.replicas = replicas
            self.observed = observed
            self.hooks = hooks
        }
    }

    /// How to connect.
    package let options: ConnectionOptions
    package let runtime: ReplicationRuntime
    /// From 0, no compression, to 9.
    var compressionLevel: Int
    var allowsDeltas: Bool
    /// Records another name for the peer, under which checkpoints and marks are kept from now on, even if the peer is found at another
    /// address. Call it before ``begin``. Throws `LoveseatError`, as ``begin`` does.
    package let recordName: @Sendable (_ name: String) throws -> Void
    /// Called when the peer has accepted the connection, and with it the user.
    package let begin: @Sendable () throws -> sending Work

    package init(
        options: ConnectionOptions,
        runtime: ReplicationRuntime,
        compressionLevel: Int = 0,
        allowsDeltas: Bool = false,
        recordName: @escaping @Sendable (_ name: String) throws -> Void,
        begin: @escaping @Sendable () throws -> sending Work
    ) {
        self.options = options
        self.runtime = runtime
        self.compressionLevel = compressionLevel
        self.allowsDeltas = allowsDeltas
        self.recordName = recordName
        self.begin = begin
    }
}

/// An endpoint with which Couchbase's replication protocol is spoken over a channel.
package protocol BLIPEndpoint: PeerEndpoint {
    /// Connects to the peer.
    ///
    /// - Throws: ``LoveseatError``, or `CancellationError` when the task is cancelled.
    func connect(_ options: ConnectionOptions) async throws -> PeerConnection
}

extension BLIPEndpoint {
    package func replicate(with request: ReplicationRequest) async throws -> any Replication {
        try await replicate(over: connect(request.options), request)
    }

    /// Returns a replication over a connection; closes it if that fails.
    func replicate(over connection: PeerConnection, _ request: ReplicationRequest) async throws
        -> any Replication
    {
        do {
            let work = try request.begin()
            var plan = work.plan
            plan.usesDeltas = request.allowsDeltas
            return ReplicationDriver(
                session: ReplicationSession(active: plan, replicas: work.replicas),
                store: work.store,
                observed: work.observed,
                connection: connection,
                runtime: request.runtime,
                compressionLevel: request.compressionLevel,
                hooks: work.hooks
            )
        } catch {
            await connection.channel.close(code: 1001, reason: "")
            throw error
        }
    }
}
