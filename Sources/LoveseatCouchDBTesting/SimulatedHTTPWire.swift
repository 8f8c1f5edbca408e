import Foundation
import HTTPTypes
import HummingbirdCore
import LoveseatAssertions
package import LoveseatCore
import LoveseatCouchDB
import LoveseatModel
import LoveseatReplication
package import LoveseatTesting
import NIOCore
import NIOEmbedded

/// CouchDB's wire for the simulator: the client and the server that ship, without sockets.
package struct SimulatedHTTPWire: SimulatedWire {
    private let fault: PlantedHTTPFault?

    package init(planting fault: PlantedHTTPFault? = nil) { self.fault = fault }

    package var mistake: String? { fault?.rawValue }
    package var withoutMistake: any SimulatedWire { Self() }

    package func makeForeignDatabases(of peer: Int) -> any ForeignDatabases {
        ScriptedCouchDB(simulatedPeer: peer, comparesText: fault == .compareRevisionsAsText)
    }

    package func link(
        to target: SimulatedPeer,
        _ runtime: SimulatedRuntime,
        _ faults: Double,
        under policy: AccessPolicy?,
        seed: UInt64,
        _ trace: @escaping (String) -> Void
    ) -> any SimulatedWireLink {
        SimulatedHTTPLink(
            SimulatedHTTP(
                to: target,
                runtime,
                faults: faults,
                under: policy,
                planting: fault,
                seed: seed,
                trace
            ),
            "peer\(target.index)"
        )
    }
}

/// A connection over CouchDB's wire: as many requests as the client sends.
private final class SimulatedHTTPLink: SimulatedWireLink {
    private let network: SimulatedHTTP
    private let name: String

    init(_ network: SimulatedHTTP, _ name: String) { (self.network, self.name) = (network, name) }

    func replicate(with request: ReplicationRequest) async throws -> any Replication {
        guard let url = URL(string: "http://\(name):5984/\(name)") else {
            throw LoveseatError(.invalidURL, "\(name) is not the name of a host")
        }
        var endpoint = CouchDBEndpoint(url: url)
        endpoint.transport = network
        return try await endpoint.replicate(with: request)
    }

    var errorsOnTheWay: Set<Int> { network.errorsOnTheWay }

    func cut() { network.cut() }
    func kill() { network.kill() }
}

/// The server of a simulated peer, which dies with its process.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class SimulatedHTTPServer: @unchecked Sendable {
    private let responder: CouchDBResponder
    private let channel = EmbeddedChannel()
    private let runtime: SimulatedRuntime
    /// Whether it is still the server of its peer, and not one that was stopped.
    private let isCurrent: (SimulatedHTTPServer) -> Bool
    private var running = 0
    private var isPumping = false
    /// The feeds at which clients wait. While there are some, the event loop has the virtual time, for their signs of life.
    private var feeds: [WaitingFeed] = []
    private var pumpedAt = 0

    private init(_ peer: SimulatedPeer, _ runtime: SimulatedRuntime, _ policy: AccessPolicy?) throws {
        let name = "peer\(peer.index)"
        responder = try CouchDBResponder(
            serving: Database(name: name, over: peer.store),
            hostName: name,
            policy: policy,
            runtime: runtime.runtime()
        )
        self.runtime = runtime
        isCurrent = { [weak peer] server in peer?.service as? SimulatedHTTPServer === server }
    }

    /// The server of a peer, which all of its clients have; nil if it does not listen. `policy`: the peer's.
    static func of(_ peer: SimulatedPeer, _ runtime: SimulatedRuntime, _ policy: AccessPolicy?) throws
        -> SimulatedHTTPServer?
    {
        guard peer.listens else { return nil }
        if let server = peer.service as? SimulatedHTTPServer { return server }
        let server = try SimulatedHTTPServer(peer, runtime, policy)
        peer.service = server
        return server
    }

    /// Answers a request. Like a server, it goes on when its client is gone.
    ///
    /// `limit`: after how many bytes of the body the connection breaks; nil if it does not.
    ///
    /// `feed`: a feed at which the client waits, on a connection of its own; nil if the request is answered at once.
    func answer(_ call: SimulatedCall, breakingAfter limit: Int? = nil, _ feed: WaitingFeed? = nil) async
        -> SimulatedAnswer
    {
        running += 1
        if let feed { feeds.append(feed) }
        defer {
            running -= 1
            feeds.removeAll { $0 === feed }
            feed?.close()
        }
        if !isPumping {
            pumpedAt = runtime.clock.now
            pump()
        }
        let channel = feed?.open(on: channel.embeddedEventLoop) ?? channel
        let box = AnswerBox()
        await runtime.runtime().task { [responder, channel] in
            box.answer = await Self.answer(call, limit, responder, channel)
        }.value
        guard let answer = box.answer else {
            impossible("a request has no answer")
            return SimulatedAnswer(status: 500)
        }
        return answer
    }

    private final class AnswerBox: @unchecked Sendable { var answer: SimulatedAnswer? }

    private static func answer(
        _ call: SimulatedCall,
        _ limit: Int?,
        _ responder: CouchDBResponder,
        _ channel: EmbeddedChannel
    ) async -> SimulatedAnswer {
        let body: RequestBody =
            if let limit { RequestBody(asyncSequence: BrokenPieces(bytes: call.body, limit: limit)) } else {
                RequestBody(buffer: ByteBuffer(bytes: call.body))
            }
        let response = await responder.respond(to: Request(head: call.head, body: body), on: channel)
        var answer = SimulatedAnswer(status: response.status.code)
        answer.headers = response.headers.map { ($0.name.rawName, $0.value) }
        let written = WrittenBytes()
        do {
            try await response.body.write(CollectingWriter(written: written))
        } catch {
            // The server cut its answer, and has logged why.
            answer.isCut = true
        }
        answer.body = written.bytes
        return answer
    }

    /// Lets the event loop do what waits for it, as long as there are requests.
    private func pump() {
        isPumping = true
        if !feeds.isEmpty, !isCurrent(self) { for feed in feeds { feed.close() } }
        let (loop, now) = (channel.embeddedEventLoop, runtime.clock.now)
        if feeds.isEmpty { loop.run() } else { loop.advanceTime(by: .milliseconds(Int64(now - pumpedAt))) }
        pumpedAt = now
        guard running > 0 else { return isPumping = false }
        // Feeds wait for long, and a loop that turns all the time makes histories slow.
        runtime.clock.schedule(after: running > feeds.count ? 1 : 20) { [self] in pump() }
    }
}

/// A feed at which a client waits for changes, on a connection of its own.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class WaitingFeed: @unchecked Sendable {
    private var channel: EmbeddedChannel?
    private var isClosed = false

    /// Opens the connection, which may have broken before.
    func open(on loop: EmbeddedEventLoop) -> EmbeddedChannel {
        let channel = EmbeddedChannel(loop: loop)
        self.channel = channel
        if isClosed { channel.close(promise: nil) }
        return channel
    }

    /// The connection breaks, or the client is gone: the server notices when its event loop runs next.
    func close() {
        if isClosed { return }
        isClosed = true
        channel?.close(promise: nil)
    }
}

/// A request, whole.
struct SimulatedCall: Sendable {
    var method: String
    var host: String
    var target: String
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    /// Whether the answer may wait for changes.
    var waitsForChanges: Bool { target.contains("feed=longpoll") }

    var head: HTTPRequest {
        var fields = HTTPFields()
        for (name, value) in headers {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        if method != "GET" { fields[.contentLength] = "\(body.count)" }
        return HTTPRequest(
            method: HTTPRequest.Method(method) ?? .get,
            scheme: "http",
            authority: host,
            path: target,
            headerFields: fields
        )
    }
}

/// An answer, whole or cut by its server.
struct SimulatedAnswer: Sendable {
    var status: Int
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var isCut = false
}

private final class WrittenBytes: @unchecked Sendable { var bytes: [UInt8] = [] }

private struct CollectingWriter: ResponseBodyWriter {
    let written: WrittenBytes

    mutating func write(_ buffer: ByteBuffer) async throws {
        written.bytes.append(contentsOf: buffer.readableBytesView)
    }

    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
