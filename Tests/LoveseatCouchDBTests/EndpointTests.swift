import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// The methods of each resource, and the rights that they need.
struct EndpointTests {
    @Test func `a method that a resource lacks is answered with the methods that it has`() async throws {
        let resources = [
            ("/", "GET,HEAD"), ("/_up", "GET,HEAD"), ("/_session", "GET,HEAD,POST,DELETE"),
            ("/_all_dbs", "GET,HEAD"), ("/_dbs_info", "GET,HEAD,POST"), ("/_uuids", "GET,HEAD"),
            ("/_active_tasks", "GET,HEAD"), ("/_membership", "GET,HEAD"), ("/_replicate", "POST"),
            ("/main", "DELETE,GET,HEAD,POST"), ("/main/_all_docs", "GET,HEAD,POST"),
            ("/main/_all_docs/queries", "POST"), ("/main/_design_docs", "GET,HEAD,POST"),
            ("/main/_local_docs", "GET,HEAD,POST"), ("/main/_changes", "GET,HEAD,POST"),
            ("/main/_bulk_docs", "POST"), ("/main/_bulk_get", "POST"), ("/main/_revs_diff", "POST"),
            ("/main/_missing_revs", "POST"), ("/main/_ensure_full_commit", "POST"),
            ("/main/_compact", "POST"),
            ("/main/_view_cleanup", "POST"), ("/main/_security", "PUT,GET"), ("/main/_revs_limit", "PUT,GET"),
            ("/main/_purge", "POST"), ("/main/_purged_infos_limit", "GET,HEAD"), ("/main/_find", "POST"),
            ("/main/_explain", "POST"), ("/main/_index", "GET,POST"), ("/main/_index/d/json/i", "DELETE"),
            ("/main/_local/c", "DELETE,GET,HEAD,PUT"), ("/main/x", "DELETE,GET,HEAD,PUT,COPY"),
            ("/main/_design/d", "DELETE,GET,HEAD,PUT,COPY"), ("/main/x/a", "GET,HEAD,DELETE,PUT"),
        ]
        let served = try await ServedDatabase()
        for (path, allowed) in resources {
            let answer = try await served.call("PATCH", path)
            #expect(answer.status == 405, "\(path): \(answer.text)")
            #expect(answer.all("allow") == [allowed], "\(path)")
            #expect(answer.json["reason"]?.string == "Only \(allowed) allowed", "\(path)")
        }
        // A resource that is not there has no methods.
        for (path, status) in [
            ("/none/_changes", 404), ("/main/_changes/x", 404), ("/main/_none", 404), ("/main/_design", 404),
            ("/main/_local", 404), ("/main/_local/c/a", 400), ("/main/_temp_view", 410), ("/_none", 400),
            ("/_up/x", 404), ("/main/_all_docs%2Fqueries", 404),
        ] {
            #expect(try await served.call("PATCH", path).status == status, "\(path)")
        }
        await served.listener.stop()
    }

    /// Who is refused with 403: clients of a read-only listener ("r"), of a write-only one ("w"), and those with rights of their own ("p").
    private static let rights = [
        ("GET", "/_up", ""), ("GET", "/_session", ""), ("GET", "/_all_dbs", ""),
        ("GET", "/_active_tasks", ""),
        ("GET", "/main", ""), ("PUT", "/main", "rw"), ("PUT", "/fresh", "rwp"), ("DELETE", "/none", "rwp"),
        ("PATCH", "/main", "rwp"), ("POST", "/main", "r"), ("GET", "/main/_all_docs", "w"),
        ("POST", "/main/_all_docs", "w"), ("PATCH", "/main/_all_docs", "rw"),
        ("POST", "/main/_all_docs/queries", "w"), ("GET", "/main/_design_docs", "w"),
        ("GET", "/main/_local_docs", "w"), ("GET", "/main/_changes", "w"), ("POST", "/main/_changes", "w"),
        ("POST", "/main/_bulk_docs", "r"), ("GET", "/main/_bulk_docs", "w"), ("POST", "/main/_bulk_get", "w"),
        ("POST", "/main/_revs_diff", ""), ("POST", "/main/_missing_revs", ""),
        ("POST", "/main/_ensure_full_commit", ""), ("POST", "/main/_compact", "rwp"),
        ("POST", "/main/_view_cleanup", "rwp"), ("GET", "/main/_security", "w"),
        ("HEAD", "/main/_security", "w"), ("PUT", "/main/_security", "rwp"),
        ("GET", "/main/_revs_limit", "w"),
        ("PUT", "/main/_revs_limit", "rwp"), ("POST", "/main/_purge", "rwp"),
        ("PATCH", "/main/_purge", "rwp"),
        ("GET", "/main/_purged_infos_limit", "w"), ("POST", "/main/_find", "w"),
        ("POST", "/main/_explain", "w"),
        ("GET", "/main/_index", "w"), ("POST", "/main/_index", "rw"),
        ("DELETE", "/main/_index/d/json/i", "rw"),
        ("GET", "/main/_local/c", ""), ("PUT", "/main/_local/c", ""), ("DELETE", "/main/_local/c", "r"),
        ("POST", "/main/_local/c", "rw"), ("GET", "/main/x", "w"), ("HEAD", "/main/x", "w"),
        ("PUT", "/main/x", "r"), ("DELETE", "/main/x", "r"), ("COPY", "/main/x", "rw"),
        ("POST", "/main/x", "rw"),
        ("GET", "/main/x/a", "w"), ("PUT", "/main/x/a", "r"), ("DELETE", "/main/x/a", "r"),
        ("GET", "/main/_design/d/_view/v", "w"), ("POST", "/main/_design/d/_view/v", "rw"),
        ("PUT", "/main/_design/d", "r"), ("GET", "/main/_none", "w"), ("PUT", "/main/_none", "rw"),
        ("POST", "/main/_bulk_get/x", "w"),
    ]

    @Test func `each method of each resource needs its right`() async throws {
        let listeners: [(Character, @Sendable (inout CouchDBListenerConfiguration) -> Void)] = [
            ("o", { _ in }), ("r", { $0.readOnly = true }), ("w", { $0.writeOnly = true }),
            ("p", { $0.accessPolicy = AccessPolicy { _, _, _ in .write } }),
        ]
        for (name, change) in listeners {
            let served = try await ServedDatabase {
                $0.allowsDatabaseCreation = true
                change(&$0)
            }
            for (method, path, refused) in Self.rights {
                let answer = try await served.call(method, path)
                #expect((answer.status == 403) == refused.contains(name), "\(name): \(method) \(path)")
            }
            await served.listener.stop()
        }
    }

    @Test func `pages of allowed origins may use the methods of all resources`() async throws {
        let served = try await ServedDatabase { $0.origins = ["https://app.example"] }
        for (method, status) in [("COPY", 204), ("DELETE", 204), ("PATCH", 405)] {
            let headers = [("Origin", "https://app.example"), ("Access-Control-Request-Method", method)]
            let answer = try await served.call("OPTIONS", "/main/x", nil, headers)
            #expect(answer.status == status)
            guard status == 204 else { continue }
            let methods = "GET, PUT, POST, HEAD, DELETE, OPTIONS, COPY"
            #expect(answer.all("access-control-allow-methods") == [methods])
        }
        await served.listener.stop()
    }
}
