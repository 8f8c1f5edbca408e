import Foundation
package import LoveseatCore
package import LoveseatDiscovery
import LoveseatModel
import LoveseatWeb
import NIOCore

/// A local web page that shows a database, its documents and its peers.
package final class Inspector: Sendable {
    private static let maximumBody = 24 << 20

    private let server: LocalWebServer
    private let routes: InspectorRoutes

    /// `database`: open for reading, so that writers never wait for a page. `search`: how to find peers.
    package init(
        _ database: Database,
        backend: any InspectorBackend,
        search: @escaping @Sendable () throws -> PeerBrowser
    ) {
        let routes = InspectorRoutes(database, backend, MeshFinder(search))
        self.routes = routes
        var options = LocalWebServer.Options(program: "`loveseat`", cookieName: "loveseat-inspector")
        options.maximumBody = Self.maximumBody
        options.allowsPrograms = true
        options.refusal = { .failure(.init(code: $0), $1) }
        server = LocalWebServer(options) { request in
            do { return try await routes.respond(request) } catch let error as LoveseatError {
                return .failure(error)
            }
        }
    }

    /// Listens on 127.0.0.1, and returns the page's address with its token.
    ///
    /// - Throws: `LoveseatError`: `EADDRINUSE` of the `posix` domain if the port is in use.
    package func start(port: Int = 0) async throws -> String {
        do { return try await server.start(port: port) } catch let error as IOError {
            throw LoveseatError(
                .init(Int(error.errnoCode), domain: .posix),
                "the inspector cannot listen on port \(port): \(String(cString: strerror(error.errnoCode)))"
            )
        }
    }

    /// Stops listening, and closes the connections.
    package func stop() async {
        routes.stop()
        await server.stop()
    }
}
