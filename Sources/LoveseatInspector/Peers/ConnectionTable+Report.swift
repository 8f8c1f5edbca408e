package import LoveseatModel

extension ConnectionTable {
    /// The maximum number of events in a report.
    package static let maximumEventsOfReport = 200

    /// The report that `/api/peers` and `loveseat top` show.
    ///
    /// `number`: only events after it.
    package func report(after number: Int, at now: Int64) -> JSONValue {
        var titles: [String: Int] = [:]
        for line in lines.values { titles[line.sighting.title, default: 0] += 1 }
        let peers = lines.sorted { ($0.value.since, $0.key) < ($1.value.since, $1.key) }.map { key, line in
            var json = Self.json(key, line, at: now)
            // Peers with the same name are told apart by the numbers that `serve` prints.
            if titles[line.sighting.title, default: 0] > 1, let number = PeerSighting.number(of: key) {
                json["title"] = .string("\(line.sighting.title) (\(number))")
            }
            return json
        }
        let events = log.events(after: number, limit: Self.maximumEventsOfReport)
        return [
            "time": JSONValue(now), "peers": .array(peers), "past": past.json, "rates": rates.json,
            "events": .array(events.map(\.json)), "lastEvent": JSONValue(log.lastNumber),
        ]
    }

    private static func json(_ key: String, _ line: Line, at now: Int64) -> JSONValue {
        let sighting = line.sighting
        let pending = sighting.total > sighting.completed ? sighting.total - sighting.completed : 0
        var json: JSONObject = [
            "key": .string(key), "title": .string(sighting.title), "address": .string(sighting.address),
            "direction": .string(sighting.direction.rawValue), "wire": .string(sighting.wire),
            "state": .string(sighting.activity.rawValue), "since": JSONValue(line.since),
            "sent": JSONValue(sighting.sent), "received": JSONValue(sighting.received),
            "bytes": JSONValue(sighting.completed), "pendingBytes": JSONValue(pending),
            "failures": JSONValue(line.failures.count + Int(clamping: sighting.failures)),
            "rate": [
                "sent": JSONValue(line.rate.sent), "received": JSONValue(line.rate.received),
                "bytes": JSONValue(line.rate.bytes),
            ],
        ]
        json["user"] = sighting.user.map { .string($0) }
        json["certificate"] = sighting.certificate.map { .string($0) }
        json["fingerprint"] = sighting.fingerprint.map { .string($0) }
        json["error"] = (sighting.error ?? line.failures.latest?.message).map { .string($0) }
        json["upToDate"] = line.upToDate.map { JSONValue($0) }
        if let pending = line.pending {
            json["pendingDocuments"] = JSONValue(pending.count)
            (json["pendingOut"], json["pendingIn"]) = (
                JSONValue(pending.outgoing), JSONValue(pending.incoming)
            )
        }
        // How long something has been pending.
        if let behindSince = line.behindSince {
            json["lag"] = JSONValue(now - behindSince)
            json["why"] = "pending"
        } else if line.failures.count > 0 || sighting.failures > 0 {
            json["why"] = "refused"
        }
        return .object(json)
    }
}
