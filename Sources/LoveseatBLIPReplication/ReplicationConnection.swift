package import LoveseatBLIP
package import LoveseatModel
package import LoveseatReplication

/// A session and the BLIP connection under it: frames in and out, with the database asked in between.
///
/// A driver runs it on the wall clock, and a simulator on a virtual one. It has no socket, no clock and no task.
package final class ReplicationConnection {
    /// An action that is left for the driver.
    package enum Action: Hashable, Sendable {
        case setTimer(ReplicationTimer, milliseconds: Int)
        case cancelTimer(ReplicationTimer)
        case resolve(ConflictNotice)
        case fetch(FetchNotice)
        case report(ReplicationReport)
        case close(code: Int, reason: String)
    }

    package private(set) var session: ReplicationSession
    private let connection: BLIPConnection
    private var continuations: [BLIPConnection.Tag: ReplyContinuation] = [:]
    private var nextTag: BLIPConnection.Tag = 0
    private var actions: [Action] = []
    /// The events that the connection reported last. The array is kept for its memory.
    private var events: [BLIPConnection.Event] = []
    /// Revisions handed to the transport.
    package private(set) var revisionsSent = 0
    private let largestMessage: Int
    private let spill: (any BodySpill)?
    /// Requests that came while the peer did not take the answers to earlier ones.
    private var heldRequests = HeldRequests()
    /// Revisions that came while others wait for their blobs.
    private var heldRevisions = HeldRequests()

    private var tuning: ReplicationTuning { session.tuning }

    /// Requests that wait, in order.
    private struct HeldRequests {
        var queue: [(number: UInt64, message: Message)] = []
        var bytes = 0

        var isEmpty: Bool { queue.isEmpty }
    }

    /// `spill`: takes received bodies that are too much for memory; without it they stay there.
    package init(
        session: ReplicationSession,
        limits: BLIPLimits = BLIPLimits(),
        spill: (any BodySpill)? = nil,
        deflater: (any Deflater)? = nil,
        checksum: ChecksumFunction? = nil
    ) {
        self.session = session
        self.spill = spill
        largestMessage = limits.largestMessage
        connection = BLIPConnection(limits: limits, spill: spill, deflater: deflater, checksum: checksum)
    }

    /// Unix time in seconds, for checkpoints.
    package var now: Int64 {
        get { session.now }
        set { session.now = newValue }
    }

    package var isOver: Bool { session.isOver }

    package func connected(_ negotiated: ReplicationProtocol?) -> [Action] {
        run { $0.connected(negotiated) }
    }
    package func timerFired(_ timer: ReplicationTimer) -> [Action] { run { $0.timerFired(timer) } }
    package func localChange(_ collection: Int) -> [Action] { run { $0.localChange(collection) } }
    package func accessChanged() -> [Action] { run { $0.accessChanged() } }
    package func resolved(_ collection: Int, documentID: String, _ error: LoveseatError?) -> [Action] {
        run { $0.resolved(collection, documentID: documentID, error) }
    }
    package func fetched(_ notice: FetchNotice, isComplete: Bool) -> [Action] {
        run { $0.fetched(notice, isComplete: isComplete) }
    }
    package func stop() -> [Action] { run { $0.stop() } }

    /// Takes a frame from the transport.
    package func receive(_ frame: [UInt8]) -> [Action] {
        run { session in
            session.conduct.hasHeard = true
            do throws(BLIPError) { try connection.receive(frame) } catch {
                return session.failed(Self.failure(error))
            }
            return []
        }
    }

    private static func failure(_ error: BLIPError) -> LoveseatError {
        if case .spill(let detail) = error { return LoveseatError(.ioError, detail) }
        return LoveseatError(.remoteError, "the peer broke the protocol: \(error)")
    }

    /// The next frame for the transport; nil when there is nothing to send now.
    package func nextFrame() -> (frame: [UInt8]?, actions: [Action]) {
        var frame: [UInt8]?
        let actions = run { session in
            do throws(BLIPError) { frame = try connection.nextFrame() } catch {
                return session.failed(
                    LoveseatError(.unexpectedError, "a message could not be sent: \(error)")
                )
            }
            return []
        }
        return (frame, actions)
    }

    package var hasNothingToSend: Bool { connection.hasNothingToSend }

    /// The transport is gone.
    package func disconnected() -> [Action] {
        _ = connection.disconnect()
        continuations = [:]
        for held in heldRequests.queue + heldRevisions.queue { spill?.drop(held.number << 1) }
        (heldRequests, heldRevisions) = (HeldRequests(), HeldRequests())
        return run { $0.disconnected() }
    }

    private func run(_ event: (inout ReplicationSession) -> [ReplicationEffect]) -> [Action] {
        var effects = event(&session)[...]
        while true {
            while let effect = effects.popFirst() { perform(effect) }
            connection.drainEvents(&events)
            for event in events { effects.append(contentsOf: self.effects(of: event)) }
            if !events.isEmpty { continue }
            guard let held = releaseNext() else { break }
            effects.append(contentsOf: held)
        }
        connection.allowance = session.revisionsExpected * largestMessage
        defer { actions = [] }
        return actions
    }

    // MARK: Requests that wait

    private func received(_ number: UInt64, _ message: Message) -> [ReplicationEffect] {
        if !heldRequests.isEmpty || connection.queuedBytes > tuning.unsentBytes {
            guard heldRequests.queue.count < tuning.requestsHeld else {
                return session.failed(
                    LoveseatError(.remoteError, "the peer asks more and more, and does not read the answers")
                )
            }
            return hold(number, message, in: &heldRequests)
        }
        return pass(number, message)
    }

    /// Hands a request to the session, unless it is a revision and there are too many.
    private func pass(_ number: UInt64, _ message: Message) -> [ReplicationEffect] {
        if !heldRevisions.isEmpty || session.isFull, message.kind == .revision {
            return hold(number, message, in: &heldRevisions)
        }
        return session.received(message, number: number)
    }

    private func hold(_ number: UInt64, _ message: Message, in held: inout HeldRequests)
        -> [ReplicationEffect]
    {
        var message = message
        if let spill, held.bytes + message.body.count > tuning.heldBytes {
            do { try spill.append(message.body, to: number << 1) } catch {
                return session.failed(Self.failure(.spill("\(error)")))
            }
            message.body = []
        }
        held.bytes += message.body.count
        held.queue.append((number, message))
        return []
    }

    /// The effects of the next request that need not wait any more; nil if there is none.
    private func releaseNext() -> [ReplicationEffect]? {
        guard !session.isOver else { return nil }
        do {
            if !heldRevisions.isEmpty, !session.isFull {
                let (number, message) = try release(from: &heldRevisions)
                return session.received(message, number: number)
            }
            if !heldRequests.isEmpty, connection.queuedBytes <= tuning.unsentBytes {
                let (number, message) = try release(from: &heldRequests)
                return pass(number, message)
            }
        } catch {
            return session.failed(Self.failure(.spill("\(error)")))
        }
        return nil
    }

    private func release(from held: inout HeldRequests) throws -> (UInt64, Message) {
        var (number, message) = held.queue.removeFirst()
        held.bytes -= message.body.count
        if message.body.isEmpty, let spill { message.body = try spill.remove(number << 1) }
        return (number, message)
    }

    private func perform(_ effect: ReplicationEffect) {
        do throws(BLIPError) {
            switch effect {
            case .send(let message, let continuation): try send(message, continuation)
            case .reply(let message, let number): try connection.reply(message, to: number)
            case .replyError(let error, let number, let isUrgent):
                try connection.reply(error, to: number, isUrgent: isUrgent)
            case .beginReply(let message, let number, let window):
                try connection.beginReply(message, to: number, window: window)
            case .cancel(let continuations): cancel(Set(continuations))
            case .supply(let bytes, let isLast, let number):
                connection.supply(bytes, isLast: isLast, for: number)
            case .setTimer(let timer, let milliseconds):
                actions.append(.setTimer(timer, milliseconds: milliseconds))
            case .cancelTimer(let timer): actions.append(.cancelTimer(timer))
            case .resolve(let notice): actions.append(.resolve(notice))
            case .fetch(let notice): actions.append(.fetch(notice))
            case .report(let report): actions.append(.report(report))
            case .close(let code, let reason): actions.append(.close(code: code, reason: reason))
            }
        } catch {
            let rest = session.failed(
                LoveseatError(.unexpectedError, "a message could not be sent: \(error)")
            )
            for effect in rest { perform(effect) }
        }
    }

    private func send(_ message: Message, _ continuation: ReplyContinuation?) throws(BLIPError) {
        if case .revision = continuation { revisionsSent += 1 }
        guard let continuation else { return try connection.send(message, tag: nil) }
        nextTag += 1
        continuations[nextTag] = continuation
        try connection.send(message, tag: nextTag, inPieces: continuation.isInPieces)
    }

    private func cancel(_ cancelled: Set<ReplyContinuation>) {
        let tags = continuations.filter { cancelled.contains($0.value) }.keys
        for tag in tags { continuations[tag] = nil }
        connection.cancelUnsent(Set(tags))
    }

    private func effects(of event: BLIPConnection.Event) -> [ReplicationEffect] {
        switch event {
        case .request(let number, let message): return received(number, message)
        case .response(let tag, let message):
            return continuations.removeValue(forKey: tag).map { session.answered($0, .success(message)) }
                ?? []
        case .failure(let tag, let error):
            return continuations.removeValue(forKey: tag).map { session.answered($0, .failure(error)) } ?? []
        case .piece(let tag, let bytes, let isLast):
            guard let continuation = continuations[tag] else { return [] }
            if isLast { continuations[tag] = nil }
            return session.piece(continuation, bytes, isLast: isLast)
        case .sent(let tag): return continuations[tag].map { session.sent($0) } ?? []
        case .wantsBody(let number): return session.wantsBody(number)
        }
    }
}
