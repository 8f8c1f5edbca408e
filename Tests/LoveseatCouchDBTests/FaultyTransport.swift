import AsyncHTTPClient
import LoveseatCouchDB
import LoveseatReplication
import LoveseatTesting
import NIOCore
import NIOHTTP1
import Synchronization

/// A network on which requests and answers are delayed, lost, cut, repeated and replaced, as a seed decides.
///
/// What happens to the n-th request is always the same; which request is the n-th is not, where several are sent at once.
final class FaultyTransport: RemoteTransport {
    /// What can happen to a request.
    enum Fault: CaseIterable {
        /// It does not arrive.
        case lostRequest
        /// Its body is cut.
        case cutRequest
        /// The server does what it says, and the answer does not arrive.
        case lostAnswer
        /// The server does what it says, and the answer is cut.
        case cutAnswer
        /// A proxy sends it twice, and passes on the second answer.
        case repeated
        /// Somebody on the way answers, before or after the server did what it says.
        case otherAnswer
        case lateAnswer
    }

    private struct State {
        var dice: SeededGenerator
        var probability = 0.0
        var log: [String] = []
    }

    private let state: Mutex<State>
    /// Faults that are not to happen.
    private let without: Set<Fault>

    init(seed: UInt64, without: Set<Fault> = []) {
        state = Mutex(State(dice: SeededGenerator(seed: seed)))
        self.without = without
    }

    /// How many of the requests something happens to.
    func setProbability(_ probability: Double) { state.withLock { $0.probability = probability } }

    /// What happened since this was last asked for.
    func takeLog() -> [String] {
        state.withLock { state in
            defer { state.log = [] }
            return state.log
        }
    }

    func prepare(_ runtime: inout ReplicationRuntime) { runtime.run(on: QuickClock()) }

    func execute(
        _ request: HTTPClientRequest,
        with client: @concurrent @Sendable () async throws -> HTTPClient
    ) async throws -> HTTPClientResponse {
        let client = try await client()
        let (fault, place, isAfter) = state.withLock { state -> (Fault?, Int, Bool) in
            guard state.dice.chance(state.probability) else { return (nil, 0, false) }
            let fault = state.dice.pick(Fault.allCases.filter { !without.contains($0) })
            // Small answers are cut inside as well as large ones.
            let place = state.dice.int(0...(1 << state.dice.int(0...14)))
            state.log.append(
                "\(fault) \(place): \(request.method.rawValue) \(request.url.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" })"
            )
            return (fault, place, state.dice.chance(0.5))
        }
        func send(_ request: HTTPClientRequest) async throws -> HTTPClientResponse {
            try await client.execute(request, deadline: .now() + .seconds(60))
        }
        switch fault {
        case nil: return try await send(request)
        case .lostRequest: throw HTTPClientError.remoteConnectionClosed
        case .cutRequest:
            guard let body = request.body else { throw HTTPClientError.remoteConnectionClosed }
            var request = request
            request.body = .stream(CutBody(body: body, left: place), length: .unknown)
            return try await send(request)
        case .lostAnswer:
            for try await _ in try await send(request).body {}
            throw HTTPClientError.remoteConnectionClosed
        case .cutAnswer:
            var response = try await send(request)
            response.body = .stream(CutBody(body: response.body, left: place))
            return response
        case .repeated:
            for try await _ in try await send(request).body {}
            return try await send(request)
        case .otherAnswer:
            if isAfter { for try await _ in try await send(request).body {} }
            // 403 would be the server's own word, after which a document is not sent again before it changes.
            let statuses = [401, 404, 408, 429, 500, 502, 503, 504]
            let status = statuses[place % statuses.count]
            return HTTPClientResponse(
                status: HTTPResponseStatus(statusCode: status),
                headers: place % 2 == 0 ? ["Retry-After": "1"] : [:],
                body: .bytes(ByteBuffer(string: "<html>\(status)</html>"))
            )
        case .lateAnswer:
            let response = try await send(request)
            try await QuickClock().sleep(for: .seconds(1))
            return response
        }
    }
}

/// A body that breaks off after some bytes, if it is longer.
private struct CutBody<Body: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Body.Element == ByteBuffer {
    let body: Body
    let left: Int

    struct Iterator: AsyncIteratorProtocol {
        var inner: Body.AsyncIterator
        var left: Int

        mutating func next() async throws -> ByteBuffer? { try await next(isolation: nil) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws -> ByteBuffer? {
            guard left > 0 else { throw HTTPClientError.remoteConnectionClosed }
            guard var piece = try await inner.next(isolation: actor) else { return nil }
            let whole = piece.readableBytes
            defer { left -= whole }
            guard whole > left else { return piece }
            return piece.readSlice(length: left)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(inner: body.makeAsyncIterator(), left: left) }
}

/// A clock that runs a thousand times as fast as others.
private struct QuickClock: Clock {
    struct Instant: InstantProtocol {
        let time: Duration

        func advanced(by duration: Duration) -> Instant { Instant(time: time + duration) }
        func duration(to other: Instant) -> Duration { other.time - time }
        static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.time < rhs.time }
    }

    private static let start = ContinuousClock.now
    private static let speed = 1_000

    var now: Instant { Instant(time: Self.start.duration(to: .now) * Self.speed) }
    var minimumResolution: Duration { .milliseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await ContinuousClock().sleep(until: Self.start + deadline.time / Self.speed, tolerance: nil)
    }
}

extension ReplicationRuntime {
    fileprivate mutating func run(on clock: QuickClock) {
        self.clock = clock
        uptime = { clock.now.time }
    }
}
