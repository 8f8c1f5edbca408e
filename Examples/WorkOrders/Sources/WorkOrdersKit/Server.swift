import Foundation
import Hummingbird
import Logging
import Loveseat

/// What a server is started with.
package struct ServerOptions: Sendable {
    /// Where the database and the listener's key are.
    package var folder: URL
    /// What clients of the API send as `Authorization: Bearer TOKEN`.
    package var token: String
    /// The port of the API; 0 for a free one. It is served on the loopback interface: put a web server with TLS in front.
    package var apiPort = 8_080
    /// The port to which devices connect; 0 for a free one.
    package var syncPort: UInt16 = 55_990
    /// The network interface or address on which devices connect; nil for all.
    package var syncInterface: String?

    package init(folder: URL, token: String) { (self.folder, self.token) = (folder, token) }
}

/// The whole server: run it with `runService()`, which shuts it down in good order at SIGTERM and SIGINT.
package func makeServer(
    _ options: ServerOptions,
    metrics: PrometheusMetrics,
    logger: Logger
) async throws -> Application<RouterResponder<BasicRequestContext>> {
    let store = try await OrderStore.open(folder: options.folder)
    let sync = SyncService(
        store,
        port: options.syncPort,
        interface: options.syncInterface,
        identities: FileIdentityStore(folder: options.folder.appending(path: "identities")),
        logger: logger
    )
    let maintenance = Maintenance(store, logger: logger)
    let api = API(store: store, sync: sync, maintenance: maintenance, metrics: metrics, token: options.token)
    var server = Application(
        router: api.router(),
        configuration: .init(address: .hostname("127.0.0.1", port: options.apiPort)),
        // They end in the opposite order: the database last.
        services: [
            DatabaseCloser(database: store.database), sync, Confirmations(store, logger: logger), maintenance,
        ],
        onServerRunning: { channel in
            logger.info("the API is at http://127.0.0.1:\(channel.localAddress?.port ?? 0)")
        },
        logger: logger
    )
    server.beforeServerStarts { try await sync.start() }
    return server
}
