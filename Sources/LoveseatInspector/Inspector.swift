package import LoveseatCore
package import LoveseatDiscovery
import LoveseatModel

/// A local web page that shows a database, its documents and its peers.
package final class Inspector: Sendable {
    private let server: WebServer
    private let routes: InspectorRoutes

    /// `database`: open for reading, so that writers never wait for a page. `search`: how to find peers.
    package init(
        _ database: Database,
        backend: any InspectorBackend,
        search: @escaping @Sendable () throws -> PeerBrowser
    ) {
        let routes = InspectorRoutes(database, backend, MeshFinder(search))
        self.routes = routes
        server = WebServer { try await routes.respond($0) }
    }

    /// Listens on 127.0.0.1, and returns the page's address with its token.
    ///
    /// - Throws: `LoveseatError`: `EADDRINUSE` of the `posix` domain if the port is in use.
    package func start(port: Int = 0) async throws -> String { try await server.start(port: port) }

    /// Stops listening, and closes the connections.
    package func stop() async {
        routes.stop()
        await server.stop()
    }
}
