import Foundation
import Loveseat
import LoveseatCouchDB
import PhotoDropCore

/// The receiver that photos are sent to.
package struct DropTarget: Sendable {
    private static let retryInterval = Duration.seconds(2)

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
            endpoint: URLEndpoint(found.url),
            credentials: BasicAuthenticator(username: code.username, password: code.secret),
            fingerprint: found.fingerprint,
            address: address(found.url)
        )
    }

    /// Finds the receiver of a code without encryption, which speaks CouchDB's protocol.
    ///
    /// - Throws: `unreachable` if it does not listen.
    package static func find(_ code: LegacyCode) async throws(DropError) -> DropTarget {
        try await ReceiverProbe.check(code.url)
        return DropTarget(
            endpoint: CouchDBEndpoint(url: code.url),
            credentials: BasicAuthenticator(username: code.username, password: code.password),
            fingerprint: nil,
            address: address(code.url)
        )
    }

    /// Finds the receiver of a code of either kind.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - seconds: How long to look for a receiver that cannot be reached; 0 to look once.
    ///   - report: Called after each look that did not find it.
    /// - Returns: The receiver.
    /// - Throws: `unreachable` or `refused`.
    package static func find(
        _ code: ScannedCode,
        within seconds: Double,
        report: @Sendable (SendEvent) -> Void
    ) async throws(DropError) -> DropTarget {
        let start = ContinuousClock.now
        while true {
            do throws(DropError) { return try await find(code) } catch {
                let waited = (ContinuousClock.now - start) / .seconds(1)
                guard error.mayPass, waited < seconds, !Task.isCancelled else { throw error }
                report(.waiting(error.message))
            }
            try? await Task.sleep(for: retryInterval)
        }
    }

    private static func find(_ code: ScannedCode) async throws(DropError) -> DropTarget {
        switch code {
        case .current(let code): return try await find(code)
        case .legacy(let code): return try await find(code)
        }
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
