import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// A session over `CBMobile_4`. The test speaks for the peer.
class SessionTalk {
    private var session: ReplicationSession
    /// What the session asked and nobody took yet.
    private(set) var requests: [(number: UInt64, message: Message)] = []
    private(set) var answers: [UInt64: Result<Message, ReplyError>] = [:]
    private(set) var reports: [ReplicationReport] = []
    private(set) var closeCode: Int?
    /// The request for collections, if the session began.
    private(set) var opening: Message?
    private var continuations: [UInt64: ReplyContinuation] = [:]
    private var timers: [ReplicationTimer] = []
    /// The conflicts that the app is to resolve.
    private(set) var conflicts: [ConflictNotice] = []
    /// The checkpoint of this side that the peer has; nil if it has none.
    var checkpoint: String?
    private var lastRequest: UInt64 = 0
    private var lastSaid: UInt64 = 0

    init(active change: (inout ActivePlan) -> Void, _ source: any ReplicaSource) {
        var plan = ActivePlan(
            collections: [.init(name: .default, checkpointID: "cp-x")],
            pushes: false,
            pulls: false,
            isContinuous: false
        )
        change(&plan)
        session = ReplicationSession(active: plan, replicas: source)
    }

    init(passive change: (inout PassivePlan) -> Void, _ source: any ReplicaSource) {
        var plan = PassivePlan(collections: [.default])
        change(&plan)
        session = ReplicationSession(passive: plan, replicas: source)
    }

    /// Opens the connection; nil where nothing is negotiated.
    func open(_ form: ReplicationProtocol?) { handle(session.connected(form)) }

    /// Opens the connection, and agrees on the default collection. `extensions`: those that the peer names.
    func begin(_ form: ReplicationProtocol? = .mobile4, extensions: String? = nil) throws {
        open(form)
        if requests.isEmpty {
            let body = #"{"checkpoint_ids":["cp-y"],"collections":["_default"]}"#
            _ = try say("getCollections", ["uuid": "7d475a3c-3645-4268-a83c-52a6f5b6da21"], body)?.get()
        } else {
            try answerCheckpoint(extensions)
        }
    }

    private func answerCheckpoint(_ extensions: String?) throws {
        guard has("getCheckpoint") else {
            let body = checkpoint.map { #"{"rev":"1-cc",\#($0.dropFirst())"# } ?? "{}"
            let request = try take("getCollections")
            opening = request.message
            var properties: MessageProperties = [:]
            properties["loveseat"] = extensions
            return try answer(request, properties, "[\(body)]")
        }
        // A session with trees about the default collection alone asks for its checkpoint only.
        let request = try take("getCheckpoint")
        if let checkpoint {
            try answer(request, ["rev": "1-cc"], checkpoint)
        } else {
            try refuse(request, "HTTP", 404)
        }
    }

    /// Has the session save its checkpoint at the peer.
    func saveCheckpoint() throws {
        while let timer = timers.firstIndex(of: .checkpoint(collection: 0)) {
            timers.remove(at: timer)
            handle(session.timerFired(.checkpoint(collection: 0)))
            if !has("setCheckpoint") { continue }
            let request = try take("setCheckpoint")
            checkpoint = String(decoding: request.message.body, as: UTF8.self)
            try answer(request, ["rev": "1-cc"])
        }
    }

    private func handle(_ effects: [ReplicationEffect]) {
        for effect in effects {
            switch effect {
            case .send(let message, let continuation):
                lastRequest += 1
                requests.append((lastRequest, message))
                guard let continuation else { continue }
                continuations[lastRequest] = continuation
                handle(session.sent(continuation))
            case .reply(let message, let number): answers[number] = .success(message)
            case .replyError(let error, let number, _): answers[number] = .failure(error)
            case .setTimer(let timer, _): timers.append(timer)
            case .cancelTimer(let timer): timers.removeAll { $0 == timer }
            case .report(let report): reports.append(report)
            case .close(let code, _): closeCode = code
            case .resolve(let notice): conflicts.append(notice)
            case .beginReply, .supply, .cancel, .fetch: break
            }
        }
    }

    // MARK: The peer

    /// Takes the next request of a kind.
    func take(_ profile: String) throws -> (number: UInt64, message: Message) {
        let index = requests.firstIndex { $0.message.properties["Profile"] == profile }
        return requests.remove(at: try #require(index, "there is no \(profile)"))
    }

    func has(_ profile: String) -> Bool { requests.contains { $0.message.properties["Profile"] == profile } }

    func answer(
        _ request: (number: UInt64, message: Message),
        _ properties: MessageProperties = [:],
        _ body: String = ""
    ) throws {
        let continuation = try continuation(of: request.number)
        handle(session.answered(continuation, .success(Message(properties, body: Array(body.utf8)))))
    }

    func refuse(_ request: (number: UInt64, message: Message), _ domain: String, _ code: Int) throws {
        let continuation = try continuation(of: request.number)
        handle(session.answered(continuation, .failure(ReplyError(domain, code, "no"))))
    }

    private func continuation(of request: UInt64) throws -> ReplyContinuation {
        let found = continuations.removeValue(forKey: request)
        return try #require(found, "request \(request) wants no answer, or has one")
    }

    /// Says something about the collection, and returns the answer, if one came.
    @discardableResult
    func say(_ profile: String, _ properties: MessageProperties = [:], _ body: String = "")
        throws -> Result<Message, ReplyError>?
    {
        var all: MessageProperties = ["Profile": profile]
        if profile != "getCollections" { all["collection"] = "0" }
        for (name, value) in properties.pairs { all[name] = value }
        lastSaid += 1
        handle(session.received(Message(all, body: Array(body.utf8)), number: lastSaid))
        while let timer = timers.firstIndex(of: .insert(collection: 0)) {
            timers.remove(at: timer)
            handle(session.timerFired(.insert(collection: 0)))
        }
        return answers[lastSaid]
    }

    /// The body of the answer to a list.
    func ask(_ profile: String, _ body: String) throws -> String {
        let answer = try #require(try say(profile, ["conflictIncludesRev": "true"], body))
        return String(decoding: try answer.get().body, as: UTF8.self)
    }

    /// The error with which the session refused what was said.
    func refusal(_ profile: String, _ properties: MessageProperties = [:], _ body: String = "") throws
        -> String
    {
        switch try say(profile, properties, body) {
        case .failure(let error): "\(error.domain)/\(error.code)"
        case .success(let message): "taken: \(String(decoding: message.body, as: UTF8.self))"
        case nil: "no answer"
        }
    }

    /// The app has resolved a conflict.
    func resolved(_ id: String) { handle(session.resolved(0, documentID: id, nil)) }

    /// Something was saved.
    func localChange() { handle(session.localChange(0)) }

    /// The errors of documents that were reported.
    var documentErrors: [String: LoveseatError.Code] {
        var errors: [String: LoveseatError.Code] = [:]
        for case .document(let event) in reports { errors[event.documentID] = event.error?.code }
        return errors
    }

    var failure: LoveseatError? {
        for case .failure(let error) in reports { return error }
        return nil
    }
}

/// A session with a collection in memory that only knows versions.
final class VersionedTalk: SessionTalk {
    let replica: VersionedReplica

    init(active change: (inout ActivePlan) -> Void) {
        replica = VersionedReplica(isActive: true)
        super.init(active: change, replica)
    }

    init(passive change: (inout PassivePlan) -> Void = { _ in }) {
        replica = VersionedReplica(isActive: false)
        super.init(passive: change, replica)
    }
}

/// Names of version-vectors.md §13.
enum Texts {
    static let (a, b) = ("VVebVXiW0M4XZMR/7WRPmw", "ZwCGnI/3SA40pwpwiwKHAA")
    static let (c, d) = ("y90Q1yAAs6QGig6myZrsaw", "adsxl26tN7hcxCpJyV/Qbg")
    static let a1 = "18e9f1f010000000@\(a)"
    static let b3 = "18e9f1f030000000@\(b)"
    static let c4 = "18e9f1f040000000@\(c)"
    static let d6 = "18e9f1f060000000@\(d)"
    /// An edit by b.
    static let vectorB3 = "\(b3); \(a1)"
    /// A merge by d.
    static let vectorM6 = "\(d6), \(c4), \(b3); \(a1)"
}
