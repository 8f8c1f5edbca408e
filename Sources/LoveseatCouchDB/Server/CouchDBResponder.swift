package import HummingbirdCore
package import LoveseatCore
import LoveseatModel
import LoveseatNetwork
package import LoveseatReplication
import LoveseatStorage
package import NIOCore

/// Answers the requests of CouchDB's wire without a port, for the simulator: a listener's server, without what comes before it.
package struct CouchDBResponder: Sendable {
    private let server: CouchDBServer

    /// Serves the collections of a database. `hostName`: the name by which clients reach it. `policy`: decides which documents each client
    /// may have, which is who it says; nil for everybody and everything. `runtime`: measures how long a client waits that guesses.
    package init(
        serving database: Database,
        hostName: String,
        policy: AccessPolicy? = nil,
        runtime: ReplicationRuntime
    ) throws {
        var settings = CouchDBServer.Settings(
            requests: RequestPolicy(
                origins: [],
                hostNames: [hostName],
                networkInterface: nil,
                identity: nil,
                authenticates: false,
                allowsOwnPages: true
            )
        )
        settings.isSecure = false
        let store = try database.store
        // As a listener does.
        if store.revisionLimit < 1_000 { try store.write { try $0.setRevisionLimit(1_000) } }
        settings.worksInPlace = true
        settings.policy = policy
        server = try CouchDBServer(
            databases: Databases(database: database, fixed: nil, allowsCreation: false),
            settings: settings,
            authenticator: ConnectionAuthenticator(
                policy == nil ? nil : Believing(),
                fingerprint: nil,
                runtime: runtime
            ),
            needsLogin: false,
            urls: { [] },
            admit: { _ in }
        )
    }

    /// Takes every client for the user that it names.
    private struct Believing: ListenerAuthenticator {
        let hasUnguessableSecrets = true

        func authenticate(_ client: ConnectingClient) async -> PeerIdentity? {
            client.credentials.map { PeerIdentity(username: $0.username) }
        }
    }

    /// Answers a request of a connection.
    package func respond(to request: Request, on channel: any Channel) async -> Response {
        await server.response(to: request, channel, nil).response
    }
}
