private import Foundation
package import LoveseatBLIP
package import LoveseatModel

/// A recorded story of a real gateway: what was done to it, and what was said over its connections (the lines of a
/// `gateway-….trace.jsonl`).
package struct GatewayRecording: Sendable {
    package enum Event: Sendable {
        /// Its process started with these databases, by name.
        case started(JSONObject)
        case stopped
        /// Something was changed over REST.
        case rest(GatewayTwin.RESTRequest, status: Int, answer: JSONValue?)
        /// An upgrade request or its answer.
        case http(isClient: Bool, [String])
        case message(Spoken)
        case close
    }

    /// A message.
    package struct Spoken: Sendable {
        package let isClient: Bool
        package let type: MessageType
        package let number: UInt64
        package let message: Message
    }

    /// The events on one connection and meanwhile, or those between connections.
    package struct Part: Sendable {
        package var isConnection: Bool
        package var events: [Event] = []

        var messages: [Spoken] {
            events.compactMap { if case .message(let spoken) = $0 { spoken } else { nil } }
        }
    }

    package private(set) var parts: [Part] = []

    package init(_ text: String) throws {
        var readers: [String: MessageReader] = [:]
        var part = Part(isConnection: false)
        for line in text.split(separator: "\n") {
            let event = try JSONElement(parsing: Array(line.utf8)).value
            if let state = event["connection"]?.string {
                parts.append(part)
                part = Part(isConnection: state == "opened")
                readers = ["active": MessageReader(), "passive": MessageReader()]
                continue
            }
            guard let direction = event["dir"]?.string else {
                if let event = Self.act(event) { part.events.append(event) }
                continue
            }
            if let lines = event["http"]?.array {
                part.events.append(.http(isClient: direction == "active", lines.compactMap(\.string)))
            } else if event["close"] != nil {
                part.events.append(.close)
            } else if let bytes = event["frame"]?.string.flatMap({ Data(base64Encoded: $0) }),
                let (frame, message, _) = try readers[direction]?.read(Array(bytes)), let message
            {
                let isClient = direction == "active"
                part.events.append(
                    .message(
                        Spoken(isClient: isClient, type: frame.type, number: frame.number, message: message)
                    )
                )
            }
        }
        parts.append(part)
    }

    private static func act(_ event: JSONValue) -> Event? {
        if let state = event["gateway"]?.string {
            return state == "started" ? .started(event["databases"]?.object ?? [:]) : .stopped
        }
        guard let rest = event["rest"], let method = rest["method"]?.string, let path = rest["path"]?.string
        else { return nil }
        let user = rest["by"]?.string == "admin" ? nil : rest["by"]?.string
        let request = GatewayTwin.RESTRequest(by: user, method, path, rest["body"])
        return .rest(request, status: rest["status"]?.int ?? 0, answer: rest["answer"])
    }
}

extension GatewayRecording.Spoken {
    /// The rows of a `changes` request by the gateway; nil for any other message.
    var rows: [JSONValue]? {
        guard !isClient, type == .request, message.profile == "changes" else { return nil }
        return GatewaySession.parse(message.body)?.array ?? []
    }
}

/// How the sequences of a recording and of the twin correspond: a gateway leaves numbers out when it was idle, so that
/// only their order is compared.
struct SequenceMap {
    private var toTwin: [Int: Int] = [:]
    private var toRecorded: [Int: Int] = [:]

    /// Whether the two may be the same, given all that were before.
    mutating func pair(_ recorded: Int, _ twin: Int) -> Bool {
        if let known = toTwin[recorded] { return known == twin }
        if toRecorded[twin] != nil { return false }
        guard toTwin.allSatisfy({ ($0.key < recorded) == ($0.value < twin) }) else { return false }
        toTwin[recorded] = twin
        toRecorded[twin] = recorded
        return true
    }

    mutating func pair(_ recorded: GatewaySequence, _ twin: GatewaySequence) -> Bool {
        switch (recorded.trigger, twin.trigger) {
        case (nil, nil): break
        case (let one?, let other?): guard pair(one, other) else { return false }
        default: return false
        }
        return pair(recorded.sequence, twin.sequence)
    }

    /// The twin's number for a recorded one; for one that was never announced, that of the last before it.
    private func twin(_ recorded: Int) -> Int {
        if let known = toTwin[recorded] { return known }
        if let before = toTwin.keys.filter({ $0 < recorded }).max() { return toTwin[before] ?? 0 }
        return min(recorded, (toTwin.values.min() ?? recorded + 1) - 1)
    }

    func twin(_ recorded: GatewaySequence) -> GatewaySequence {
        GatewaySequence(
            trigger: recorded.trigger.map(twin),
            recorded.sequence == 0 ? 0 : twin(recorded.sequence)
        )
    }

    func recorded(_ twin: GatewaySequence) -> GatewaySequence {
        GatewaySequence(
            trigger: twin.trigger.map { toRecorded[$0] ?? $0 },
            toRecorded[twin.sequence] ?? twin.sequence
        )
    }
}
