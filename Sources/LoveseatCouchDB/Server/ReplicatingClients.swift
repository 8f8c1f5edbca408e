import Foundation
import LoveseatCore
import LoveseatModel
import Synchronization

/// The clients that replicate with a listener, as far as their requests tell: each direction is a task until nothing was asked for a while.
final class ReplicatingClients: Sendable {
    /// A client pulls from, or pushes to, a database.
    enum Direction: String, Sendable { case pull, push }

    /// The numbers that a request adds to a task.
    struct Amount: Sendable {
        var read = 0
        var written = 0
        var failures = 0
        var checked = 0
        var missing = 0
    }

    private struct Key: Hashable {
        let client: String
        let database: String
        let direction: Direction
    }

    private struct Line {
        let number: Int
        let user: String?
        let started: Int64
        var updated: Int64
        var openFeeds = 0
        var isContinuous = false
        var amount = Amount()
    }

    /// How long a client without a request is listed, in seconds.
    private static let patience: Int64 = 60
    private static let maximumLines = 1_000

    private struct State {
        var lines: [Key: Line] = [:]
        var next = 0
    }

    private let state = Mutex(State())

    static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    private static func key(_ entry: Databases.Entry, _ exchange: Exchange, _ direction: Direction) -> Key {
        let agent = exchange.header("User-Agent")?.prefix(100) ?? ""
        let who = exchange.peer.name ?? ""
        return Key(
            client: "\(who)\n\(exchange.peer.address)\n\(agent)",
            database: entry.name,
            direction: direction
        )
    }

    /// Notes a request of a replication.
    func note(
        _ direction: Direction,
        _ entry: Databases.Entry,
        _ exchange: Exchange,
        isContinuous: Bool = false,
        _ amount: Amount = Amount()
    ) {
        let key = Self.key(entry, exchange, direction)
        state.withLock { state in
            if state.lines[key] == nil {
                Self.forgetOld(&state)
                if state.lines.count >= Self.maximumLines { return }
                state.next += 1
                state.lines[key] = Line(
                    number: state.next,
                    user: exchange.peer.name,
                    started: Self.now,
                    updated: Self.now
                )
            }
            state.lines[key]?.updated = Self.now
            if isContinuous { state.lines[key]?.isContinuous = true }
            state.lines[key]?.amount.read += amount.read
            state.lines[key]?.amount.written += amount.written
            state.lines[key]?.amount.failures += amount.failures
            state.lines[key]?.amount.checked += amount.checked
            state.lines[key]?.amount.missing += amount.missing
        }
    }

    /// Notes that a feed of a client begins or ends.
    func noteFeed(_ entry: Databases.Entry, _ exchange: Exchange, isOpen: Bool) {
        let key = Self.key(entry, exchange, .pull)
        state.withLock { state in
            state.lines[key]?.openFeeds += isOpen ? 1 : -1
            state.lines[key]?.updated = Self.now
        }
    }

    private static func forgetOld(_ state: inout State) {
        let oldest = now - patience
        state.lines = state.lines.filter { $0.value.openFeeds > 0 || $0.value.updated >= oldest }
    }

    /// The replications of clients that are going on.
    var tasks: [ReplicationTask] {
        let lines = state.withLock { state in
            Self.forgetOld(&state)
            return state.lines
        }
        return lines.map { key, line in
            let parts = key.client.split(separator: "\n", omittingEmptySubsequences: false)
            let client =
                "\(parts.count > 2 && !parts[2].isEmpty ? "\(parts[2]) " : "")at \(parts.count > 1 ? parts[1] : "")"
            var task = ReplicationTask(
                id: "\(ReplicationTask.clientPrefix)\(line.number)",
                source: key.direction == .pull ? key.database : client,
                target: key.direction == .pull ? client : key.database,
                isContinuous: line.isContinuous
            )
            task.user = line.user
            task.documentsRead = UInt64(line.amount.read)
            task.documentsWritten = UInt64(key.direction == .pull ? line.amount.read : line.amount.written)
            task.writeFailures = UInt64(line.amount.failures)
            task.revisionsChecked = UInt64(line.amount.checked)
            task.missingRevisions = UInt64(line.amount.missing)
            task.started = line.started
            task.updated = line.updated
            return task
        }
    }

    /// A task in CouchDB's form.
    static func json(_ task: ReplicationTask) -> JSONValue {
        var json: JSONValue = [
            "type": "replication", "node": "loveseat@127.0.0.1", "pid": .string(task.id),
            "replication_id": .string(task.id + (task.isContinuous ? "+continuous" : "")),
            "source": .string(task.source), "target": .string(task.target),
            "continuous": .bool(task.isContinuous), "user": task.user.map { .string($0) } ?? .null,
            "docs_read": JSONValue(task.documentsRead), "docs_written": JSONValue(task.documentsWritten),
            "doc_write_failures": JSONValue(task.writeFailures),
            "revisions_checked": JSONValue(task.revisionsChecked),
            "missing_revisions_found": JSONValue(task.missingRevisions),
        ]
        let position = task.position
        json["changes_pending"] = position.map { JSONValue($0.pending) } ?? .null
        json["source_seq"] = position.map { JSONValue($0.source) } ?? .null
        json["through_seq"] = position.map { JSONValue($0.through) } ?? .null
        json["checkpointed_source_seq"] = position.map { JSONValue($0.through) } ?? .null
        if let started = task.started { json["started_on"] = JSONValue(started) }
        if let updated = task.updated { json["updated_on"] = JSONValue(updated) }
        return json
    }
}
