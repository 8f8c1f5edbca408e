import Foundation
import LoveseatPlatform

/// The fuzz targets for a listener of CouchDB's wire, over real connections. Every input gets an answer, and the answer is not that the
/// listener failed.
public enum CouchDBFuzzTargets {
    /// All targets by the names that `FUZZ` and the folders of `Fuzzing/FailCases` have.
    public static let named: [String: @Sendable ([UInt8]) -> Void] = [
        "couchdb-http": http, "couchdb-body": body, "couchdb-changes": changes, "couchdb-cookie": cookie,
        "couchdb-digest": digest, "couchdb-numbers": numbers,
    ]

    private static let basic = ("Authorization", "Basic YTph")

    /// A whole request of any bytes.
    public static func http(_ bytes: [UInt8]) {
        if bytes.allSatisfy({ $0 == 0x0D || $0 == 0x0A }) { return }
        guard let client = server.client else { preconditionFailure("the listener to fuzz has no port") }
        // It is not the listener that waits for the rest of a request that is cut.
        let request =
            bytes + Array("\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
        // The fuzzer's own timer interrupts, and free ports may run out.
        guard let descriptor = try? client.connect() else { return }
        defer { close(descriptor) }
        _ = request.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        shutdown(descriptor, Int32(SHUT_WR))
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        var ready: CInt
        // The fuzzer's own timer interrupts.
        repeat { ready = poll(&polled, 1, 10_000) } while ready < 0 && errno == EINTR
        precondition(ready == 1, "a listener does not answer")
    }

    private static let endpoints: [(method: String, path: String, type: String)] = [
        ("POST", "/db/_bulk_docs", "application/json"),
        ("POST", "/db/_bulk_get?revs=true", "application/json"),
        ("POST", "/db/_revs_diff", "application/json"), ("POST", "/db/_missing_revs", "application/json"),
        ("POST", "/db/_all_docs?include_docs=true", "application/json"),
        ("POST", "/db/_changes?filter=_selector", "application/json"),
        ("POST", "/db/_changes?filter=_doc_ids", "application/json"),
        ("POST", "/db/_purge", "application/json"), ("PUT", "/db/_security", "application/json"),
        ("POST", "/db", "application/json"), ("PUT", "/db/d", "application/json"),
        ("PUT", "/db/d?new_edits=false", "application/json"), ("PUT", "/db/_local/l", "application/json"),
        ("POST", "/_session", "application/x-www-form-urlencoded"), ("POST", "/_session", "application/json"),
        ("PUT", "/db/d?new_edits=false", "multipart/related; boundary=b"), ("PUT", "/db/a/n", "text/plain"),
        ("POST", "/db/_all_docs/queries", "application/json"), ("POST", "/_dbs_info", "application/json"),
    ]

    /// A body; the first byte chooses the endpoint, and whether it is announced as compressed.
    public static func body(_ bytes: [UInt8]) {
        // The empty input chooses no endpoint.
        guard let first = bytes.first else { return }
        let endpoint = endpoints[Int(first & 0x7F) % endpoints.count]
        var headers = [basic, ("Content-Type", endpoint.type)]
        if first & 0x80 != 0 { headers.append(("Content-Encoding", "gzip")) }
        check(endpoint.method, endpoint.path, headers, Array(bytes.dropFirst()))
    }

    /// Parameters of `_changes`.
    public static func changes(_ bytes: [UInt8]) {
        // Only printable characters without these stay inside the query.
        guard let text = headerText(bytes), !text.contains(" "), !text.contains("#") else { return }
        // The first value of a parameter counts: no feed stays open.
        check("GET", "/db/_changes?timeout=1&heartbeat=false&\(text)", [basic])
    }

    /// The `Cookie` header.
    public static func cookie(_ bytes: [UInt8]) {
        // A header has printable characters only.
        guard let text = headerText(bytes) else { return }
        check("GET", "/db", [("Cookie", "AuthSession=\(text)")])
    }

    /// The `Authorization` header of a client that was challenged to use Digest.
    public static func digest(_ bytes: [UInt8]) {
        // A header has printable characters only.
        guard let text = headerText(bytes) else { return }
        check("GET", "/db", [("Authorization", "Digest \(text)")])
    }

    private static let extremes = [
        "9223372036854775807", "-9223372036854775808", "18446744073709551615", "9223372036854775808",
        "18446744073709551616",
        "65536", "2147483648", "4294967295", "-1", "0", "1", "2", "1e308", "1e18", "9.3e18", "-1e19", "0.5",
        "00", "",
        "340282366920938463463374607431768211456",
    ]

    /// Requests in which `#` stands for a number: the path, a header, and the body.
    private static let numbered: [(method: String, path: String, header: String, body: String)] = [
        ("GET", "/db/_all_docs?skip=#&limit=#&startkey=%22e%22", "", ""),
        ("GET", "/db/_all_docs?startkey=#&endkey=#&descending=true", "", ""),
        ("GET", "/db/_design_docs?skip=#&limit=#", "", ""), ("GET", "/db/_local_docs?skip=#&limit=#", "", ""),
        ("GET", "/_all_dbs?skip=#&limit=#", "", ""), ("GET", "/_uuids?count=#", "", ""),
        ("POST", "/db/_all_docs", "", "{\"keys\":[\"d\",#],\"skip\":#,\"limit\":#}"),
        ("POST", "/db/_all_docs?skip=#", "", "{\"start_key\":\"e\",\"limit\":#}"),
        (
            "POST", "/db/_all_docs/queries", "",
            "{\"queries\":[{\"skip\":#,\"start_key\":\"e\"},{\"limit\":#,\"skip\":#}]}"
        ),
        ("GET", "/db/_changes?since=#&limit=#&timeout=1&heartbeat=false", "", ""),
        ("GET", "/db/_changes?timeout=1&heartbeat=#&seq_interval=#", "Last-Event-ID: #", ""),
        ("POST", "/db/_changes?timeout=#&filter=_selector", "", "{\"selector\":{\"n\":{\"$gt\":#}}}"),
        ("GET", "/db/d?rev=#-a&atts_since=%5B%22#-a%22%5D", "If-None-Match: \"#-a\"", ""),
        ("GET", "/db/d?open_revs=%5B%22#-a%22,%22#-b%22%5D&revs=true&latest=true", "", ""),
        ("PUT", "/db/d?rev=#-a", "If-Match: \"#-a\"", "{\"n\":#}"),
        ("PUT", "/db/d?new_edits=false", "", "{\"_revisions\":{\"start\":#,\"ids\":[\"b\",\"a\"]},\"n\":#}"),
        ("DELETE", "/db/d?rev=#-a", "", ""), ("COPY", "/db/d", "Destination: f?rev=#-a", ""),
        (
            "POST", "/db/_bulk_docs", "",
            "{\"new_edits\":false,\"docs\":[{\"_id\":\"d\",\"_rev\":\"#-a\",\"n\":#},{\"_id\":\"g\",\"_revisions\":{\"start\":#,\"ids\":[\"a\"]}}]}"
        ),
        (
            "POST", "/db/_bulk_docs", "",
            "{\"docs\":[{\"_id\":\"h\",\"_attachments\":{\"f\":{\"data\":\"aGk=\",\"length\":#,\"revpos\":#,\"encoded_length\":#}}}]}"
        ),
        (
            "POST", "/db/_bulk_get?revs=true", "",
            "{\"docs\":[{\"id\":\"d\",\"rev\":\"#-a\",\"atts_since\":[\"#-b\"]}]}"
        ), ("POST", "/db/_revs_diff", "", "{\"d\":[\"#-a\",\"#-b\"]}"),
        ("POST", "/db/_purge", "", "{\"d\":[\"#-a\"]}"), ("PUT", "/db/_revs_limit", "", "#"),
        ("PUT", "/db/_local/l", "", "{\"_rev\":\"0-#\",\"n\":#}"),
        ("POST", "/db/_find", "", "{\"selector\":{\"n\":{\"$gt\":#}},\"limit\":#,\"skip\":#}"),
        ("POST", "/db/_find", "", "{\"selector\":{\"n\":{\"$mod\":[#,#]}},\"bookmark\":\"#\"}"),
        ("POST", "/db/_explain", "", "{\"selector\":{\"n\":{\"$size\":#}},\"limit\":#,\"skip\":#}"),
        ("GET", "/db/_index?limit=#&skip=#", "", ""),
        (
            "POST", "/_replicate", "",
            "{\"source\":\"http://127.0.0.1:#/x\",\"target\":\"db\",\"since_seq\":#}"
        ),
        ("GET", "/db/h/f", "Range: bytes=#-#", ""), ("GET", "/db/h/f", "Range: bytes=-#", ""),
        ("GET", "/db/h/f", "Range: bytes=#-", ""),
        (
            "PUT", "/db/m?new_edits=false", "Content-Type: multipart/related; boundary=b",
            "--b\r\nContent-Type: application/json\r\n\r\n{\"_rev\":\"#-a\",\"_attachments\":{\"f\":{\"follows\":true,\"length\":#,\"encoded_length\":#,\"revpos\":#,\"encoding\":\"gzip\"}}}\r\n--b\r\nContent-Length: #\r\n\r\nhello\r\n--b--"
        ),
    ]

    /// Extreme numbers wherever a request names one. The first byte chooses the request, and each further one a number.
    public static func numbers(_ bytes: [UInt8]) {
        // The empty input chooses no request.
        guard let first = bytes.first else { return }
        let request = numbered[Int(first) % numbered.count]
        var next = 1
        func filled(_ text: String, inBody: Bool) -> String {
            var parts = text.split(separator: "#", omittingEmptySubsequences: false).map(String.init)
            for place in parts.indices.dropLast() {
                var number = extremes[Int(next < bytes.count ? bytes[next] : 0) % extremes.count]
                // Within a string anything goes.
                let isString =
                    parts[place].hasSuffix("\"")
                    || parts[place + 1].first.map { "-\"/".contains($0) } ?? false
                if inBody, !isString, number.isEmpty || number == "00" { number = "null" }
                next += 1
                parts[place] += number
            }
            return parts.joined()
        }
        var headers = [basic]
        if let colon = request.header.firstRange(of: ": ") {
            headers.append(
                (
                    String(request.header[..<colon.lowerBound]),
                    filled(String(request.header[colon.upperBound...]), inBody: false)
                )
            )
        }
        if !request.body.isEmpty, !request.header.hasPrefix("Content-Type") {
            headers.append(("Content-Type", "application/json"))
        }
        let path = filled(request.path, inBody: false)
        let body = request.body.isEmpty ? nil : Array(filled(request.body, inBody: true).utf8)
        check(request.method, path, headers, body)
    }

    private static func headerText(_ bytes: [UInt8]) -> String? {
        guard bytes.count < 4_000, bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func check(
        _ method: String,
        _ path: String,
        _ headers: [(String, String)],
        _ body: [UInt8]? = nil
    ) {
        // A broken connection is not an answer either.
        guard let answer = try? server.client?.send(method, path, headers, body: body) else {
            preconditionFailure("a listener does not answer to \(method) \(path): \(shown(body))")
        }
        // 501 and 503 name the reason.
        precondition(
            (200..<500).contains(answer.status) || [501, 503].contains(answer.status),
            "a listener answers \(answer.status) to \(method) \(path) with \(shown(body)): \(answer.text)"
        )
    }

    private static func shown(_ body: [UInt8]?) -> String { String(decoding: body ?? [], as: UTF8.self) }

    // MARK: The listener

    private static let server = FuzzedServer()
}
