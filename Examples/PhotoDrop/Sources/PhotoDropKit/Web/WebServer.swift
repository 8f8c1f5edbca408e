import Foundation
import Loveseat
import LoveseatWeb
import NIOCore
import PhotoDropCore

/// Where a page is served.
package enum WebPlace: Sendable {
    /// On 127.0.0.1, to browsers on this computer.
    case loopback
    /// By HTTPS at some addresses of this computer, which are as in URLs, the best first.
    case network(hosts: [String], identity: TLSIdentity)
}

/// Serves a page to browsers that have the token.
package final class WebServer: Sendable {
    /// How long ``stop()`` waits for replies that are being sent.
    private static let patience = Duration.seconds(2)

    private let server: LocalWebServer

    package init(route: @escaping LocalWebServer.Route) {
        var options = LocalWebServer.Options(program: "photodrop", cookieName: "photodrop")
        options.patience = Self.patience
        server = LocalWebServer(options) { request in
            do { return try await route(request) } catch let error as DropError {
                return .text(.badRequest, error.message)
            }
        }
    }

    /// Starts to listen, and returns the address of the page with its token.
    ///
    /// - Throws: `usage` if the port is in use, `disk` if the identity cannot be used.
    package func start(port: Int, at place: WebPlace = .loopback) async throws(DropError) -> String {
        do {
            switch place {
            case .loopback: return try await server.start(port: port)
            case .network(let hosts, let identity):
                return try await server.start(port: port, hosts: hosts, identity: identity)
            }
        } catch { throw Self.failure(error, port: port) }
    }

    private static func failure(_ error: any Error, port: Int) -> DropError {
        if let error = error as? LoveseatError {
            return DropError(.disk, "the page cannot be served by HTTPS: \(error.message)")
        }
        guard let number = (error as? IOError)?.errnoCode else {
            return DropError(.usage, "the page cannot be served on port \(port): \(error)")
        }
        let reason = number == EADDRINUSE ? "it is in use" : String(cString: strerror(number)).lowercased()
        return DropError(
            .usage,
            "the page cannot be served on port \(port), because \(reason): use another --web-port, or 0 for a free one"
        )
    }

    /// Stops listening, waits a little for replies that are being sent, and closes the connections.
    package func stop() async { await server.stop() }
}

extension WebReply {
    static let notFound = text(.notFound, "not found")
}
