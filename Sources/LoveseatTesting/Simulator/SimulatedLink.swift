package import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication

/// A connection on a virtual clock: delay, bandwidth, buffers that fill, and breaks after any byte.
///
/// Messages arrive in order, each whole or not at all, as those of a WebSocket do. A message that was lost on the way breaks the
/// connection.
///
/// @unchecked because everything of a simulation runs on the thread that calls ``VirtualClock/step()``.
package final class SimulatedLink: @unchecked Sendable {
    package struct Plan: Sendable {
        /// How long a message is under way, in milliseconds.
        package var latency = 0...0
        /// How many bytes go over the link in a millisecond, each way.
        package var bytesPerMillisecond = 1_000_000
        /// How many bytes are under way or wait for the receiver before a sender has to wait.
        package var capacity = 1 << 20
        /// The number of bytes, both ways together, after which the link breaks; nil for never.
        package var cutAfter: Int?
        /// How long it takes an end to notice a break, in milliseconds.
        package var notice = 0...0
        /// Whether a break also loses the messages that are in flight.
        package var losesWhatIsUnderWay = false

        package init() {}
    }

    package enum Side: Sendable {
        case near
        case far

        var other: Side { self == .near ? .far : .near }
    }

    private enum End {
        case goodbye
        case failure(LoveseatError)
    }

    /// One direction of the link.
    private struct Direction {
        var arrived: [[UInt8]] = []
        /// Bytes that were sent and not received.
        var bytes = 0
        /// When the line is free, in microseconds.
        var freeAt = 0
        var lastArrival = 0
        var end: End?
        var reader: CheckedContinuation<Void, Never>?
        var writer: CheckedContinuation<Void, Never>?
        /// Whether the sender or the receiver has left.
        var isDropped = false
        var onArrival: (([UInt8]) -> Void)?
        var onEnd: (() -> Void)?
        var onRoom: (() -> Void)?
    }

    private let clock: VirtualClock
    private let plan: Plan
    private var dice: SeededGenerator
    /// By the side that receives.
    private var directions: [Side: Direction] = [.near: Direction(), .far: Direction()]
    private var closed: Set<Side> = []
    private var left: Int
    /// Whether neither end has closed it and it has not broken.
    package private(set) var isOpen = true
    /// Messages that were sent.
    package private(set) var messages = 0
    /// Called with everything that is sent.
    package var onSend: ((Side, [UInt8]) -> Void)?
    /// Called when the link breaks.
    package var onCut: (() -> Void)?

    package init(_ clock: VirtualClock, _ plan: Plan = Plan(), seed: UInt64) {
        (self.clock, self.plan) = (clock, plan)
        dice = SeededGenerator(seed: seed)
        left = plan.cutAfter ?? .max
    }

    /// One end, for a driver.
    package func channel(_ side: Side) -> any MessageChannel { SimulatedChannel(link: self, side: side) }

    /// Calls `take` with each message that arrives at an end without a channel, and `end` when no more will.
    package func listen(
        _ side: Side,
        _ take: @escaping ([UInt8]) -> Void,
        end: @escaping () -> Void = {}
    ) {
        change(side) { ($0.onArrival, $0.onEnd) = (take, end) }
    }

    /// Whether an end can send now without waiting.
    package func hasRoom(from side: Side) -> Bool { direction(side.other).bytes < plan.capacity }

    /// Calls `refill` when an end without a channel may have room to send.
    package func onRoom(from side: Side, _ refill: @escaping () -> Void) {
        change(side.other) { $0.onRoom = refill }
    }

    // MARK: Ends

    /// The link breaks: both ends notice, each in its time.
    package func cut() {
        if !isOpen { return }
        isOpen = false
        onCut?()
        for side in [Side.near, .far] {
            let error = LoveseatError(.webSocketAbnormalClose, "the link broke")
            if plan.losesWhatIsUnderWay { change(side) { $0.isDropped = true } }
            let arrival = plan.losesWhatIsUnderWay ? 0 : direction(side).lastArrival
            let time = max(arrival, clock.now + dice.int(plan.notice))
            clock.schedule(after: time - clock.now) { [self] in end(side, .failure(error)) }
        }
    }

    /// The process at one end dies. It notices nothing; the other end notices a break.
    package func kill(_ side: Side) {
        closed.insert(side)
        cut()
        drop(side)
        end(side, .failure(LoveseatError(.webSocketAbnormalClose, "the process died")))
    }

    /// One end closes the link. Messages that were sent before still arrive.
    package func close(_ side: Side, code: Int, reason: String) {
        // A driver may close its end twice, or after its process died.
        guard closed.insert(side).inserted else { return }
        let wasOpen = isOpen
        isOpen = false
        drop(side)
        end(side, .goodbye)
        if !wasOpen { return }
        let isNormal = code == 1000 || code == 1001
        let error = LoveseatError(.init(10_000 + code), "the peer closed the connection: \(reason)")
        let time = max(direction(side.other).lastArrival, clock.now + dice.int(plan.latency))
        clock.schedule(after: time - clock.now) { [self] in
            end(side.other, isNormal ? .goodbye : .failure(error))
        }
    }

    /// Messages in flight to an end are dropped, and the end's own writer waits no longer.
    private func drop(_ side: Side) {
        change(side) { $0.isDropped = true }
        wakeWriter(of: side.other)
    }

    private func end(_ side: Side, _ end: End) {
        let (reader, onEnd) = change(side) { direction in
            guard direction.end == nil else {
                return (nil as CheckedContinuation<Void, Never>?, nil as (() -> Void)?)
            }
            direction.end = end
            defer { direction.reader = nil }
            return (direction.reader, direction.onEnd)
        }
        reader?.resume()
        onEnd?()
        // An end that heard of the break does not wait for room either.
        wakeWriter(of: side.other)
    }

    // MARK: Messages

    /// Sends without waiting for room.
    package func post(_ messages: [[UInt8]], from side: Side) {
        for message in messages { post(message, from: side) }
    }

    private func post(_ message: [UInt8], from side: Side) {
        if !isOpen { return }
        messages += 1
        onSend?(side, message)
        guard message.count <= left else { return cut() }
        if plan.cutAfter != nil { left -= message.count }
        let latency = dice.int(plan.latency)
        let arrival = change(side.other) { direction in
            direction.bytes += message.count
            direction.freeAt =
                max(direction.freeAt, clock.now * 1_000) + message.count * 1_000 / plan.bytesPerMillisecond
            direction.lastArrival = max(direction.lastArrival, direction.freeAt / 1_000 + latency)
            return direction.lastArrival
        }
        clock.schedule(after: arrival - clock.now) { [self] in arrive(message, at: side.other) }
    }

    private func arrive(_ message: [UInt8], at side: Side) {
        let direction = direction(side)
        if direction.isDropped || direction.end != nil { return }
        if let onArrival = direction.onArrival {
            change(side) { $0.bytes -= message.count }
            onArrival(message)
            return wakeWriter(of: side)
        }
        change(side) { direction in
            direction.arrived.append(message)
            defer { direction.reader = nil }
            return direction.reader
        }?.resume()
    }

    /// Wakes the task that waits to send something to a side.
    private func wakeWriter(of side: Side) {
        let (writer, onRoom) = change(side) { direction in
            defer { direction.writer = nil }
            return (direction.writer, direction.onRoom)
        }
        writer?.resume()
        onRoom?()
    }

    fileprivate func send(_ messages: [[UInt8]], from side: Side) async throws {
        let isGone = closed.contains(side) || direction(side).end != nil
        guard !isGone else { throw LoveseatError(.webSocketAbnormalClose, "the connection is closed") }
        post(messages, from: side)
        await withCheckedContinuation { continuation in
            let mustWait = !hasRoom(from: side) && isOpen
            guard mustWait else { return continuation.resume() }
            change(side.other) { $0.writer = continuation }
        }
    }

    fileprivate func receive(at side: Side) async throws -> [[UInt8]]? {
        while true {
            let direction = direction(side)
            if !direction.arrived.isEmpty {
                change(side) { waiting in
                    waiting.bytes -= direction.arrived.reduce(0) { $0 + $1.count }
                    waiting.arrived = []
                }
                if self.direction(side).bytes < plan.capacity { wakeWriter(of: side) }
                return direction.arrived
            }
            switch direction.end {
            case .goodbye: return nil
            case .failure(let error): throw error
            case nil: break
            }
            await withCheckedContinuation { continuation in
                let direction = self.direction(side)
                let mustWait = direction.arrived.isEmpty && direction.end == nil
                guard mustWait else { return continuation.resume() }
                change(side) { $0.reader = continuation }
            }
        }
    }

    private func direction(_ side: Side) -> Direction { directions[side] ?? Direction() }

    @discardableResult
    private func change<T>(_ side: Side, _ body: (inout Direction) -> T) -> T {
        body(&directions[side, default: Direction()])
    }
}

/// One end of a link.
private struct SimulatedChannel: MessageChannel {
    let link: SimulatedLink
    let side: SimulatedLink.Side

    func send(_ messages: [[UInt8]]) async throws { try await link.send(messages, from: side) }

    func receive() async throws -> [[UInt8]]? { try await link.receive(at: side) }

    func close(code: Int, reason: String) async { link.close(side, code: code, reason: reason) }
}
