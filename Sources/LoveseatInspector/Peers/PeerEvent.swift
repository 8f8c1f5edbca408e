import LoveseatModel

/// Something that happened to a peer.
package struct PeerEvent: Sendable {
    package enum Kind: String, Sendable {
        case connected
        case upToDate = "up-to-date"
        case transferred
        case failed
        case offline
        case disconnected
    }

    /// Why a document is not at both sides: some of the reasons that `loveseat why` gives.
    package enum Reason: String, Sendable {
        case refused
        case notPulled = "not-pulled"
        case inConflict = "in-conflict"
    }

    package let number: Int
    /// In milliseconds since 1970.
    package let time: Int64
    package let kind: Kind
    package let peer: String
    package let text: String
    package var document: String?
    package var why: Reason?
    /// The connection's ``PeerSighting/key``.
    var connection = ""

    var json: JSONValue {
        var json: JSONObject = [
            "number": JSONValue(number), "time": JSONValue(time), "kind": .string(kind.rawValue),
            "peer": .string(peer), "text": .string(text),
        ]
        json["document"] = document.map { .string($0) }
        json["why"] = why.map { .string($0.rawValue) }
        json["connection"] = .string(connection)
        return .object(json)
    }
}

/// The last events.
package struct PeerEventLog: Sendable {
    static let maximumEvents = 1_000
    /// Text of peers is cut to this many characters, so that the log has a bound in bytes.
    static let maximumText = 500

    private var events: [PeerEvent] = []
    private(set) var lastNumber = 0

    package init() {}

    package mutating func add(
        _ kind: PeerEvent.Kind,
        _ peer: String,
        _ text: String,
        document: String? = nil,
        why: PeerEvent.Reason? = nil,
        on connection: String,
        at time: Int64
    ) {
        lastNumber += 1
        // Removing one at a time would move all others each time.
        if events.count >= 2 * Self.maximumEvents { events.removeFirst(events.count - Self.maximumEvents) }
        events.append(
            PeerEvent(
                number: lastNumber,
                time: time,
                kind: kind,
                peer: String(peer.prefix(Self.maximumText)),
                text: String(text.prefix(Self.maximumText)),
                document: document.map { String($0.prefix(Self.maximumText)) },
                why: why,
                connection: connection
            )
        )
    }

    /// The events after a number, of the last 1,000; the first ones if there are more than the limit.
    package func events(after number: Int, limit: Int) -> ArraySlice<PeerEvent> {
        let before = max(number, lastNumber - Self.maximumEvents)
        guard let start = events.firstIndex(where: { $0.number > before }) else { return [] }
        return events[start...].prefix(limit)
    }
}
