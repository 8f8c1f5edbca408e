import LoveseatModel

/// The peers of earlier connections, with their last sync: the last 200.
struct PastPeers: Sendable {
    static let maximumPeers = 200

    private struct Entry: Sendable {
        var title: String
        var address: String
        var direction: String
        var wire: String
        var fingerprint: String?
        /// In milliseconds since 1970: the last time that it was connected, and that it had everything.
        var seen: Int64
        var upToDate: Int64?
        var sent: UInt64
        var received: UInt64
    }

    private var entries: [String: Entry] = [:]
    private var hasChanged = false

    init() {}

    init(_ json: JSONValue?) {
        // Nothing was recorded yet, or another version has recorded it in another form.
        guard case .array(let items) = json ?? .null else { return }
        for item in items.prefix(Self.maximumPeers) {
            guard let key = item["key"]?.string, let seen = item["seen"]?.int else { continue }
            entries[key] = Entry(
                title: item["title"]?.string ?? "",
                address: item["address"]?.string ?? "",
                direction: item["direction"]?.string ?? "",
                wire: item["wire"]?.string ?? "",
                fingerprint: item["fingerprint"]?.string,
                seen: Int64(seen),
                upToDate: item["upToDate"]?.int.map { Int64($0) },
                sent: UInt64(clamping: item["sent"]?.int ?? 0),
                received: UInt64(clamping: item["received"]?.int ?? 0)
            )
        }
    }

    mutating func note(_ line: ConnectionTable.Line, at now: Int64) {
        let sighting = line.sighting
        let key = String(sighting.identity.prefix(PeerEventLog.maximumText))
        let isOld = entries[key].map { now - $0.seen < 1_000 && $0.upToDate != nil } ?? false
        entries[key] = Entry(
            title: String(sighting.title.prefix(PeerEventLog.maximumText)),
            address: String(sighting.address.prefix(PeerEventLog.maximumText)),
            direction: sighting.direction.rawValue,
            wire: sighting.wire,
            fingerprint: sighting.fingerprint,
            seen: now,
            upToDate: line.upToDate ?? entries[key]?.upToDate,
            sent: sighting.sent,
            received: sighting.received
        )
        if !isOld { hasChanged = true }
        if entries.count > Self.maximumPeers,
            let oldest = entries.min(by: { $0.value.seen < $1.value.seen })
        {
            entries[oldest.key] = nil
        }
    }

    /// The peers as JSON if they have changed since the last call.
    mutating func drainChange() -> JSONValue? {
        guard hasChanged else { return nil }
        hasChanged = false
        return json
    }

    var json: JSONValue {
        let sorted = entries.sorted { ($1.value.seen, $0.key) < ($0.value.seen, $1.key) }
        return .array(
            sorted.map { key, entry in
                var json: JSONObject = [
                    "key": .string(key), "title": .string(entry.title), "address": .string(entry.address),
                    "direction": .string(entry.direction), "wire": .string(entry.wire),
                    "seen": JSONValue(entry.seen), "sent": JSONValue(entry.sent),
                    "received": JSONValue(entry.received),
                ]
                json["fingerprint"] = entry.fingerprint.map { .string($0) }
                json["upToDate"] = entry.upToDate.map { JSONValue($0) }
                return .object(json)
            }
        )
    }
}
