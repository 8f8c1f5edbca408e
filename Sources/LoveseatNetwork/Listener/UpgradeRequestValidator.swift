import Foundation
package import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
package import NIOHTTP1

/// Validates the HTTP request of a client that asks a listener for a WebSocket. ``ConnectionAuthenticator`` checks credentials.
package struct UpgradeRequestValidator: Hashable, Sendable {
    package let databaseName: String

    /// The answer to a client that asks whether the database exists.
    package static let databaseText = "this is a Loveseat database"

    package init(databaseName: String) { self.databaseName = databaseName }

    /// A request that asks for a WebSocket.
    package struct WebSocketRequest: Hashable, Sendable {
        package let negotiated: ReplicationProtocol
        package let key: String

        package init(negotiated: ReplicationProtocol, key: String) {
            self.negotiated = negotiated
            self.key = key
        }
    }

    /// The kinds of valid requests.
    package enum Acceptance: Hashable, Sendable {
        case webSocket(WebSocketRequest)
        /// Asks whether the database exists, as a gateway does before it replicates.
        case database
    }

    private func names(_ parts: [String], _ rest: [String]) -> Bool {
        parts.elementsEqual([databaseName] + rest) { $0.isExactly($1) }
    }

    package func validate(_ head: HTTPRequestHead) throws(HTTPRefusal) -> Acceptance {
        let path = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        let parts = path.split(separator: "/").map { $0.removingPercentEncoding ?? "" }
        if names(parts, []), head.method == .GET { return .database }
        guard names(parts, ["_blipsync"]) else {
            throw HTTPRefusal(status: .notFound, reason: "not found: use /\(databaseName)/_blipsync")
        }
        guard head.method == .GET, UpgradeHeaders.hasToken("websocket", in: head.headers, "Upgrade"),
            UpgradeHeaders.hasToken("upgrade", in: head.headers, "Connection")
        else {
            throw HTTPRefusal(
                status: .upgradeRequired,
                reason: "only WebSockets are served here",
                headers: [["Upgrade", "websocket"], ["Connection", "Upgrade"]]
            )
        }
        guard head.headers.first(name: "Sec-WebSocket-Version") == "13" else {
            throw HTTPRefusal(
                status: .upgradeRequired,
                reason: "only version 13 of WebSockets is supported",
                headers: [["Sec-WebSocket-Version", "13"], ["Upgrade", "websocket"]]
            )
        }
        guard let key = head.headers.first(name: "Sec-WebSocket-Key"), Base64.decode(key)?.count == 16 else {
            throw HTTPRefusal(status: .badRequest, reason: "Sec-WebSocket-Key must be 16 bytes in Base64")
        }
        guard let negotiated = UpgradeHeaders.negotiate(head.headers) else {
            let ours = ReplicationProtocol.all.map(\.rawValue).joined(separator: ", ")
            throw HTTPRefusal(status: .badRequest, reason: "offer one of these protocols: \(ours)")
        }
        return .webSocket(WebSocketRequest(negotiated: negotiated, key: key))
    }
}
