import AsyncHTTPClient
import LoveseatCore
import LoveseatCouchDB
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import NIOCore
import NIOHTTP1

/// The network between a client and a server of CouchDB's wire: requests and answers are delayed, lost, cut at any byte, repeated and
/// replaced, as a seed decides.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
final class SimulatedHTTP: RemoteTransport, @unchecked Sendable {
    /// An accident of a request.
    enum Fate: CaseIterable {
        /// It does not arrive.
        case lostRequest
        /// Its body is cut.
        case cutRequest
        /// The server does what it says, and the answer is cut, perhaps before its first byte.
        case cutAnswer
        /// The server does what it says, and nobody ever answers.
        case silence
        /// A proxy sends it twice, and passes on the first answer, or the second.
        case repeated
        /// Somebody on the way answers, before or after the server did what it says.
        case otherAnswer
        case late
    }

    private let target: SimulatedPeer
    private let runtime: SimulatedRuntime
    private let faults: Double
    private let policy: AccessPolicy?
    private let planted: PlantedHTTPFault?
    private let latency: ClosedRange<Int>
    private var dice: SeededGenerator
    private let trace: (String) -> Void
    /// How often all that was under way was lost.
    private var cuts = 0
    private var isDead = false
    private(set) var errorsOnTheWay: Set<Int> = []
    /// The feeds at which the client waits.
    private var waiting: [WaitingFeed] = []

    init(
        to target: SimulatedPeer,
        _ runtime: SimulatedRuntime,
        faults: Double,
        under policy: AccessPolicy?,
        planting fault: PlantedHTTPFault?,
        seed: UInt64,
        _ trace: @escaping (String) -> Void
    ) {
        (self.target, self.runtime, self.faults, planted) = (target, runtime, faults, fault)
        self.policy = fault == .ignoreRights ? nil : policy
        self.trace = trace
        var dice = SeededGenerator(seed: seed)
        latency = dice.pick([0...0, 0...5, 5...300])
        self.dice = dice
    }

    func cut() {
        cuts += 1
        for feed in waiting { feed.close() }
    }

    func kill() {
        isDead = true
        for feed in waiting { feed.close() }
    }

    func prepare(_ runtime: inout ReplicationRuntime) {}

    func execute(
        _ request: HTTPClientRequest,
        with client: @concurrent @Sendable () async throws -> HTTPClient
    ) async throws -> HTTPClientResponse {
        var call = try await Self.call(request)
        let before = cuts
        let fate = dice.chance(faults) ? dice.pick(Fate.allCases) : nil
        try await wait(dice.int(latency))
        if isDead || cuts != before { throw HTTPClientError.remoteConnectionClosed }
        planted?.change(&call, &dice)
        var answer = try await answer(call, fate, waitsForChanges: call.waitsForChanges)
        if planted?.change(&answer, of: call, &dice) == true { trace("mistake") }
        try await wait(dice.int(latency))
        if isDead || cuts != before { throw HTTPClientError.remoteConnectionClosed }
        var limit: Int? = answer.isCut ? answer.body.count : nil
        if case .cutAnswer = fate {
            let place = dice.int(0...answer.body.count)
            if place == 0 { throw HTTPClientError.remoteConnectionClosed }
            limit = min(place - 1, limit ?? .max)
        }
        let pieces = BrokenPieces(
            bytes: answer.body,
            limit: limit,
            piece: max(1, answer.body.count / dice.int(1...20))
        )
        return HTTPClientResponse(
            status: HTTPResponseStatus(statusCode: answer.status),
            headers: HTTPHeaders(answer.headers.map { ($0.name, $0.value) }),
            body: .stream(pieces)
        )
    }

    /// Answers a request that may wait for changes: until the client gives up, or the connection breaks.
    private func answer(_ call: SimulatedCall, _ fate: Fate?, waitsForChanges: Bool) async throws
        -> SimulatedAnswer
    {
        if !waitsForChanges { return try await answer(call, fate) }
        let feed = WaitingFeed()
        waiting.append(feed)
        defer { waiting.removeAll { $0 === feed } }
        let answer = try await withTaskCancellationHandler {
            try await self.answer(call, fate, feed)
        } onCancel: {
            feed.close()
        }
        try Task.checkCancellation()
        return answer
    }

    private func answer(_ call: SimulatedCall, _ fate: Fate?, _ feed: WaitingFeed? = nil) async throws
        -> SimulatedAnswer
    {
        let path = call.target.prefix { $0 != "?" }
        func serve(_ limit: Int? = nil) async throws -> SimulatedAnswer {
            if let couch = target.foreign as? ScriptedCouchDB {
                // A request that was cut is one that did not come.
                if limit != nil { throw HTTPClientError.remoteConnectionClosed }
                let answer = couch.answer(call)
                trace("\(call.method) \(path) \(call.body.count) -> \(answer.status) \(answer.body.count)")
                return answer
            }
            guard let server = try SimulatedHTTPServer.of(target, runtime, policy) else {
                throw LoveseatError(.init(5_017), "peer \(target.index) does not listen")
            }
            let answer = await server.answer(call, breakingAfter: limit, feed)
            let checkpoint = path.contains("/_local/") ? " \(String(decoding: call.body, as: UTF8.self))" : ""
            trace(
                "\(call.method) \(path) \(call.body.count) -> \(answer.status) \(answer.body.count)\(checkpoint)"
            )
            return answer
        }
        if let fate { trace("\(fate): \(call.method) \(path)") }
        switch fate {
        case nil, .cutAnswer: return try await serve()
        case .lostRequest: throw HTTPClientError.remoteConnectionClosed
        case .cutRequest:
            guard !call.body.isEmpty else { throw HTTPClientError.remoteConnectionClosed }
            _ = try await serve(dice.int(0...call.body.count - 1))
            throw HTTPClientError.remoteConnectionClosed
        case .silence:
            _ = try await serve()
            try await wait(90_000)
            throw HTTPClientError.readTimeout
        case .repeated:
            let first = try await serve()
            try await wait(dice.int(0...50))
            let second = try await serve()
            return dice.chance(0.5) ? first : second
        case .otherAnswer:
            let isAfter = dice.chance(0.5)
            // 403 would be the server's own word, after which a document is not sent again before it changes.
            var answer = SimulatedAnswer(status: dice.pick([401, 404, 408, 429, 500, 502, 503, 504]))
            errorsOnTheWay.insert(answer.status)
            if dice.chance(0.5) { answer.headers.append((name: "Retry-After", value: "1")) }
            answer.body = Array("<html>\(answer.status)</html>".utf8)
            if isAfter { _ = try await serve() }
            return answer
        case .late:
            let answer = try await serve()
            try await wait(dice.int(500...20_000))
            return answer
        }
    }

    private func wait(_ milliseconds: Int) async throws {
        if milliseconds > 0 { try await runtime.runtime().clock.sleep(for: .milliseconds(milliseconds)) }
    }

    private static func call(_ request: HTTPClientRequest) async throws -> SimulatedCall {
        let rest = request.url.drop { $0 != ":" }.dropFirst(3)
        let host = rest.prefix { $0 != "/" }
        var body: [UInt8] = []
        if let sent = request.body {
            for try await piece in sent { body.append(contentsOf: piece.readableBytesView) }
        }
        return SimulatedCall(
            method: request.method.rawValue,
            host: String(host),
            target: String(rest.dropFirst(host.count)),
            headers: request.headers.map { (name: $0.name, value: $0.value) },
            body: body
        )
    }
}
