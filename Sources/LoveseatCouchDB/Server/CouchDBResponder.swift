package import HummingbirdCore
package import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatStorage
package import NIOCore

/// Answers the requests of CouchDB's wire without a port, for the simulator: a listener's server, without what comes before it.
package struct CouchDBResponder: Sendable {
    private let server: CouchDBServer

    /// Serves the collections of a database to everybody. `hostName`: the name by which clients reach it.
    package init(serving database: Database, hostName: String) throws {
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
        server = try CouchDBServer(
            databases: Databases(database: database, fixed: nil, allowsCreation: false),
            settings: settings,
            authenticator: ConnectionAuthenticator(nil, fingerprint: nil),
            needsLogin: false,
            urls: { [] },
            admit: { _ in }
        )
    }

    /// Answers a request of a connection.
    package func respond(to request: Request, on channel: any Channel) async -> Response {
        await server.response(to: request, channel, nil).response
    }
}
