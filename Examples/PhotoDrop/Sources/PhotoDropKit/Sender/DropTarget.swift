import Foundation
import Loveseat
import LoveseatCouchDB
import PhotoDropCore

/// The receiver that photos are sent to.
package struct DropTarget: Sendable {
    let endpoint: any Endpoint
    let credentials: BasicAuthenticator
    /// The whole fingerprint of the receiver's certificate; nil without encryption.
    let fingerprint: String?
    /// The receiver's host and port, for people.
    let address: String

    /// Finds the receiver that showed a code.
    ///
    /// - Throws: `unreachable` or `refused`.
    package static func find(_ code: DropCode) async throws(DropError) -> DropTarget {
        let found = try await ReceiverProbe.find(code)
        return DropTarget(
            endpoint: URLEndpoint(url: found.url),
            credentials: BasicAuthenticator(username: code.username, password: code.secret),
            fingerprint: found.fingerprint,
            address: address(found.url)
        )
    }

    /// The receiver of a code without encryption, which speaks CouchDB's protocol.
    package init(_ code: LegacyCode) {
        self.init(
            endpoint: CouchDBEndpoint(url: code.url),
            credentials: BasicAuthenticator(username: code.username, password: code.password),
            fingerprint: nil,
            address: Self.address(code.url)
        )
    }

    private init(
        endpoint: any Endpoint,
        credentials: BasicAuthenticator,
        fingerprint: String?,
        address: String
    ) {
        self.endpoint = endpoint
        self.credentials = credentials
        self.fingerprint = fingerprint
        self.address = address
    }

    private static func address(_ url: URL) -> String {
        "\(url.host(percentEncoded: false) ?? ""):\(url.port ?? 80)"
    }
}
