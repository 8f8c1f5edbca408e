import Foundation
import LoveseatCore
import LoveseatCouchDBTesting
import LoveseatDiscovery
import LoveseatInspector
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// An inspector of a new database, and a client that has its token.
final class InspectorServer: Sendable {
    let scratch: Scratch
    /// Open for writing.
    let database: Database
    let client: RawClient
    let token: String
    private let reader: Database
    private let inspector: Inspector

    init(
        _ fill: (Database) throws -> Void = { _ in },
        search: @escaping @Sendable () throws -> PeerBrowser = {
            try PeerBrowser(type: "_loveseat-inspected._tcp", method: .multicast, interfaces: [])
        }
    ) async throws {
        scratch = try Scratch()
        database = try scratch.database("db")
        try fill(database)
        reader = try Database(
            name: "db",
            config: DatabaseConfiguration(directory: scratch.path, readOnly: true)
        )
        inspector = Inspector(reader, backend: TestBackend(database: database), search: search)
        let address = try await inspector.start()
        let url = try #require(URLComponents(string: address))
        client = RawClient(port: UInt16(try #require(url.port)))
        token = try #require(url.queryItems?.first?.value)
    }

    func stop() async throws {
        await inspector.stop()
        try await reader.close()
        try await database.close()
    }

    var collection: LoveseatCore.Collection { get throws { try database.defaultCollection() } }

    /// Sends a request from a thread of its own: the server needs those of the pool.
    func send(
        _ method: String,
        _ target: String,
        _ headers: [(String, String)] = [],
        body: [UInt8]? = nil
    ) async throws -> RawClient.Answer {
        let client = client
        return try await offPool { try client.send(method, target, headers, body: body) }
    }

    /// A reply to a program that has the token.
    func get(_ path: String, _ parameters: [String: String] = [:]) async throws -> RawClient.Answer {
        var target = URLComponents()
        target.path = path
        target.queryItems = parameters.map { URLQueryItem(name: $0.key, value: $0.value) }
        let text = try #require(target.string?.replacing("+", with: "%2B"))
        return try await send("GET", text, [("Authorization", "Bearer \(token)")])
    }

    func json(_ path: String, _ parameters: [String: String] = [:]) async throws -> JSONValue {
        let answer = try await get(path, parameters)
        #expect(answer.status == 200, "\(answer.text)")
        return try JSONValue(parsing: answer.text)
    }

    func post(_ path: String, _ json: JSONValue) async throws -> RawClient.Answer {
        try await send(
            "POST",
            path,
            [("Authorization", "Bearer \(token)")],
            body: Array(json.description.utf8)
        )
    }
}

/// Changes the database that a test has open.
struct TestBackend: InspectorBackend {
    let database: Database

    func peers(after event: Int) async throws -> JSONValue? { nil }

    func pending(over key: String) async throws -> JSONValue? { nil }

    func perform(_ edit: InspectorEdit) async throws -> RevisionID {
        let database = database
        return try await Reading.run { try edit.perform(on: database) }
    }
}
