package import LoveseatBLIP
package import LoveseatModel

/// A session and the BLIP connection under it: frames in and out, with the database asked in between.
///
/// What a driver runs for real and a simulator runs on a virtual clock. Still no socket, no clock, no task.
package final class ReplicationPeer {
    /// What is left for the driver to do.
    package enum Action: Hashable, Sendable {
        case store(StoreRequest, then: StoreContinuation)
        case setTimer(ReplicationTimer, milliseconds: Int)
        case cancelTimer(ReplicationTimer)
        case resolve(ConflictNotice)
        case report(ReplicationReport)
        case close(code: Int, reason: String)
    }

    package private(set) var session: ReplicationSession
    private let connection: BLIPConnection
    private var continuations: [BLIPConnection.Tag: ReplyContinuation] = [:]
    private var nextTag: BLIPConnection.Tag = 0
    private var actions: [Action] = []
    /// Revisions handed to the transport.
    package private(set) var revisionsSent = 0

    package init(session: ReplicationSession, limits: BLIPLimits = BLIPLimits()) {
        self.session = session
        connection = BLIPConnection(limits: limits)
    }

    /// Unix time in seconds, for checkpoints.
    package var now: Int64 {
        get { session.now }
        set { session.now = newValue }
    }

    package var isOver: Bool { session.isOver }

    /// The bytes that wait to be sent. A driver stops reading from a peer that does not take its answers.
    package var queuedBytes: Int { connection.queuedBytes }

    package func connected(_ negotiated: ReplicationProtocol) -> [Action] { run { $0.connected(negotiated) } }
    package func stored(_ what: StoreContinuation, _ answer: StoreAnswer) -> [Action] {
        run { $0.stored(what, answer) }
    }
    package func timerFired(_ timer: ReplicationTimer) -> [Action] { run { $0.timerFired(timer) } }
    package func localChange(_ collection: Int) -> [Action] { run { $0.localChange(collection) } }
    package func accessChanged() -> [Action] { run { $0.accessChanged() } }
    package func resolved(_ collection: Int, documentID: String, _ error: LoveseatError?) -> [Action] {
        run { $0.resolved(collection, documentID: documentID, error) }
    }
    package func stop() -> [Action] { run { $0.stop() } }

    /// Takes a frame from the transport.
    package func receive(_ frame: [UInt8]) -> [Action] {
        run { session in
            do throws(BLIPError) { try connection.receive(frame) } catch {
                session.fail(LoveseatError(.remoteError, "the peer broke the protocol: \(error)"))
                defer { session.effects = [] }
                return session.effects
            }
            return []
        }
    }

    /// The next frame for the transport; nil when there is nothing to send now.
    package func nextFrame() -> (frame: [UInt8]?, actions: [Action]) {
        var frame: [UInt8]?
        let actions = run { session in
            do throws(BLIPError) { frame = try connection.nextFrame() } catch {
                session.fail(LoveseatError(.unexpectedError, "a message could not be sent: \(error)"))
                defer { session.effects = [] }
                return session.effects
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
        return run { $0.disconnected() }
    }

    private func run(_ event: (inout ReplicationSession) -> [ReplicationEffect]) -> [Action] {
        var effects = event(&session)[...]
        while true {
            while let effect = effects.popFirst() { perform(effect) }
            let events = connection.takeEvents()
            if events.isEmpty { break }
            for event in events { effects.append(contentsOf: self.effects(of: event)) }
        }
        defer { actions = [] }
        return actions
    }

    private func perform(_ effect: ReplicationEffect) {
        do throws(BLIPError) {
            switch effect {
            case .send(let message, let continuation): try send(message, continuation)
            case .reply(let message, let number): try connection.reply(message, to: number)
            case .replyError(let error, let number, let isUrgent):
                try connection.reply(error, to: number, isUrgent: isUrgent)
            case .beginReply(let message, let number): try connection.beginReply(message, to: number)
            case .supply(let bytes, let isLast, let number):
                connection.supply(bytes, isLast: isLast, for: number)
            case .store(let request, let continuation): actions.append(.store(request, then: continuation))
            case .setTimer(let timer, let milliseconds):
                actions.append(.setTimer(timer, milliseconds: milliseconds))
            case .cancelTimer(let timer): actions.append(.cancelTimer(timer))
            case .resolve(let notice): actions.append(.resolve(notice))
            case .report(let report): actions.append(.report(report))
            case .close(let code, let reason): actions.append(.close(code: code, reason: reason))
            }
        } catch {
            session.fail(LoveseatError(.unexpectedError, "a message could not be sent: \(error)"))
            let rest = session.effects
            session.effects = []
            for effect in rest { perform(effect) }
        }
    }

    private func send(_ message: Message, _ continuation: ReplyContinuation?) throws(BLIPError) {
        if message.profile == "rev" { revisionsSent += 1 }
        guard let continuation else { return try connection.send(message, tag: nil) }
        nextTag += 1
        continuations[nextTag] = continuation
        try connection.send(message, tag: nextTag, inPieces: continuation.isInPieces)
    }

    private func effects(of event: BLIPConnection.Event) -> [ReplicationEffect] {
        switch event {
        case .request(let number, let message): return session.received(message, number: number)
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
