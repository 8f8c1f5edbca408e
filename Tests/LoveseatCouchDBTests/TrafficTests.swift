import Crypto
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Sessions of CouchDB 3.5's replicator and of PouchDB 7 and 9 that were recorded (Tests/Fixtures/couchdb/traffic), played to our listener:
/// what each of its answers has in common with CouchDB's, and every leaf at the end.
struct TrafficTests {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Fixtures/couchdb/traffic")

    /// Scenarios that a listener without JavaScript cannot pass.
    static let needsJavaScript: Set = [
        "cr-pull-ddoc-filter", "cr-push-forbidden", "p9-pull-ddoc-filter", "p9-push-forbidden",
    ]

    /// The answers that differ, with the reasons, by scenario and exchange (docs/couchdb.md, "Deviations").
    private static let deviations: [String: String] = [
        "cr-pull-attachments/36": "attachments come inline only if attachments=true asks for them",
        "cr-pull-attachments/38": "attachments come inline only if attachments=true asks for them",
    ]

    static let scenarios: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".jsonl") }.map { String($0.dropLast(6)) }
            .filter { !needsJavaScript.contains($0) }.sorted()
    }()

    @Test func `the recorded scenarios are found`() { #expect(Self.scenarios.count == 53) }

    @Test(arguments: scenarios) func `a recorded session has the same answers and the same end`(
        _ name: String
    ) async throws {
        let lines = try String(
            contentsOf: Self.folder.appending(path: "\(name).jsonl"),
            encoding: .utf8
        ).split(separator: "\n").map { try JSONElement(parsing: Array($0.utf8)) }
        let end = try JSONElement(
            parsing: Array(Data(contentsOf: Self.folder.appending(path: "\(name).end.json")))
        )
        let served = try await ServedDatabase {
            $0.allowsDatabaseCreation = true
            $0.origins = ["*"]
            $0.authenticator = ListenerPasswordAuthenticator { $0 == "admin" && $1 == "secret" }
            if lines[0]["needs"]?.string?.contains("65536 bytes") == true {
                $0.maximumDocumentSize = 65_536
            }
        }
        let client = served.client
        let replay = try await offPool {
            var replay = TrafficReplay(client: client)
            try replay.run(lines)
            if let documents = end["listener"]?["docs"] { try replay.compare(with: documents.value) }
            return replay
        }
        await served.listener.stop()
        let unexpected = replay.differences.filter { Self.deviations["\(name)/\($0.key)"] == nil }
        #expect(unexpected.isEmpty, "\(unexpected)")
        let healed = Self.deviations.keys.filter {
            $0.hasPrefix(name + "/") && replay.differences[String($0.dropFirst(name.count + 1))] == nil
        }
        #expect(healed.isEmpty, "these are deviations no more")
        #expect(replay.compared > 0)
    }
}

/// Plays one recorded session, one request at a time.
struct TrafficReplay: Sendable {
    private static let basic = "Basic YWRtaW46c2VjcmV0"
    private static let wrong = "Basic YWRtaW46d3Jvbmc="
    private static let leftOut: Set = [
        "host", "content-length", "connection", "transfer-encoding", "accept-encoding", "cookie",
    ]

    let client: RawClient
    var differences: [String: String] = [:]
    var compared = 0
    /// Our sequences, by those of the recording.
    private var sequences: [String: JSONValue] = [:]
    /// Our names of revisions that the server made, by those of the recording.
    private var made: [String: String] = [:]
    /// The revisions of local documents, which are the server's own.
    private var revisions: [String: JSONValue] = [:]
    private var database: String?
    private var isBoth = false

    /// `database`: the name of the one that is compared, if no session is played.
    init(client: RawClient, database: String? = nil) { (self.client, self.database) = (client, database) }

    mutating func run(_ lines: [JSONElement]) throws {
        isBoth = lines[0]["listener_role"]?.string == "both"
        let exchanges = lines.dropFirst().filter {
            $0["method"] != nil || $0["note"]?.string?.contains("written to the listener") == true
        }.sorted { ($0["k"]?.int ?? 0) < ($1["k"]?.int ?? 0) }
        database = exchanges.lazy.compactMap { $0["path"]?.string }.first { $0.hasPrefix("/fx_") }
            .map { String($0.dropFirst().prefix { $0 != "/" && $0 != "?" }) }
        for exchange in exchanges { try play(exchange) }
    }

    private mutating func play(_ line: JSONElement) throws {
        if line["note"] != nil {
            guard let data = line["data"], let path = data["path"]?.string else { return }
            let headers = [("Authorization", Self.basic), ("Content-Type", "application/json")]
            _ = try client.send(
                data["method"]?.string ?? "PUT",
                path,
                headers,
                body: data["body"].map { Array($0.bytes) }
            )
            return
        }
        guard line["injected"] == nil, let wanted = line["status"]?.int, let response = line["response"],
            response["cut"] == nil, line["closed_by"] == nil, let recorded = line["path"]?.string,
            !recorded.contains("/_session"),
            recorded.firstMatch(of: /feed=(continuous|longpoll|eventsource)/) == nil
        else { return }
        let path = filled(recorded)
        let method = line["method"]?.string ?? "GET"
        var body = line["request"].flatMap { CouchDBRecording.bytes($0) }
        if let bytes = body { body = filled(Self.named(bytes, by: response)) }
        if method == "PUT", path.contains("/_local/"), let bytes = body, let revision = revisions[path],
            var document = try? JSONElement(parsing: bytes).value, document["_rev"] != nil
        {
            document["_rev"] = revision
            body = JSONText(canonical: document).bytes
        }
        let answer = try client.send(method, path, headers(of: line["request"]), body: body)
        if path.contains("/_local/"), (200...201).contains(answer.status) {
            revisions[path] = answer.json["rev"] ?? answer.json["_rev"]
        }
        if let text = response["body"]?.string, let before = try? JSONValue(parsing: text) {
            learn(before, answer.json, nil)
        }
        compared += 1
        if let difference = difference(answer, wanted, response, line, path) {
            differences["\(line["k"]?.int ?? 0)"] = "\(method) \(path.prefix(120)): \(difference)"
        }
    }

    /// A batch whose documents have the names that the server chose in the recording: other names would stand elsewhere in lists.
    private static func named(_ body: [UInt8], by response: JSONElement) -> [UInt8] {
        guard var batch = try? JSONElement(parsing: body).value, var documents = batch["docs"]?.array,
            documents.contains(where: { $0["_id"] == nil }), let text = response["body"]?.string,
            let rows = try? JSONValue(parsing: text).array, rows.count == documents.count
        else { return body }
        for index in documents.indices where documents[index]["_id"] == nil {
            documents[index]["_id"] = rows[index]["id"]
        }
        batch["docs"] = .array(documents)
        return JSONText(canonical: batch).bytes
    }

    private func headers(of request: JSONElement?) -> [(String, String)] {
        var headers: [(String, String)] = []
        for pair in request?["headers"]?.items.map(\.self) ?? [] {
            guard let name = pair[0]?.string, let value = pair[1]?.string else { continue }
            if name.lowercased() == "cookie" { headers.append(("Authorization", Self.basic)) }
            guard !Self.leftOut.contains(name.lowercased()) else { continue }
            headers.append(
                (name, value == "<Basic>" ? Self.basic : value == "<Basic wrong>" ? Self.wrong : value)
            )
        }
        return headers
    }

    private func difference(
        _ answer: RawClient.Answer,
        _ wanted: Int,
        _ response: JSONElement,
        _ line: JSONElement,
        _ path: String
    ) -> String? {
        // The recorded ETag is not this server's.
        let status = answer.status == 200 && wanted == 304 ? 304 : answer.status
        let isDriver = line["actor"]?.string == "driver"
        guard status == wanted || (isDriver && [200, 201].contains(status) && [200, 201].contains(wanted))
        else {
            return "status \(answer.status), not \(wanted): \(answer.text.prefix(200))"
        }
        let type = response["headers"]?.items.first { $0[0]?.string?.lowercased() == "content-type" }?[1]?
            .string
        guard wanted < 400 else { return nil }
        // An answer without content has no type of it.
        guard wanted != 304 else { return nil }
        let mediaType = { (text: String?) in text.map { String($0.prefix { $0 != ";" }) } }
        guard mediaType(answer.headers["content-type"]) == mediaType(type) else {
            return "content type \(answer.headers["content-type"] ?? "none"), not \(type ?? "none")"
        }
        let isInfo = path.dropFirst().split(separator: "/").count == 1
        guard let text = response["body"]?.string, type?.hasPrefix("application/json") == true, !isInfo,
            !(isBoth && path.contains("_changes")), !Shape.isSame(text, answer.text)
        else { return nil }
        return "\(answer.text.prefix(300)) instead of \(text.prefix(300))"
    }

    // MARK: Sequences

    private func value(_ digits: Substring) -> JSONValue {
        sequences[String(digits)] ?? .number(.integer(Int64(digits) ?? 0))
    }

    private func filled(_ path: String) -> String {
        made.reduce(path) { $0.replacing($1.key, with: $1.value) }.replacing(
            /(?:%22|")?<seq:([0-9]+)>(?:%22|")?/
        ) { match in
            let value = value(match.output.1)
            let text = value.string ?? value.description
            return text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
        }
    }

    private func filled(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.firstRange(of: Array("\"<seq:".utf8)) != nil || !made.isEmpty,
            var text = String(validating: bytes, as: UTF8.self)
        else { return bytes }
        for (recorded, ours) in made { text = text.replacing(recorded, with: ours) }
        return Array(text.replacing(/"<seq:([0-9]+)>"/) { value($0.output.1).description }.utf8)
    }

    private mutating func learn(_ recorded: JSONValue, _ answer: JSONValue?, _ key: String?) {
        switch recorded {
        case .object(let members):
            // The answer to an edit: the server chose its revision.
            if recorded["ok"] == true, recorded["id"] == answer?["id"], let text = recorded["rev"]?.string,
                let ours = answer?["rev"]?.string, ours != text
            {
                made[text] = ours
            }
            for (key, value) in members { learn(value, answer?[key], key) }
        case .array(let items): for (index, item) in items.enumerated() { learn(item, answer?[index], nil) }
        case .string(let text):
            guard let key, key != "purge_seq", Shape.sequences.contains(key), text.hasPrefix("<seq:"),
                let answer, answer != .null
            else { return }
            sequences[String(text.dropFirst(5).dropLast())] = answer
        default: break
        }
    }

    // MARK: End state

    /// Compares every leaf of every document.
    mutating func compare(with wanted: JSONValue) throws {
        guard let database else { return }
        let accept = [("Authorization", Self.basic), ("Accept", "application/json")]
        let changes = try client.send("GET", "/\(database)/_changes?style=all_docs", accept)
        var found: [String: JSONValue] = [:]
        for row in changes.json["results"]?.array ?? [] {
            guard let id = row["id"]?.string else { continue }
            let path = id.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? id
            let answer = try client.send(
                "GET",
                "/\(database)/\(path)?open_revs=all&revs=true&attachments=true",
                accept
            )
            let leaves = (answer.json.array ?? []).map { Self.leaf($0["ok"] ?? $0) }
            found[id] = [
                "id": .string(id), "winner": row["changes"]?[0]?["rev"] ?? nil,
                "deleted": row["deleted"] ?? false, "leaves": .array(Self.sorted(leaves)),
            ]
        }
        for document in wanted.array ?? [] {
            guard let id = document["id"]?.string else { continue }
            var expected = document
            expected["leaves"] = .array(
                Self.sorted(document["leaves"]?.array ?? []).map { Self.withoutPositions($0) }
            )
            let actual = found.removeValue(forKey: id)
            if actual.map({ Self.isSame($0, expected) }) != true {
                differences["end of \(id)"] =
                    "\("\(actual ?? nil)".prefix(600)) instead of \("\(expected)".prefix(600))"
            }
        }
        if !found.isEmpty { differences["end"] = "there are also \(found.keys.sorted())" }
    }

    private static func sorted(_ leaves: [JSONValue]) -> [JSONValue] {
        leaves.sorted { ($0["rev"]?.string ?? "") < ($1["rev"]?.string ?? "") }
    }

    private static func withoutPositions(_ leaf: JSONValue) -> JSONValue {
        guard case .object(let attachments)? = leaf["attachments"] else { return leaf }
        var leaf = leaf
        var table: JSONValue = [:]
        for (name, value) in attachments {
            var value = value
            value["revpos"] = nil
            table[name] = value
        }
        leaf["attachments"] = table
        return leaf
    }

    /// A leaf as the recordings describe it.
    private static func leaf(_ document: JSONValue) -> JSONValue {
        var body = document
        var leaf: JSONValue = ["rev": document["_rev"] ?? nil, "revisions": document["_revisions"] ?? nil]
        if document["_deleted"] == true { leaf["deleted"] = true }
        for name in ["_rev", "_revisions", "_id", "_deleted", "_attachments"] { body[name] = nil }
        leaf["body"] = body
        guard case .object(let attachments)? = document["_attachments"] else { return leaf }
        var table: JSONValue = [:]
        for (name, attachment) in attachments {
            let content = Array(Data(base64Encoded: attachment["data"]?.string ?? "") ?? Data())
            table[name] = [
                "content_type": attachment["content_type"] ?? nil, "length": JSONValue(content.count),
                "md5": .string(
                    Insecure.MD5.hash(data: content).map { String(format: "%02x", $0) }.joined()
                ),
            ]
        }
        leaf["attachments"] = table
        return leaf
    }

    /// Whether two values are the same, where 1 and 1.0 are.
    private static func isSame(_ one: JSONValue, _ other: JSONValue) -> Bool {
        switch (one, other) {
        case (.number, .number):
            return one == other || Double(one.description) == Double(other.description)
        case (.array(let one), .array(let other)):
            return one.count == other.count && zip(one, other).allSatisfy { isSame($0, $1) }
        case (.object(let one), .object(let other)):
            return one.count == other.count
                && one.allSatisfy { key, value in other[key].map { isSame(value, $0) } ?? false }
        default: return one == other
        }
    }
}
