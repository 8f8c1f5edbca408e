import Foundation
import HTTPTypes
import HummingbirdCore
import LoveseatModel
import LoveseatNetwork

/// The rules for web pages of other origins (protocol/couchdb.md §8).
struct CORS {
    private static let headers: Set = [
        "accept", "accept-language", "authorization", "content-length", "content-range", "content-type",
        "destination",
        "expires", "if-match", "if-none-match", "last-event-id", "last-modified", "origin", "pragma", "range",
        "referer", "x-couch-full-commit", "x-couch-id", "x-couch-persist", "x-couchdb-www-authenticate",
        "x-csrf-token", "x-http-method-override", "x-requested-with", "x-couchdb-vhost-path",
    ]
    private static let exposed =
        "content-type, cache-control, accept-ranges, etag, server, x-couch-request-id, x-couch-update-newrev, x-couchdb-body-time, content-range, location"

    private let policy: RequestPolicy

    init(_ policy: RequestPolicy) { self.policy = policy }

    /// The answer to a preflight that is allowed; nil for anything else.
    func preflight(_ exchange: Exchange) -> Reply? {
        guard exchange.method == "OPTIONS", let origin = exchange.header("Origin"),
            policy.allows(origin: origin),
            let method = exchange.header("Access-Control-Request-Method"),
            Endpoint.methodsForPages.contains(method)
        else { return nil }
        let asked = exchange.header("Access-Control-Request-Headers") ?? ""
        let names = asked.lowercased().split(separator: ",").map { $0.filter { $0 != " " } }
        guard names.allSatisfy({ Self.headers.contains($0) }) else { return nil }
        var reply = Reply(204)
        reply.headers = [
            (name: "Access-Control-Allow-Methods", value: Endpoint.methodsForPages.joined(separator: ", ")),
            (name: "Access-Control-Allow-Headers", value: asked),
            (name: "Access-Control-Max-Age", value: "600"),
        ]
        if exchange.header("Access-Control-Request-Private-Network") == "true" {
            reply.headers.append((name: "Access-Control-Allow-Private-Network", value: "true"))
        }
        return reply
    }

    /// Adds what every answer to an allowed origin carries. The origin is repeated, never `*`, since credentials are allowed.
    func mark(_ reply: inout Reply, _ request: Request) {
        if policy.origins.isEmpty { return }
        reply.headers.append((name: "Vary", value: "Origin"))
        // Clients other than browsers send no origin, and a page of another origin must not read the answer.
        guard let origin = request.headers[.origin], policy.allows(origin: origin) else { return }
        reply.headers += [
            (name: "Access-Control-Allow-Origin", value: origin),
            (name: "Access-Control-Allow-Credentials", value: "true"),
            (name: "Access-Control-Expose-Headers", value: Self.exposed),
        ]
    }
}
