import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatPlatform
import LoveseatTesting
import Testing

/// Requests byte for byte as a real CouchDB got them (Tests/Fixtures/couchdb/probes/probe-raw-http.jsonl), sent to our listener.
struct RawProbeTests {
    private static let file = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Fixtures/couchdb/probes/probe-raw-http.jsonl")
    private static let basic = "Basic YWRtaW46c2VjcmV0"

    /// The probes that our listener answers in another way, with the reasons (docs/couchdb.md, "Deviations").
    private static let deviations: [String: String] = [
        "raw-http/0": "a request names its host, also one of HTTP/1.0: pages are told by it",
        "raw-http/1": "a request names its host",
        "raw-http/24": "x is not a name of this host",
        "raw-http/5": "a method in lower case is no HTTP",
        "raw-http/9": "lines that end in a bare LF are refused: two readers may see two requests",
        "raw-http/11": "folded headers are refused for the same reason, as RFC 9112 allows",
        "raw-http/15": "a chunk may have an extension",
    ]

    @Test func `a listener answers raw requests as CouchDB does`() async throws {
        let lines = try String(contentsOf: Self.file, encoding: .utf8).split(separator: "\n")
            .map { try JSONElement(parsing: Array($0.utf8)) }
        let served = try await ServedDatabase {
            $0.allowsDatabaseCreation = true
            $0.authenticator = ListenerPasswordAuthenticator { $0 == "admin" && $1 == "secret" }
        }
        let client = served.client
        let differences = try await offPool { try Self.play(lines, client) }
        await served.listener.stop()
        let unexpected = differences.filter { Self.deviations[$0.key] == nil }
        #expect(unexpected.isEmpty, "\(unexpected.sorted { $0.key < $1.key })")
        let healed = Self.deviations.keys.filter { differences[$0] == nil }
        #expect(healed.isEmpty, "these are deviations no more")
    }

    private static func play(_ lines: [JSONElement], _ client: RawClient) throws -> [String: String] {
        _ = try client.send("PUT", "/raw", [("Authorization", basic)])
        let documents: JSONValue = ["new_edits": false, "docs": lines[0]["docs"]?.value ?? []]
        let made = try client.send(
            "POST",
            "/raw/_bulk_docs",
            [("Authorization", basic), ("Content-Type", "application/json")],
            body: JSONText(canonical: documents).bytes
        )
        #expect(made.status == 201)
        var differences: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let probe = line["probe"]?.string, let raw = line["raw"]?.string,
                let recorded = line["answer"]?.string
            else { continue }
            let wanted = try answers(Array(recorded.utf8), to: raw)
            let request = raw.replacing("{db}", with: "raw").replacing("<Basic>", with: basic)
            let got = try exchange(Array(request.utf8), raw, count: wanted.count, client)
            differences[probe] = difference(got, wanted)
        }
        return differences
    }

    private static func difference(_ got: [RawClient.Answer], _ wanted: [RawClient.Answer]) -> String? {
        // CouchDB hung up, or waited for more: an answer that says why is as good.
        if wanted.isEmpty, got.allSatisfy({ $0.status >= 400 }) { return nil }
        let description = "\(got.map(\.status)), not \(wanted.map(\.status)): \(got.map(\.text))"
        // Where CouchDB closes behind an answer, the next request may be answered too.
        guard got.count >= wanted.count else { return description }
        for (got, wanted) in zip(got, wanted) {
            if wanted.status >= 500, got.status >= 400 { continue }
            guard got.status == wanted.status, Shape.isSame(wanted.text, got.text) else {
                return description
            }
        }
        return nil
    }

    /// Sends a request, and reads until as many answers have come, or the other side closes.
    private static func exchange(_ request: [UInt8], _ raw: String, count: Int, _ client: RawClient) throws
        -> [RawClient.Answer]
    {
        let descriptor = try client.connect()
        defer { close(descriptor) }
        _ = request.withUnsafeBytes {
            LoveseatPlatform.send(descriptor, $0.baseAddress, request.count, Int32(MSG_NOSIGNAL))
        }
        // A request that is never complete shows that by its connection's end.
        if count == 0 { shutdown(descriptor, Int32(SHUT_WR)) }
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while try count == 0 || answers(all, to: raw).count < count {
            let received = recv(descriptor, &buffer, buffer.count, 0)
            guard received > 0 else { break }
            all += buffer[..<received]
        }
        return try answers(all, to: raw)
    }

    /// The whole answers to a request, without interim ones.
    private static func answers(_ bytes: [UInt8], to raw: String) throws -> [RawClient.Answer] {
        var (rest, all): (ArraySlice<UInt8>, [RawClient.Answer]) = (bytes[...], [])
        while let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) {
            let head = Array(rest[..<end.upperBound])
            rest = rest[end.upperBound...]
            if String(decoding: head.prefix(12), as: UTF8.self).hasSuffix(" 100") { continue }
            var answer = try RawClient.parse(head, isHead: true)
            let isHead = all.isEmpty && raw.hasPrefix("HEAD")
            let length = isHead ? 0 : Int(answer.headers["content-length"] ?? "") ?? 0
            guard rest.count >= length else { break }
            answer.body = Array(rest.prefix(length))
            rest = rest.dropFirst(length)
            all.append(answer)
        }
        return all
    }
}
