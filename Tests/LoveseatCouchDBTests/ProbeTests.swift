import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// The golden answers of a real CouchDB (Tests/Fixtures/couchdb/probes), asked of our listener.
struct ProbeTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Fixtures/couchdb/probes")

    static let groups: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter {
            $0.hasSuffix(".jsonl") && $0 != "probe-raw-http.jsonl"
        }
        .sorted()
    }()

    @Test(arguments: groups) func `a listener answers as CouchDB does`(_ name: String) async throws {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        var configuration = CouchDBListenerConfiguration(database: database)
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        configuration.allowsDatabaseCreation = true
        configuration.origins = ["*"]
        configuration.authenticator = ListenerPasswordAuthenticator { $0 == "admin" && $1 == "secret" }
        let listener = CouchDBListener(configuration)
        try await listener.start()
        let lines = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
            .split(separator: "\n").map { try JSONElement(parsing: Array($0.utf8)) }
        let client = RawClient(port: try #require(listener.port))
        // The client blocks, and the listener needs the tasks' threads.
        let replay = try await offPool {
            var replay = ProbeReplay(client: client)
            try replay.run(lines)
            return replay
        }
        await listener.stop()
        let unexpected = replay.differences.filter { Deviations.reasons[$0.key] == nil }
        #expect(unexpected.isEmpty, "\(unexpected.sorted { $0.key < $1.key })")
        #expect(replay.compared > 0)
        let group = name.dropFirst(6).dropLast(6)
        let healed = Deviations.reasons.keys.filter {
            $0.hasPrefix(group + "/") && replay.differences[$0] == nil
        }
        #expect(healed.isEmpty, "these are deviations no more")
    }
}

/// Plays one group of probes.
private struct ProbeReplay: Sendable {
    private static let basic = "Basic YWRtaW46c2VjcmV0"

    let client: RawClient
    var differences: [String: String] = [:]
    var compared = 0
    private var captured: [String: String] = [:]
    private var database = "db"

    init(client: RawClient) { self.client = client }

    mutating func run(_ lines: [JSONElement]) throws {
        let head = lines[0]
        let group = head["group"]?.string ?? ""
        database =
            "rp" + String(group.unicodeScalars.reduce(UInt64(7)) { $0 &* 31 &+ UInt64($1.value) }, radix: 16)
        if head["create_db"]?.bool == true {
            _ = try client.send("PUT", "/\(database)", [("Authorization", Self.basic)])
            if let documents = head["docs"], documents.count > 0 {
                let body: JSONValue = ["new_edits": false, "docs": documents.value]
                let answer = try client.send(
                    "POST",
                    "/\(database)/_bulk_docs",
                    [("Authorization", Self.basic), ("Content-Type", "application/json")],
                    body: JSONText(canonical: body).bytes
                )
                #expect(answer.status == 201)
                #expect(answer.text == "[]\n")
            }
        }
        for line in lines.dropFirst() { try play(line) }
    }

    private func filled(_ text: String) -> String {
        var text = text
        for (name, value) in captured { text = text.replacing("{\(name)}", with: value) }
        text = text.replacing("{db}", with: database)
        // The address of the CouchDB that was recorded.
        text = text.replacing("127.0.0.1:15984", with: "127.0.0.1:\(client.port)")
        while let match = text.firstMatch(of: /<(.) x ([0-9]+)>/) {
            text.replaceSubrange(
                match.range,
                with: String(repeating: String(match.1), count: Int(match.2) ?? 0)
            )
        }
        return text
    }

    private mutating func play(_ line: JSONElement) throws {
        guard line["needs"]?.string != "javascript", line["raw"] == nil, line["not_replayable"] == nil,
            line["read_seconds"] == nil, let wanted = line["status"]?.int, let probe = line["probe"]?.string
        else { return }
        var headers = (line["headers"]?.members.map { ($0.key, filled($0.value.string ?? "")) }) ?? []
        var body: [UInt8]?
        if let json = line["json"] { body = Array(filled(String(decoding: json.bytes, as: UTF8.self)).utf8) }
        if let rule = line["body_rule"]?.string ?? line["text"]?.string { body = Array(filled(rule).utf8) }
        if let text = line["b64"]?.string { body = Array(Data(base64Encoded: text) ?? Data()) }
        if line["json"] != nil || line["body_rule"] != nil,
            !headers.contains(where: { $0.0.lowercased() == "content-type" })
        {
            headers.append(("Content-Type", "application/json"))
        }
        if line["auth"] == nil { headers.append(("Authorization", Self.basic)) }
        if let auth = line["auth"]?.string { headers.append(("Authorization", auth)) }
        let chunks = line["chunks"]?.items.map { Array(($0.string ?? "").utf8) }
        let path = filled(line["path"]?.string ?? "/")
        let answer =
            (try? client.send(line["method"]?.string ?? "GET", path, headers, body: body, chunks: chunks))
            ?? RawClient.Answer()
        capture(line["capture"], answer)
        guard line["setup"] == nil else { return }
        compared += 1
        if let others = line["alt_status"]?.items.compactMap(\.int), others.contains(answer.status) { return }
        guard answer.status == wanted || (wanted >= 500 && (400..<500).contains(answer.status)) else {
            differences[probe] = "status \(answer.status), not \(wanted): \(answer.text.prefix(200))"
            return
        }
        let kind = line["cmp"]?.string ?? "exact"
        guard ["exact", "shape"].contains(kind), wanted < 500, let recorded = line["body"]?.string else {
            return
        }
        if !Shape.isSame(recorded, answer.text) {
            differences[probe] = "\(answer.text.prefix(300)) instead of \(recorded.prefix(300))"
        }
    }

    private mutating func capture(_ rules: JSONElement?, _ answer: RawClient.Answer) {
        let json = try? JSONElement(parsing: answer.body)
        for (name, what) in rules?.members.map({ $0 }) ?? [] {
            if what.string == "cookie" {
                captured[name] = String(answer.headers["set-cookie"]?.prefix { $0 != ";" } ?? "")
            } else if let value = json?[what.string ?? ""] {
                captured[name] = value.string ?? value.value.description
            }
        }
    }
}
