package import LoveseatBLIP
import LoveseatModel
package import LoveseatReplication

/// An effect that a session asks of its driver.
package enum ReplicationEffect: Hashable, Sendable {
    /// Send a request; the answer comes back with the continuation.
    case send(Message, then: ReplyContinuation?)
    case reply(Message, to: UInt64)
    case replyError(ReplyError, to: UInt64, isUrgent: Bool)
    /// Begin an answer whose body the driver asks for with ``ReplicationSession/wantsBody(_:)``.
    case beginReply(Message, to: UInt64, window: UInt64)
    case supply([UInt8], isLast: Bool, to: UInt64)
    /// Take back requests that are still queued, and ignore the answers to those that are not.
    case cancel([ReplyContinuation])
    /// Fire once after so many milliseconds; setting again moves it.
    case setTimer(ReplicationTimer, milliseconds: Int)
    case cancelTimer(ReplicationTimer)
    /// Have the app resolve a document's conflict, away from this connection.
    case resolve(ConflictNotice)
    /// Have documents pulled by their IDs, over another connection.
    case fetch(FetchNotice)
    case report(ReplicationReport)
    /// Say goodbye; the session is over.
    case close(code: Int, reason: String)
}

/// The purpose of a peer's answer. It has names and numbers only, never a closure.
package enum ReplyContinuation: Hashable, Sendable {
    case getCollections
    case getCheckpoint(collection: Int)
    /// Says how the peer names revisions.
    case form
    case refetchCheckpoint(collection: Int)
    case setCheckpoint(collection: Int)
    case subscribe(collection: Int)
    case proposals(collection: Int, list: Int)
    case changes(collection: Int, list: Int)
    case revision(collection: Int, number: Int)
    case blob(collection: Int, BlobHandle)

    /// Whether the answer's body comes in pieces.
    package var isInPieces: Bool { if case .blob = self { true } else { false } }
}

package enum ReplicationTimer: Hashable, Sendable {
    case checkpoint(collection: Int)
    case insert(collection: Int)
    /// Requests again the documents that the peer could not send.
    case retry(collection: Int)
    case stop
    /// Checks whether the peer of a single pass has sent anything lately.
    case silence
}

extension LoveseatError {
    /// The error of a session whose peer does not have these collections.
    static func lacking(_ missing: [CollectionName]) -> LoveseatError {
        let names = missing.map { "'\($0.path)'" }.joined(separator: ", ")
        var error = LoveseatError(.httpNotFound, "Collection \(names) is not found on the remote server")
        error.collections = .lacks(missing)
        return error
    }

    /// A peer's error reply in our codes (replication.md §15).
    init(reply: ReplyError, _ doing: String) {
        self = Self.converted(reply, doing)
        if code == .httpForbidden, let names = ServedCollections.permitted(by: reply) {
            collections = .permits(names)
        }
    }

    private static func converted(_ reply: ReplyError, _ doing: String) -> LoveseatError {
        let text = reply.text.isEmpty ? "error \(reply.domain)/\(reply.code)" : reply.text
        let message = "\(doing): the peer says \"\(text)\""
        // A peer may send any number.
        let isKnown = (0...99_999).contains(reply.code)
        return switch reply.domain {
        case _ where !isKnown: LoveseatError(.remoteError, message)
        case "HTTP", "WebSocket": LoveseatError(.init(10_000 + reply.code), message)
        case "LiteCore": LoveseatError(.init(reply.code), message)
        case "Network": LoveseatError(.init(5_000 + reply.code), message)
        case "POSIX": LoveseatError(.init(reply.code, domain: .posix), message)
        case "SQLite": LoveseatError(.init(reply.code, domain: .sqlite), message)
        default: LoveseatError(.remoteError, message)
        }
    }
}

extension ReplyError {
    /// Whether it says that the peer broke a rule, and not that something could not be done.
    var isViolation: Bool {
        switch domain {
        case "BLIP", "HTTP": code == 400
        case "LiteCore":
            [LoveseatError.Code.badRevisionID, .invalidParameter, .corruptData].contains { $0.value == code }
        default: false
        }
    }

    /// Our error as a reply (replication.md §15.1).
    init(_ error: LoveseatError) {
        switch error.code.domain {
        case .posix: self.init("POSIX", error.code.value, error.message)
        case .sqlite: self.init("SQLite", error.code.value, error.message)
        case .couchbaseLite:
            switch error.code.value {
            // This database is locked for a while, which is not a fault of the request.
            case LoveseatError.Code.busy.value: self.init("HTTP", 503, error.message)
            case 10_000..<11_000: self.init("HTTP", error.code.value - 10_000, error.message)
            case 11_000...: self.init("WebSocket", error.code.value - 10_000, error.message)
            case 5_000..<6_000: self.init("Network", error.code.value - 5_000, error.message)
            default: self.init("LiteCore", error.code.value, error.message)
            }
        }
    }
}
