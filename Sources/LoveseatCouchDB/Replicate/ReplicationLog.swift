import Foundation
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// The log of a replication, in CouchDB's form (protocol/couchdb.md §3.3). It is kept in a `_local` document of each local side.
struct ReplicationLog: Sendable {
    private static let maximumHistory = 50

    /// The numbers of documents and revisions in this run.
    struct Counts: Hashable, Sendable {
        var checked = 0
        var missing = 0
        var read = 0
        var written = 0
        var failures = 0
    }

    private let key: String
    private let sessionID = CouchDBServer.newUUID()
    private let started = Date()
    /// Whether the replication has document IDs, with which the answer has more members.
    private let hasDocumentIDs: Bool
    private let sides: [Databases.Entry]
    /// The log of the last run.
    private let last: JSONElement?
    /// Where this run began.
    private var startSequence: JSONValue = 0
    /// How far this run is.
    private(set) var sequence: JSONValue = 0
    var counts = Counts()

    /// The sequence to which all sides say that the last run came; nil if they do not agree.
    private(set) var common: String?

    /// Reads what the local sides know of earlier runs.
    init(_ id: String, hasDocumentIDs: Bool, sides: [Databases.Entry]) throws {
        key = id
        self.hasDocumentIDs = hasDocumentIDs
        self.sides = sides
        let known = try sides.map { side in
            try side.store.readRows { try $0.peerCheckpoint(side.localKey(id)) }.map { JSONElement($0.body) }
        }
        let first = known.first ?? nil
        let session = first?["session_id"]?.string
        let agrees = session != nil && known.allSatisfy { ($0?["session_id"]?.string).isExactly(session) }
        last = agrees ? first : nil
        common = last?["source_last_seq"].map { $0.string ?? $0.value.description }
    }

    /// Notes where this run begins.
    mutating func begin(at sequence: JSONValue) { (startSequence, self.sequence) = (sequence, sequence) }

    mutating func advance(to sequence: JSONValue) { self.sequence = sequence }

    /// Whether this run did nothing.
    var isUnchanged: Bool { sequence == startSequence && counts == Counts() }

    private var document: JSONValue {
        let (start, end) = (Self.text(of: started), Self.text(of: Date()))
        let entry: JSONValue = [
            "session_id": .string(sessionID), "start_time": .string(start), "end_time": .string(end),
            "start_last_seq": startSequence, "end_last_seq": sequence, "recorded_seq": sequence,
            "missing_checked": JSONValue(counts.checked), "missing_found": JSONValue(counts.missing),
            "docs_read": JSONValue(counts.read), "docs_written": JSONValue(counts.written),
            "doc_write_failures": JSONValue(counts.failures), "bulk_get_docs": 0, "bulk_get_attempts": 0,
        ]
        let earlier = last?["history"]?.value.array ?? []
        var log: JSONValue = [
            "session_id": .string(sessionID), "source_last_seq": sequence, "replication_id_version": 4,
            "history": .array(Array(([entry] + earlier).prefix(Self.maximumHistory))),
        ]
        if hasDocumentIDs {
            for name in ["start_time", "end_time", "docs_read", "docs_written", "doc_write_failures"] {
                log[name] = entry[name]
            }
        }
        return log
    }

    /// The answer to the client.
    var answer: JSONValue {
        var answer = document
        if isUnchanged {
            let none: JSONValue = [
                "source_last_seq": startSequence, "replication_id_version": 4, "history": [],
            ]
            answer = last?.value ?? none
            answer["no_changes"] = true
        }
        answer["ok"] = true
        return answer
    }

    /// Saves the log at all local sides.
    func save(_ transaction: StoreWriteTransaction) throws {
        let text = JSONText(canonical: document)
        for side in sides {
            let key = side.localKey(key)
            let revision = try transaction.peerCheckpoint(key)?.revision ?? 0
            try transaction.checkpointTables.saveLocalDocument(key, revision: revision + 1, text)
        }
    }

    /// A date as HTTP writes it, such as `Sat, 21 Nov 2026 20:43:30 GMT`.
    private static func text(of date: Date) -> String {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents(
            [.weekday, .day, .month, .year, .hour, .minute, .second],
            from: date
        )
        func two(_ number: Int?) -> String { (number ?? 0) < 10 ? "0\(number ?? 0)" : "\(number ?? 0)" }
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let (day, month) = (days[(parts.weekday ?? 1) - 1], months[(parts.month ?? 1) - 1])
        return "\(day), \(two(parts.day)) \(month) \(parts.year ?? 1970) "
            + "\(two(parts.hour)):\(two(parts.minute)):\(two(parts.second)) GMT"
    }
}

extension Databases.Entry {
    /// The key under which a `_local` document of a database is stored, for clients without rights of their own.
    func localKey(_ name: String) -> String { "couchdb:\(handle.number)/\(name)" }
}
