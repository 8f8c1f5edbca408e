import LoveseatBLIPReplication
import LoveseatModel

/// A client's query of a feed (replication.md §6).
struct GatewayFeedQuery: Hashable, Sendable {
    var since = GatewaySequence.zero
    var channels: Set<String>?
    var documentIDs: [String]?
    var isContinuous = false
    var activeOnly = false
    var revocations = false
}

/// A row of a feed.
package struct GatewayFeedRow: Hashable, Sendable {
    /// The state of the document, as a row reports it (gateway.md 24).
    struct Flags: OptionSet, Hashable, Sendable {
        let rawValue: Int
        static let deleted = Flags(rawValue: 1)
        static let revoked = Flags(rawValue: 2)
        static let removed = Flags(rawValue: 4)
    }

    let sequence: GatewaySequence
    let id: String
    let revision: String
    /// The version of the revision, if it has one.
    let version: Version?
    let flags: Flags

    /// The row as each form of the protocol has it (gateway.md 23, 32, version-vectors.md §15).
    func json(_ form: ReplicationProtocol) -> JSONValue {
        let name = name(isVersioned: form == .mobile4)
        var row: [JSONValue] = [sequence.json, .string(id), .string(name)]
        if form == .mobile2 {
            if flags.contains(.deleted) { row.append(true) }
        } else if !flags.isEmpty {
            row.append(JSONValue(flags.rawValue))
        }
        return .array(row)
    }
}

extension GatewayDatabase {
    /// The rows of a user's feed, in its order (gateway.md 21–28, 54, 59, 63).
    func feed(of user: String, in keyspace: String, _ query: GatewayFeedQuery) -> [GatewayFeedRow] {
        let access = channels(of: user, in: keyspace)
        let documents = keyspaces[keyspace]?.documents ?? [:]
        if let ids = query.documentIDs { return rows(of: ids, documents, access, since: query.since) }
        var rows = FeedRows()
        let wanted = query.channels.map { access["*"] == nil ? $0.intersection(access.keys) : $0 }
        for channel in wanted ?? Set(access.keys) {
            let since = access[channel] ?? access["*"] ?? 1
            for document in documents.values {
                guard let row = row(of: document, in: channel, grantedAt: since, query.since) else {
                    continue
                }
                if row.sequence <= query.since { continue }
                if query.activeOnly, !row.flags.isEmpty { continue }
                // A user who still sees the document is not told that it left one of its channels.
                if row.flags == .removed, document.isVisible(to: access) { continue }
                rows.add(row)
            }
        }
        if query.revocations, !query.activeOnly, access["*"] == nil {
            addRevoked(to: &rows, user, keyspace, access, query)
        }
        return rows.sorted
    }

    /// Rows by place and document. If there are several for one, an active entry replaces a removal.
    private struct FeedRows {
        struct Key: Hashable {
            let sequence: GatewaySequence
            let id: String
        }
        var rows: [Key: GatewayFeedRow] = [:]

        mutating func add(_ row: GatewayFeedRow) {
            let key = Key(sequence: row.sequence, id: row.id)
            if let old = rows[key], !old.flags.contains(.removed) || row.flags.contains(.removed) { return }
            rows[key] = row
        }

        mutating func replace(_ row: GatewayFeedRow) {
            rows[Key(sequence: row.sequence, id: row.id)] = row
        }

        var sorted: [GatewayFeedRow] {
            rows.values.sorted { ($0.sequence, $0.id) < ($1.sequence, $1.id) }
        }
    }

    /// An entry in a channel's log.
    private struct Entry {
        let sequence: Int
        let revision: String
        let version: Version?
        let flags: GatewayFeedRow.Flags

        /// The row of the entry, at a place in a feed.
        func row(of id: String, at place: GatewaySequence, adding more: GatewayFeedRow.Flags = [])
            -> GatewayFeedRow
        {
            GatewayFeedRow(
                sequence: place,
                id: id,
                revision: revision,
                version: version,
                flags: flags.union(more)
            )
        }
    }

    /// The entry of a document in a channel's log: where the document was changed last, or left.
    private func entry(of document: GatewayDocument, in channel: String) -> Entry? {
        let current = Entry(
            sequence: document.sequence,
            revision: document.current,
            version: document.vector.current,
            flags: document.isDeleted ? .deleted : []
        )
        if channel == "*" { return current }
        guard let state = document.channels[channel] else { return nil }
        guard let removal = state else { return current }
        return Entry(
            sequence: removal.sequence,
            revision: removal.revision,
            version: removal.version,
            flags: removal.isDeleted ? [.removed, .deleted] : .removed
        )
    }

    /// A channel that was granted after the place where the reader is comes whole, as a backfill without tombstones.
    private func row(
        of document: GatewayDocument,
        in channel: String,
        grantedAt grant: Int,
        _ since: GatewaySequence
    ) -> GatewayFeedRow? {
        guard let entry = entry(of: document, in: channel) else { return nil }
        let isBackfill = grant > since.horizon && entry.sequence < grant
        if isBackfill, !entry.flags.isEmpty { return nil }
        let place = GatewaySequence(trigger: isBackfill ? grant : nil, entry.sequence)
        return entry.row(of: document.id, at: place)
    }

    /// Adds the documents that the user saw through lost channels, and sees through no other.
    private func addRevoked(
        to rows: inout FeedRows,
        _ user: String,
        _ keyspace: String,
        _ access: [String: Int],
        _ query: GatewayFeedQuery
    ) {
        for (channel, periods) in users[user]?.history[keyspace] ?? [:] {
            guard access[channel] == nil, query.channels?.contains(channel) ?? true,
                let end = periods.last?.end, end > query.since.horizon
            else { continue }
            for document in keyspaces[keyspace]?.documents.values.map({ $0 }) ?? [] {
                guard let entry = entry(of: document, in: channel), !document.isVisible(to: access) else {
                    continue
                }
                // Of documents that came into the channel later, only those are told that the reader may have seen.
                let wasThere = (document.memberships[channel] ?? []).contains { $0.start < end }
                guard wasThere || entry.sequence <= query.since.sequence else { continue }
                let sequence = GatewaySequence(trigger: end, entry.sequence)
                guard sequence > query.since else { continue }
                rows.replace(entry.row(of: document.id, at: sequence, adding: .revoked))
            }
        }
    }

    /// A feed of named documents: what they are now, or their removal.
    private func rows(
        of ids: [String],
        _ documents: [String: GatewayDocument],
        _ access: [String: Int],
        since: GatewaySequence
    ) -> [GatewayFeedRow] {
        var rows = FeedRows()
        for document in ids.compactMap({ documents[$0] }) {
            let entries = access.keys.compactMap { entry(of: document, in: $0) }
            let best =
                document.isVisible(to: access)
                ? entries.first { !$0.flags.contains(.removed) } ?? entry(of: document, in: "*")
                : entries.max { $0.sequence < $1.sequence }
            guard let best, best.sequence > since.horizon else { continue }
            rows.add(best.row(of: document.id, at: GatewaySequence(best.sequence)))
        }
        return rows.sorted
    }
}
