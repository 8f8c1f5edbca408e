package import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel

/// One connection of the gateway's twin, message by message.
///
/// It reads no clock and opens no socket: messages come in by ``receive(_:)``, wait until they are worked on, and the gateway's messages
/// are in ``drainOutput()``. A gateway handles requests on threads of their own, so their order of arrival is not kept (gateway.md 14):
/// ``work()`` takes them in a seeded random order, and a test that knows the order takes them one by one.
package final class GatewaySession {
    /// A message of the gateway.
    package enum Output: Sendable {
        case request(Message, tag: BLIPConnection.Tag?)
        case reply(Message, to: UInt64)
        case failure(ReplyError, to: UInt64)
    }

    /// A message that came and waits.
    package enum Arrival: Sendable {
        case request(number: UInt64, Message)
        case answer(tag: BLIPConnection.Tag, Result<Message, ReplyError>)
    }

    /// How many revisions of a connection are worked on at once (gateway.md 52).
    static let revisionsAtOnce = 5

    let twin: GatewayTwin
    let databaseName: String
    package let user: String
    let negotiated: ReplicationProtocol
    var generator: SeededGenerator
    /// Makes the nonce of a question for a proof, by the digest; nil for a random one.
    var makeNonce: (String) -> [UInt8]? = { _ in nil }
    /// The collections that the client bound, nil for those that do not exist; nil before it did.
    var bound: [String?]?
    /// By index; -1 stands for the default collection, unbound.
    var feeds: [Int: Feed] = [:]
    /// The collections in which no other subscription is possible any more (gateway.md 31).
    var closedFeeds: Set<Int> = []
    var awaited: [BLIPConnection.Tag: Awaited] = [:]
    var uploads: [UInt64: Upload] = [:]
    /// How often a digest may be asked for, by document, while revisions with it are being sent.
    var servable: [String: [String: Int]] = [:]
    /// Answers of the client that the gateway cannot read, in words.
    package internal(set) var misunderstood: [String] = []
    private var arrivals: [Arrival] = []
    private var said = Said()

    /// The gateway's own messages.
    private struct Said {
        var output: [Output] = []
        var lastTag: BLIPConnection.Tag = 0
    }

    /// The purpose of an answer.
    enum Awaited {
        case list([GatewayFeedRow], feed: Int)
        case attachment(digest: String, upload: UInt64)
        case proof(digest: String, nonce: [UInt8], upload: UInt64)
        case revision(id: String, digests: [String])
    }

    init(
        _ twin: GatewayTwin,
        database: String,
        user: String,
        negotiated: ReplicationProtocol,
        seed: UInt64
    ) {
        (self.twin, databaseName, self.user) = (twin, database, user)
        self.negotiated = negotiated
        generator = SeededGenerator(seed: seed)
        self.database.refreshAccess(of: user)
    }

    var isMobile2: Bool { negotiated == .mobile2 }

    var database: GatewayDatabase {
        get { twin.databases[databaseName] ?? GatewayDatabase(collections: [:]) }
        set { if twin.databases[databaseName] != nil { twin.databases[databaseName] = newValue } }
    }

    // MARK: Events

    /// Something came from the client.
    package func receive(_ event: BLIPConnection.Event) {
        switch event {
        case .request(let number, let message): arrivals.append(.request(number: number, message))
        case .response(let tag, let message): arrivals.append(.answer(tag: tag, .success(message)))
        case .failure(let tag, let error): arrivals.append(.answer(tag: tag, .failure(error)))
        case .piece, .sent, .wantsBody: break
        }
    }

    /// Returns the gateway's messages since the last call.
    package func drainOutput() -> [Output] {
        defer { said.output = [] }
        return said.output
    }

    /// Works on everything that waits, and sends what there is to announce.
    package func work() {
        while let index = nextArrival() { handle(arrivals.remove(at: index)) }
        advanceFeeds()
    }

    /// Works on the request of this number; false if it does not wait.
    @discardableResult
    package func work(onRequest number: UInt64) -> Bool {
        let index = arrivals.firstIndex {
            if case .request(number, _) = $0 { true } else { false }
        }
        guard let index else { return false }
        handle(arrivals.remove(at: index))
        return true
    }

    /// Works on all answers that wait.
    package func workOnAnswers() {
        while let index = arrivals.firstIndex(where: { if case .answer = $0 { true } else { false } }) {
            handle(arrivals.remove(at: index))
        }
    }

    /// The requests that wait, in the order of their arrival.
    package var waitingRequests: [(number: UInt64, message: Message)] {
        arrivals.compactMap {
            if case .request(let number, let message) = $0 { (number, message) } else { nil }
        }
    }

    /// Any of the first few is next: the order of arrival is not kept.
    private func nextArrival() -> Int? {
        let ready = arrivals.indices.filter { index in
            guard case .request(_, let message) = arrivals[index], message.profile == "rev" else {
                return true
            }
            return uploads.count < Self.revisionsAtOnce
        }
        guard let first = ready.first else { return nil }
        return generator.chance(0.8) ? first : generator.pick(Array(ready.prefix(Self.revisionsAtOnce)))
    }

    private func handle(_ arrival: Arrival) {
        switch arrival {
        case .request(let number, let message):
            do { try answer(message, number) } catch { fail(error, number) }
        case .answer(let tag, let result): answered(tag, result)
        }
    }

    // MARK: Saying

    func nextTag() -> BLIPConnection.Tag {
        said.lastTag += 1
        return said.lastTag
    }

    /// Puts properties into a random order, as a gateway does (gateway.md 7).
    func shuffled(_ properties: MessageProperties) -> MessageProperties {
        var shuffled = MessageProperties()
        for pair in properties.pairs.shuffled(using: &generator) { shuffled[pair.name] = pair.value }
        return shuffled
    }

    func send(_ message: Message, tag: BLIPConnection.Tag?) {
        var message = message
        message.properties = shuffled(message.properties)
        said.output.append(.request(message, tag: tag))
    }

    func reply(_ message: Message, to request: Message, _ number: UInt64) {
        if request.noReply { return }
        var message = message
        message.properties = shuffled(message.properties)
        message.isUrgent = request.isUrgent
        said.output.append(.reply(message, to: number))
    }

    func fail(_ error: ReplyError, _ number: UInt64) { said.output.append(.failure(error, to: number)) }

    static func json(_ value: JSONValue) -> [UInt8] { JSONText(canonical: value).bytes }
}
