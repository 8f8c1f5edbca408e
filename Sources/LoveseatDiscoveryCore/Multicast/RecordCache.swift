/// The records that were received on a link. Times are milliseconds.
struct RecordCache {
    struct Key: Hashable {
        let name: DomainName
        let type: UInt16
    }

    struct Entry {
        let data: DNSData
        var ttl: UInt32
        var received: Int64
        var expires: Int64
        /// How often it was asked for again, at 80, 85, 90 and 95 % of its time to live.
        var refreshes = 0

        var lifetime: Int64 { Int64(ttl) * 1_000 }

        func remaining(at now: Int64) -> Int64 { max(0, expires - now) }

        /// When to ask for it again.
        var refreshes80: Int64? {
            guard refreshes < 4, expires == received + lifetime else { return nil }
            return received + lifetime * Int64(80 + 5 * refreshes) / 100
        }
    }

    enum Change {
        case added
        case renewed
        case goodbye
        case refused
    }

    /// More than 512 peers need, each with PTR, SRV, TXT and several addresses.
    static let maximumRecords = 4_096
    /// A longer time to live is shortened to a day.
    private static let maximumTTL: UInt32 = 86_400

    private(set) var entries: [Key: [Entry]] = [:]
    private(set) var count = 0
    /// Nothing expires or needs a refresh before this.
    private(set) var nextDeadline = Int64.max

    subscript(name: DomainName, type: UInt16) -> [Entry] { entries[Key(name: name, type: type)] ?? [] }

    mutating func receive(_ record: DNSRecord, at now: Int64) -> Change {
        let key = Key(name: record.name, type: record.data.type)
        var list = entries[key] ?? []
        let index = list.firstIndex { $0.data == record.data }
        guard record.ttl > 0 else {
            guard let index else { return .refused }
            // Others may correct it within a second (RFC 6762, 10.1).
            list[index].expires = min(list[index].expires, now + 1_000)
            entries[key] = list
            nextDeadline = min(nextDeadline, list[index].expires)
            return .goodbye
        }
        let ttl = min(record.ttl, Self.maximumTTL)
        let entry = Entry(data: record.data, ttl: ttl, received: now, expires: now + Int64(ttl) * 1_000)
        if let index {
            list[index] = entry
        } else {
            guard count < Self.maximumRecords else { return .refused }
            count += 1
            list.append(entry)
        }
        entries[key] = list
        nextDeadline = min(nextDeadline, entry.refreshes80 ?? entry.expires)
        return index == nil ? .added : .renewed
    }

    /// The cache-flush bit: records older than a second that were not sent with the others expire in a second.
    mutating func flush(_ name: DomainName, _ type: UInt16, keeping sent: Set<DNSData>, at now: Int64) {
        let key = Key(name: name, type: type)
        // A full cache has refused the records, or all of them were goodbyes.
        guard var list = entries[key] else { return }
        for index in list.indices where !sent.contains(list[index].data) && list[index].received < now - 1_000
        {
            list[index].expires = min(list[index].expires, now + 1_000)
            nextDeadline = min(nextDeadline, list[index].expires)
        }
        entries[key] = list
    }

    /// Lets records expire soon unless they are received again.
    mutating func shorten(
        _ name: DomainName,
        _ type: UInt16,
        to deadline: Int64,
        where isMeant: (DNSData) -> Bool
    ) {
        let key = Key(name: name, type: type)
        // The records may have expired already.
        guard var list = entries[key] else { return }
        for index in list.indices where isMeant(list[index].data) {
            list[index].expires = min(list[index].expires, deadline)
            nextDeadline = min(nextDeadline, list[index].expires)
        }
        entries[key] = list
    }

    /// Removes what has expired. Returns it, and the questions for records that are to be refreshed.
    mutating func advance(to now: Int64, isWanted: (Key) -> Bool) -> (expired: [DNSRecord], asked: Set<Key>) {
        guard now >= nextDeadline else { return ([], []) }
        nextDeadline = .max
        var expired: [DNSRecord] = []
        var asked: Set<Key> = []
        for (key, list) in entries {
            var kept: [Entry] = []
            for var entry in list {
                guard entry.expires > now else {
                    expired.append(DNSRecord(key.name, entry.data, ttl: 0, isUnique: false))
                    count -= 1
                    continue
                }
                let wanted = isWanted(key)
                while wanted, let refresh = entry.refreshes80, refresh <= now {
                    entry.refreshes += 1
                    asked.insert(key)
                }
                nextDeadline = min(nextDeadline, (wanted ? entry.refreshes80 : nil) ?? entry.expires)
                kept.append(entry)
            }
            entries[key] = kept.isEmpty ? nil : kept
        }
        return (expired, asked)
    }

    /// Removes everything that nobody asks for any longer.
    mutating func keep(where isKept: (Key) -> Bool) {
        entries = entries.filter { isKept($0.key) }
        count = entries.values.reduce(0) { $0 + $1.count }
    }
}
