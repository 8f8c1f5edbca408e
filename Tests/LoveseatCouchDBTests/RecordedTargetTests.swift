import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import Testing

/// What a real CouchDB 3.5 answered to pushes of its own replicator, for the same revisions in other portions.
private struct RecordedTarget: Sendable {
    /// The revisions that it lacked, as it named them.
    private var missing: [String: JSONElement] = [:]
    /// Why it refused documents of a batch.
    private var refusals: [String: JSONElement] = [:]
    /// The answer to a batch with a document that is too large.
    private var tooLarge: (id: String, body: String)?
    private var information = "{}"
    /// The documents as CouchDB's replicator sent them.
    private(set) var sent: [DocumentLeaf: JSONValue] = [:]

    /// What it answered to documents that were sent by themselves, by their paths in the database.
    private var single: [String: (status: Int, body: String)] = [:]
    /// The messages with the documents that have attachments.
    private(set) var messages: [DocumentLeaf: MultipartMessage] = [:]

    /// The documents that were not taken.
    var refused: Set<String> {
        let alone = messages.keys.map(\.documentID).filter { id in
            single.contains { $0.key.hasPrefix(id) && $0.value.status == 403 }
        }
        return Set(refusals.keys).union(tooLarge.map { [$0.id] } ?? []).union(alone)
    }

    init(_ lines: [JSONElement]) throws {
        for line in lines where line["actor"]?.string == "couchdb-replicator" && line["injected"] == nil {
            guard let path = line["path"]?.string, let method = line["method"]?.string else { continue }
            let answer = line["response"]?["body"]?.string ?? ""
            let request = line["request"]?["body"]?.string ?? ""
            switch (method, path.split(separator: "/").dropFirst().joined(separator: "/")) {
            case ("GET", ""): information = answer
            case ("POST", "_revs_diff"):
                for (id, row) in try JSONElement(parsing: Array(answer.utf8)).members where missing[id] == nil
                {
                    missing[id] = row
                }
            case ("POST", "_bulk_docs"):
                if line["status"]?.int == 413 {
                    let id = try JSONElement(parsing: Array(answer.utf8))["reason"]?.string
                    tooLarge = id.map { ($0, answer) }
                }
                for row in try JSONElement(parsing: Array(answer.utf8)).items {
                    if let id = row["id"]?.string { refusals[id] = row }
                }
                try note(JSONElement(parsing: Array(request.utf8))["docs"]?.items.map(\.self) ?? [])
            case ("PUT", let target) where !target.hasPrefix("_local/"):
                single[target] = (line["status"]?.int ?? 0, answer)
                if let message = try MultipartMessage(recorded: line) {
                    messages[try Self.leaf(JSONElement(JSONText(canonical: message.document)))] = message
                } else if !request.isEmpty {
                    try note([JSONElement(parsing: Array(request.utf8))])
                }
            default: break
            }
        }
    }

    private mutating func note(_ documents: [JSONElement]) throws {
        for document in documents { sent[try Self.leaf(document)] = document.value }
    }

    static func leaf(_ document: JSONElement) throws -> DocumentLeaf {
        DocumentLeaf(
            documentID: try #require(document["_id"]?.string),
            revision: try #require(RevisionID(document["_rev"]?.string ?? ""))
        )
    }

    func answer(_ request: RawServer.Request) -> RawServer.Reply? {
        let path = request.target.split(separator: "/").dropFirst().joined(separator: "/")
        let body = try? JSONElement(parsing: request.body)
        switch (request.method, path) {
        case ("GET", _) where path.hasPrefix("_local/"):
            return RawServer.json(404, #"{"error":"not_found","reason":"missing"}"#)
        case ("GET", _): return RawServer.json(200, information.replacing(/"<seq:[0-9]+>"/, with: "\"1-x\""))
        case ("POST", "_revs_diff"):
            var rows: JSONObject = [:]
            for (id, revisions) in body?.members.map({ ($0.key, $0.value) }) ?? [] {
                let lacked = missing[id]?["missing"]?.items.compactMap(\.string) ?? []
                if revisions.items.contains(where: { lacked.contains($0.string ?? "") }) {
                    rows[id] = missing[id]?.value
                }
            }
            return RawServer.json(200, JSONText(canonical: .object(rows)).description)
        case ("POST", "_bulk_docs"):
            let ids = body?["docs"]?.items.compactMap { $0["_id"]?.string } ?? []
            if let tooLarge, ids.contains(tooLarge.id) { return RawServer.json(413, tooLarge.body) }
            let rows = ids.compactMap { refusals[$0].map { String(decoding: $0.bytes, as: UTF8.self) } }
            return RawServer.json(201, "[\(rows.joined(separator: ","))]\n")
        case ("POST", "_ensure_full_commit"):
            return RawServer.json(201, #"{"ok":true,"instance_start_time":"1795293865"}"#)
        case ("PUT", _) where single[path] != nil:
            return single[path].map { RawServer.json($0.status, $0.body) }
        case ("PUT", _): return RawServer.json(201, #"{"ok":true,"id":"x","rev":"0-1"}"#)
        default: return nil
        }
    }
}

/// A document and the contents of its attachments, one part each.
private struct MultipartMessage: Sendable {
    let document: JSONValue
    let contents: [[UInt8]]

    /// Nil for a request with another kind of body.
    init?(recorded line: JSONElement) throws {
        let message = line["request"] ?? line
        guard message["body_parts"] != nil, let bytes = CouchDBRecording.bytes(message) else { return nil }
        try self.init(bytes)
    }

    init?(_ bytes: [UInt8]) throws {
        let (data, end) = (Data(bytes), Data("\r\n".utf8))
        guard bytes.starts(with: Array("--".utf8)), let line = data.range(of: end) else { return nil }
        let boundary = end + data[..<line.lowerBound]
        var parts: [Data] = []
        var rest = data[line.upperBound...]
        while let next = rest.range(of: boundary) {
            let part = rest[..<next.lowerBound]
            let head = try #require(part.range(of: end + end))
            parts.append(part[head.upperBound...])
            rest = rest[next.upperBound...].dropFirst(2)
        }
        document = try JSONElement(parsing: Array(try #require(parts.first))).value
        contents = parts.dropFirst().map { Array($0) }
    }

    /// The document with the names of attachments in order, without digests, of which each side has its own.
    var compared: JSONValue {
        var document = document
        var table = document["_attachments"]?.object ?? [:]
        for (name, value) in table {
            var value = value
            value["digest"] = nil
            table[name] = value
        }
        document["_attachments"] = .object(table)
        return document
    }
}

/// The replicator pushes to what answers as a real CouchDB 3.5 did, and sends what CouchDB's own replicator sent.
struct RecordedTargetTests {
    private static let scenarios = [
        "cr-push-1000", "cr-push-basic", "cr-push-deletions", "cr-push-forbidden", "cr-push-odd-ids",
        "cr-push-session-401", "cr-push-too-large",
    ]

    @Test(arguments: scenarios)
    func `a push sends what CouchDB's replicator sent, and reports what was refused`(_ name: String)
        async throws
    {
        let folder = TrafficTests.folder
        let lines = try String(contentsOf: folder.appending(path: "\(name).jsonl"), encoding: .utf8)
            .split(separator: "\n").map { try JSONElement(parsing: Array($0.utf8)) }
        let target = try RecordedTarget(lines)
        let end = try JSONElement(
            parsing: Array(Data(contentsOf: folder.appending(path: "\(name).end.json")))
        )
        let active = try ActiveSide()
        let collection = try active.collection
        try collection.openStore().write { transaction in
            for document in end["start"]?["peer"]?["docs"]?.items.map(\.self) ?? [] {
                for leaf in document["leaves"]?.items.map(\.self) ?? [] {
                    let history = try RevisionText.history(try #require(leaf["revisions"]))
                    let id = try #require(document["id"]?.string)
                    let key = DocumentLeaf(documentID: id, revision: try #require(history.first))
                    var body = try #require(leaf["body"]).value
                    if leaf["attachments"] != nil {
                        let message = try #require(target.messages[key])
                        body["_attachments"] = try Self.store(message, in: active.database)
                    }
                    _ = try transaction.insertBranch(
                        history,
                        of: id,
                        in: collection.handle,
                        body: JSONText(canonical: body),
                        isDeleted: leaf["deleted"]?.bool ?? false
                    )
                }
            }
        }
        let server = try RawServer { target.answer($0) }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/target"))
        let pass = try await active.replicate(url, .push)
        #expect(pass.status.error == nil)
        #expect(Set(pass.failed.keys) == target.refused)
        var compared = 0
        for request in server.requests where request.target.hasSuffix("/_bulk_docs") {
            let body = try JSONElement(parsing: request.body)
            #expect(body["new_edits"]?.bool == false)
            for document in body["docs"]?.items.map(\.self) ?? [] {
                let recorded = target.sent[try RecordedTarget.leaf(document)]
                #expect(recorded == document.value, "\(document["_id"]?.string ?? "")")
                compared += 1
            }
        }
        #expect(compared > 0)
        let sent = try server.requests.filter { $0.method == "PUT" }.compactMap {
            try MultipartMessage($0.body)
        }
        #expect(sent.count == target.messages.count)
        for message in sent {
            let leaf = try RecordedTarget.leaf(JSONElement(JSONText(canonical: message.document)))
            let recorded = try #require(target.messages[leaf])
            #expect(message.compared == recorded.compared)
            #expect(message.contents == recorded.contents)
        }
    }

    /// Stores the attachments of a message. Returns the table for its document.
    private static func store(_ message: MultipartMessage, in database: Database) throws -> JSONValue {
        var table: JSONObject = [:]
        let recorded = message.document["_attachments"]?.object ?? [:]
        // Each has one attachment, so the order of the table does not matter.
        #expect(recorded.count == 1)
        for ((name, value), content) in zip(recorded, message.contents) {
            let blob = try database.saveBlob(content, contentType: "")
            var stored = value
            stored["follows"] = nil
            stored["stub"] = true
            stored["digest"] = .string(try #require(blob.json["digest"]?.string))
            table[name] = stored
        }
        return .object(table)
    }
}
