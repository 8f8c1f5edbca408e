import Foundation
import LoveseatPlatform

/// What fuzzers feed to a listener of CouchDB's wire, over real connections: whatever comes, there is an answer, and it is not that the
/// listener failed.
public enum CouchDBFuzzTargets {
    /// All targets by the names that `FUZZ` and the folders of `Fuzzing/FailCases` have.
    public static let named: [String: @Sendable ([UInt8]) -> Void] = [
        "couchdb-http": http, "couchdb-body": body, "couchdb-changes": changes, "couchdb-cookie": cookie,
        "couchdb-digest": digest,
    ]

    private static let basic = ("Authorization", "Basic YTph")

    /// A whole request, of whatever bytes.
    public static func http(_ bytes: [UInt8]) {
        guard bytes.contains(where: { $0 != 0x0D && $0 != 0x0A }), let client = server.client else { return }
        // It is not the listener that waits for the rest of a request that is cut.
        let request = bytes + Array("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8)
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
        guard let first = bytes.first else { return }
        let endpoint = endpoints[Int(first & 0x7F) % endpoints.count]
        var headers = [basic, ("Content-Type", endpoint.type)]
        if first & 0x80 != 0 { headers.append(("Content-Encoding", "gzip")) }
        check(endpoint.method, endpoint.path, headers, Array(bytes.dropFirst()))
    }

    /// Parameters of `_changes`.
    public static func changes(_ bytes: [UInt8]) {
        guard let text = headerText(bytes), !text.contains(" "), !text.contains("#") else { return }
        // The first value of a parameter counts: no feed stays open.
        check("GET", "/db/_changes?timeout=1&heartbeat=false&\(text)", [basic])
    }

    /// The `Cookie` header.
    public static func cookie(_ bytes: [UInt8]) {
        guard let text = headerText(bytes) else { return }
        check("GET", "/db", [("Cookie", "AuthSession=\(text)")])
    }

    /// The `Authorization` header of a client that was challenged to use Digest.
    public static func digest(_ bytes: [UInt8]) {
        guard let text = headerText(bytes) else { return }
        check("GET", "/db", [("Authorization", "Digest \(text)")])
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
        guard let answer = try? server.client?.send(method, path, headers, body: body) else {
            preconditionFailure("a listener does not answer to \(method) \(path): \(shown(body))")
        }
        // 501 and 503 say what is the matter.
        precondition(
            (200..<500).contains(answer.status) || [501, 503].contains(answer.status),
            "a listener answers \(answer.status) to \(method) \(path) with \(shown(body)): \(answer.text)"
        )
    }

    private static func shown(_ body: [UInt8]?) -> String { String(decoding: body ?? [], as: UTF8.self) }

    // MARK: The listener

    private static let server = FuzzedServer()
}
