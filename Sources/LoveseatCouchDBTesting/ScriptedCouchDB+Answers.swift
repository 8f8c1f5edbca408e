private import Foundation
import LoveseatCouchDBReplication
import LoveseatModel

/// A CouchDB in memory, as a peer of simulated histories: the requests of a replicator and their answers, as recorded of a real one.
///
/// @unchecked because everything of a simulation runs on the thread that steps its clock.
package final class ScriptedCouchDB: @unchecked Sendable {
    var databases: [String: ScriptedCouchDatabase] = [:]
    /// Whether each name stands for a database that is there, as in simulated histories.
    private let createsAll: Bool
    private let comparesText: Bool
    private let name: String

    /// A server without databases.
    package init() { (createsAll, comparesText, name) = (false, false, "") }

    /// A peer of simulated histories.
    init(simulatedPeer index: Int, comparesText: Bool) {
        (createsAll, self.comparesText, name) = (true, comparesText, "peer\(index)")
    }

    func name(of collection: CollectionName) -> String {
        collection == .default ? name : "\(name).\(collection.scope).\(collection.name)"
    }

    func empty() -> ScriptedCouchDatabase {
        var database = ScriptedCouchDatabase()
        database.comparesText = comparesText
        return database
    }

    private typealias Refusal = ScriptedCouchDatabase.Refusal

    func answer(_ call: SimulatedCall) -> SimulatedAnswer {
        do throws(Refusal) {
            let (status, value) = try respond(call)
            return Self.answer(status, value)
        } catch {
            return Self.answer(
                error.status,
                ["error": .string(error.error), "reason": .string(error.reason)]
            )
        }
    }

    private static func answer(_ status: Int, _ value: JSONValue) -> SimulatedAnswer {
        var answer = SimulatedAnswer(status: status)
        answer.body = JSONText(canonical: value).bytes + [0x0A]
        answer.headers = [
            ("Content-Type", "application/json"), ("Server", "CouchDB/3.5.0 (Erlang OTP/25)"),
            ("Content-Length", "\(answer.body.count)"),
        ]
        return answer
    }

    // MARK: Requests

    private func respond(_ call: SimulatedCall) throws(Refusal) -> (Int, JSONValue) {
        let parts = call.target.split(separator: "?", maxSplits: 1)
        let query = Self.query(parts.count > 1 ? parts[1] : "")
        let path = (parts.first ?? "").split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
        guard let name = path.first else {
            return (
                200,
                ["couchdb": "Welcome", "version": "3.5.0", "uuid": "d5b4f1b2c3a44f0e9d8c7b6a59483726"]
            )
        }
        guard !name.hasPrefix("_") else {
            throw Refusal(status: 404, error: "not_found", reason: "Database does not exist.")
        }
        if path.count == 1, call.method == "PUT" {
            if databases[name] != nil {
                throw Refusal(
                    status: 412,
                    error: "file_exists",
                    reason: "The database could not be created, the file already exists."
                )
            }
            databases[name] = empty()
            return (201, ["ok": true])
        }
        guard var database = databases[name] ?? (createsAll ? empty() : nil) else {
            throw Refusal(status: 404, error: "not_found", reason: "Database does not exist.")
        }
        defer { databases[name] = database }
        if path.count == 1 { return (200, Self.information(of: database, name)) }
        switch path[1] {
        case "_local": return try Self.local(call, path.dropFirst(2).joined(separator: "/"), &database)
        case "_changes": return try Self.changes(call, query, database)
        case "_revs_diff": return try Self.differences(call, database)
        case "_bulk_get": return try Self.bulkGet(call, query, database)
        case "_bulk_docs": return try Self.bulkDocuments(call, &database)
        case "_ensure_full_commit": return (201, ["ok": true, "instance_start_time": "1795293651"])
        default:
            let id = path.dropFirst().joined(separator: "/")
            return call.method == "PUT"
                ? try Self.write(call, id, &database) : try Self.read(id, query, database)
        }
    }

    private static func query(_ text: Substring) -> [String: String] {
        var query: [String: String] = [:]
        for item in text.split(separator: "&") {
            let pair = item.split(separator: "=", maxSplits: 1).map {
                $0.replacing("+", with: " ").removingPercentEncoding ?? ""
            }
            query[pair[0]] = pair.count > 1 ? pair[1] : ""
        }
        return query
    }

    private static func body(_ call: SimulatedCall) throws(Refusal) -> JSONElement {
        do throws(JSONError) { return try JSONElement(scanning: call.body, limits: .envelope) } catch {
            throw Refusal(status: 400, error: "bad_request", reason: "invalid UTF-8 JSON")
        }
    }

    private static func revision(_ text: String) throws(Refusal) -> RevisionID {
        do throws(CouchDBError) { return try RevisionText.parse(text) } catch {
            throw Refusal(status: 400, error: "bad_request", reason: "Invalid rev format")
        }
    }

    /// A sequence as CouchDB writes it, of which only the number counts here.
    private static func sequence(_ number: Int) -> JSONValue { .string("\(number)-g1AAAACzeJzLYWBg") }

    private static func information(of database: ScriptedCouchDatabase, _ name: String) -> JSONValue {
        let deleted = database.documents.values.filter { document in
            document.ranked.first.map { document.nodes[$0]?.isDeleted == true } ?? true
        }.count
        return [
            "db_name": .string(name), "instance_start_time": "1795293651",
            "update_seq": sequence(database.sequence), "purge_seq": sequence(0),
            "doc_count": JSONValue(database.documents.count - deleted), "doc_del_count": JSONValue(deleted),
            "compact_running": false, "disk_format_version": 8,
        ]
    }

    private static func local(_ call: SimulatedCall, _ id: String, _ database: inout ScriptedCouchDatabase)
        throws(Refusal) -> (Int, JSONValue)
    {
        let known = database.locals[id]
        if call.method == "DELETE" {
            guard database.locals.removeValue(forKey: id) != nil else {
                throw Refusal(status: 404, error: "not_found", reason: "missing")
            }
            return (200, ["ok": true, "id": .string("_local/\(id)"), "rev": "0-0"])
        }
        guard call.method == "PUT" else {
            guard let known else { throw Refusal(status: 404, error: "not_found", reason: "missing") }
            var value = known.body
            value["_id"] = .string("_local/\(id)")
            value["_rev"] = .string("0-\(known.revision)")
            return (200, value)
        }
        var value = try body(call).value
        let given = value["_rev"]?.string.flatMap { Int($0.dropFirst(2)) }
        if let given, given != known?.revision {
            throw Refusal(status: 409, error: "conflict", reason: "Document update conflict.")
        }
        (value["_id"], value["_rev"]) = (nil, nil)
        // Without a revision it is 0-1, whatever was there.
        let next = (given ?? 0) + 1
        database.locals[id] = (next, value)
        return (201, ["ok": true, "id": .string("_local/\(id)"), "rev": .string("0-\(next)")])
    }

    private static func changes(
        _ call: SimulatedCall,
        _ query: [String: String],
        _ database: ScriptedCouchDatabase
    ) throws(Refusal) -> (Int, JSONValue) {
        let since = query["since"].flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
        let limit = query["limit"].flatMap { Int($0) } ?? .max
        var wanted: Set<String>?
        if query["filter"] == "_doc_ids" {
            let listed = query["doc_ids"].flatMap { try? JSONElement(parsing: Array($0.utf8)) }
            let ids = if let listed { listed } else { try body(call)["doc_ids"] }
            wanted = Set(ids?.items.compactMap(\.string) ?? [])
        }
        let changed = database.documents.filter { $0.value.sequence > since }
        let rows = changed.filter { wanted?.contains($0.key) ?? true }
            .sorted { $0.value.sequence < $1.value.sequence }
        let listed = rows.prefix(limit)
        let results = listed.map { id, document -> JSONValue in
            let leaves = query["style"] == "all_docs" ? document.ranked : Array(document.ranked.prefix(1))
            var row: JSONValue = [
                "seq": sequence(document.sequence), "id": .string(id),
                "changes": .array(leaves.map { ["rev": .string($0.text)] }),
            ]
            if let winner = leaves.first, document.nodes[winner]?.isDeleted == true { row["deleted"] = true }
            return row
        }
        let last = rows.count > limit ? listed.last?.value.sequence ?? since : max(since, database.sequence)
        return (
            200,
            [
                "results": .array(results), "last_seq": sequence(last),
                // A real one counts the documents that were not asked for.
                "pending": JSONValue(changed.count - listed.count),
            ]
        )
    }

    private static func differences(_ call: SimulatedCall, _ database: ScriptedCouchDatabase)
        throws(Refusal) -> (Int, JSONValue)
    {
        var answer: JSONValue = [:]
        for (id, revisions) in try body(call).members {
            let document = database.documents[id] ?? ScriptedCouchDatabase.Document()
            var missing: [RevisionID] = []
            for text in revisions.items.compactMap(\.string) {
                let id = try revision(text)
                if document.nodes[id] == nil { missing.append(id) }
            }
            guard let highest = missing.map(\.generation).max() else { continue }
            var entry: JSONValue = ["missing": .array(missing.map { .string($0.text) })]
            let ancestors = document.leaves.filter { $0.generation < highest }
            if !ancestors.isEmpty {
                entry["possible_ancestors"] = .array(ancestors.map { .string($0.text) })
            }
            answer[id] = entry
        }
        return (200, answer)
    }

    private static func bulkGet(
        _ call: SimulatedCall,
        _ query: [String: String],
        _ database: ScriptedCouchDatabase
    ) throws(Refusal) -> (Int, JSONValue) {
        var results: [JSONValue] = []
        for item in try body(call)["docs"]?.items.map({ $0 }) ?? [] {
            let id = item["id"]?.string ?? ""
            var found: [JSONValue] = []
            if let text = item["rev"]?.string {
                let asked = try revision(text)
                let document = database.documents[id]
                // The leaves above the one that was asked for.
                let leaves = (document?.ranked ?? []).filter { document?.line($0).contains(asked) == true }
                let chosen = query["latest"] == "true" && !leaves.isEmpty ? leaves : [asked]
                // A client that says what it has gets the content of newer attachments, and one that does not gets none.
                let has = item["atts_since"]?.items.compactMap(\.string).compactMap { RevisionID($0) } ?? []
                let given = chosen.compactMap {
                    database.json(
                        id,
                        $0,
                        revisions: query["revs"] == "true",
                        since: has.isEmpty ? nil : has
                    )
                }
                found = given.map { ["ok": $0] }
                if found.isEmpty {
                    found = [
                        [
                            "error": [
                                "id": .string(id), "rev": .string(text), "error": "not_found",
                                "reason": "missing",
                            ]
                        ]
                    ]
                }
            } else if let winner = database.documents[id]?.ranked.first,
                let json = database.json(id, winner, revisions: query["revs"] == "true")
            {
                found = [["ok": json]]
            }
            results.append(["id": .string(id), "docs": .array(found)])
        }
        return (200, ["results": .array(results)])
    }

    private static func bulkDocuments(_ call: SimulatedCall, _ database: inout ScriptedCouchDatabase)
        throws(Refusal) -> (Int, JSONValue)
    {
        let request = try body(call)
        guard request["new_edits"]?.bool == false else {
            throw Refusal(status: 501, error: "not_implemented", reason: "no replicator sends that")
        }
        var revisions: [ScriptedCouchDatabase.Incoming] = []
        for item in request["docs"]?.items.map({ $0 }) ?? [] {
            revisions.append(try ScriptedCouchDatabase.Incoming(item, id: nil, parts: []))
        }
        try database.merge(revisions)
        return (201, [])
    }

    private static func write(_ call: SimulatedCall, _ id: String, _ database: inout ScriptedCouchDatabase)
        throws(Refusal) -> (Int, JSONValue)
    {
        var parts: [[UInt8]] = []
        var text = call
        let type = call.headers.first { $0.name.lowercased() == "content-type" }?.value ?? ""
        if let boundary = MediaType(type)?.boundary {
            parts = ScriptedParts.divide(call.body, boundary: boundary)
            guard let first = parts.first else {
                throw Refusal(status: 400, error: "bad_request", reason: "no document")
            }
            text.body = first
            parts.removeFirst()
        }
        let revision = try ScriptedCouchDatabase.Incoming(try body(text), id: id, parts: parts)
        try database.merge([revision])
        let answer: JSONValue = [
            "ok": true, "id": .string(id), "rev": .string(revision.history.first?.text ?? ""),
        ]
        return (201, answer)
    }

    private static func read(_ id: String, _ query: [String: String], _ database: ScriptedCouchDatabase)
        throws(Refusal) -> (Int, JSONValue)
    {
        let document = database.documents[id]
        let asked: RevisionID? =
            if let text = query["rev"] { try revision(text) } else { document?.ranked.first }
        let known = query["atts_since"].flatMap { try? JSONElement(parsing: Array($0.utf8)) }
        let since = known?.items.compactMap(\.string).compactMap { RevisionID($0) }
        let wantsContent = query["attachments"] == "true" || since != nil
        guard let asked,
            let json = database.json(
                id,
                asked,
                revisions: query["revs"] == "true",
                since: wantsContent ? since ?? [] : nil
            )
        else { throw Refusal(status: 404, error: "not_found", reason: "missing") }
        if query["rev"] == nil, document?.nodes[asked]?.isDeleted == true {
            throw Refusal(status: 404, error: "not_found", reason: "deleted")
        }
        return (200, json)
    }
}
