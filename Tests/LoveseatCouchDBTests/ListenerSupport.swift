import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// A listener of CouchDB's wire on a free port of this host, without TLS.
struct ServedDatabase {
    let scratch: Scratch
    let database: Database
    let listener: CouchDBListener
    let client: RawClient

    init(_ change: (inout CouchDBListenerConfiguration) throws -> Void = { _ in }) async throws {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        var configuration = CouchDBListenerConfiguration(database: database)
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        try change(&configuration)
        let listener = CouchDBListener(configuration)
        try await listener.start()
        self.scratch = scratch
        self.database = database
        self.listener = listener
        client = RawClient(port: try #require(listener.port))
    }

    /// Sends a request. `user`: sent with Basic; the password is the user's name.
    func call(
        _ method: String,
        _ path: String,
        _ json: JSONValue? = nil,
        _ headers: [(String, String)] = [],
        as user: String? = nil
    ) async throws -> RawClient.Answer {
        var headers = headers
        if let user {
            headers.append(
                ("Authorization", "Basic " + Data("\(user):\(user)".utf8).base64EncodedString())
            )
        }
        if json != nil { headers.append(("Content-Type", "application/json")) }
        let (client, all) = (client, headers)
        let body = json.map { JSONText(canonical: $0).bytes }
        return try await offPool { try client.send(method, path, all, body: body) }
    }
}

extension RawClient.Answer {
    /// The JSON of the body; null if it is not JSON.
    var json: JSONValue { (try? JSONValue(parsing: text)) ?? nil }

    /// The IDs of the rows of `_all_docs` or `_changes`.
    var ids: [String] {
        (json["rows"] ?? json["results"])?.array?.compactMap { $0["id"]?.string } ?? []
    }
}
