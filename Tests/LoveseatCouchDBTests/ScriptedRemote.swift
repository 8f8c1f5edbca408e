import AsyncHTTPClient
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatReplication
import NIOCore
import NIOHTTP1
import Synchronization
import Testing

/// A network without a network: a test answers each request, on a clock that runs fast.
final class ScriptedTransport: RemoteTransport {
    struct Request: Sendable {
        let method: String
        let url: String
        let headers: HTTPHeaders

        /// What would authenticate its sender.
        var secrets: [String] { headers["Authorization"] + headers["X-Secret"] + headers["Cookie"] }
    }

    private let answer: @Sendable (Request, _ number: Int) throws -> HTTPClientResponse
    private let log = Mutex<[Request]>([])

    var requests: [Request] { log.withLock { $0 } }

    /// `answer`: called with each request, and its number from 0.
    init(_ answer: @escaping @Sendable (Request, _ number: Int) throws -> HTTPClientResponse) {
        self.answer = answer
    }

    func prepare(_ runtime: inout ReplicationRuntime) { FaultyTransport(seed: 1).prepare(&runtime) }

    func execute(
        _ request: HTTPClientRequest,
        with client: @concurrent @Sendable () async throws -> HTTPClient
    ) async throws -> HTTPClientResponse {
        let sent = Request(method: request.method.rawValue, url: request.url, headers: request.headers)
        let number = log.withLock { log in
            log.append(sent)
            return log.count - 1
        }
        return try answer(sent, number)
    }
}

extension HTTPClientResponse {
    static func json(_ status: Int, _ text: String = "{}", _ headers: HTTPHeaders = [:]) -> Self {
        HTTPClientResponse(
            status: HTTPResponseStatus(statusCode: status),
            headers: headers,
            body: .bytes(ByteBuffer(string: text))
        )
    }

    /// An answer that comes in these pieces, and breaks off after them if it is cut.
    static func pieces(_ pieces: [String], isCut: Bool = false) -> Self {
        let (stream, continuation) = AsyncThrowingStream<ByteBuffer, any Error>.makeStream()
        for piece in pieces { continuation.yield(ByteBuffer(string: piece)) }
        continuation.finish(throwing: isCut ? HTTPClientError.remoteConnectionClosed : nil)
        return HTTPClientResponse(status: .ok, body: .stream(stream))
    }
}

/// A client whose requests a test answers.
struct ScriptedRemote {
    let transport: ScriptedTransport
    let client: RemoteClient
    let database: RemoteDatabase

    init(
        _ options: ConnectionOptions = ConnectionOptions(),
        url: String = "http://h:5984/db",
        allowsURL: (@Sendable (URL) -> Bool)? = nil,
        _ answer: @escaping @Sendable (ScriptedTransport.Request, _ number: Int) throws -> HTTPClientResponse
    ) throws {
        transport = ScriptedTransport(answer)
        var runtime = ReplicationRuntime.system
        transport.prepare(&runtime)
        let address = try RemoteAddress(try #require(URL(string: url)))
        client = RemoteClient(
            address,
            options: options,
            runtime: runtime,
            transport: transport,
            allowsURL: allowsURL
        )
        database = RemoteDatabase(client: client, path: address.path)
    }

    /// Runs a test, and ends the client.
    func run<Value>(_ body: (ScriptedRemote) async throws -> Value) async throws -> Value {
        do {
            let value = try await body(self)
            await client.shutDown()
            return value
        } catch {
            await client.shutDown()
            throw error
        }
    }
}
