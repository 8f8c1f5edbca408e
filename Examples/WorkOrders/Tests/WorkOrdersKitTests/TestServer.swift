import Foundation
import Hummingbird
import HummingbirdTesting
import Logging
import Loveseat
import Metrics
import Testing
import WorkOrdersKit

/// A whole server on the loopback interface, with a folder that is removed when the test ends.
final class TestServer: Sendable {
    static let token = "a-token-for-tests"
    /// Once for the process, as in the program.
    static let metrics = {
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        return metrics
    }()

    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

    deinit { try? FileManager.default.removeItem(at: folder) }

    func run(_ body: @Sendable (Client) async throws -> Void) async throws {
        var options = ServerOptions(folder: folder, token: Self.token)
        options.syncPort = 0
        options.syncInterface = "127.0.0.1"
        var logger = Logger(label: "test")
        logger.logLevel = .error
        let server = try await makeServer(options, metrics: Self.metrics, logger: logger)
        try await server.test(.live) { try await body(Client(client: $0)) }
    }

    /// A database of a device, with the collection that it shares.
    func device(_ name: String) throws -> (Database, Loveseat.Collection) {
        let database = try Database(name: name, config: DatabaseConfiguration(directory: folder.path))
        return (database, try database.createCollection(name: "orders", scope: "field"))
    }
}

/// A client of the API.
struct Client: Sendable {
    let client: any TestClientProtocol

    func send(
        _ method: HTTPRequest.Method,
        _ path: String,
        _ body: JSONValue? = nil,
        token: String = TestServer.token
    ) async throws -> (status: HTTPResponse.Status, json: JSONValue, text: String) {
        let response = try await client.execute(
            uri: path,
            method: method,
            headers: [.authorization: "Bearer \(token)", .contentType: "application/json"],
            body: body.map { ByteBuffer(string: $0.description) }
        )
        let text = String(buffer: response.body)
        return (response.status, (try? JSONValue(parsing: text)) ?? .null, text)
    }

    /// Adds a device, and returns the configuration with which it replicates.
    func replication(of collection: Loveseat.Collection, as name: String) async throws
        -> ReplicatorConfiguration
    {
        let made = try await send(.post, "/api/devices", ["name": .string(name)])
        #expect(made.status == .created)
        let url = try #require(made.json["urls"]?[0]?.string.flatMap { URL(string: $0) })
        var configuration = ReplicatorConfiguration(collections: [collection], target: URLEndpoint(url))
        configuration.authenticator = BasicAuthenticator(
            username: name,
            password: try #require(made.json["password"]?.string)
        )
        configuration.pinnedServerFingerprint = made.json["fingerprint"]?.string
        return configuration
    }
}
