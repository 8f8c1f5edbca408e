import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// What `_replicate` refuses: hosts that the app does not allow, clients without the rights, requests that are not valid.
struct ReplicateRightsTests {
    @Test func `a listener connects to no host that the app does not allow`() async throws {
        let other = try RawServer { _ in RawServer.json(200, "{}") }
        let served = try await ServedDatabase()
        for host in [
            "127.0.0.1:\(other.port)", "localhost:\(other.port)", "[::1]:\(other.port)",
            "[::ffff:127.0.0.1]:\(other.port)", "0.0.0.0:\(other.port)", "2130706433:\(other.port)",
            "127.1:\(other.port)", "main@127.0.0.1:\(other.port)", "169.254.169.254", "couch.example.org",
            "127.0.0.1:\(served.client.port)@127.0.0.1:\(other.port)",
        ] {
            for url in ["http://\(host)/main", "https://\(host)/main"] {
                let requests: [JSONValue] = [
                    ["source": .string(url), "target": "main"],
                    ["source": "main", "target": ["url": .string(url)], "continuous": true],
                ]
                for request in requests {
                    let answer = try await served.replicate(request)
                    #expect(answer.status == 403, "\(url)")
                    #expect(answer.json["error"] == "forbidden", "\(url)")
                }
            }
        }
        // The same port with another scheme is another server.
        let secure = try await served.replicate(
            ["source": .string("https://127.0.0.1:\(served.client.port)/main"), "target": "main"]
        )
        #expect(secure.status == 403)
        #expect(other.requests.isEmpty)
        #expect(try await served.tasks.isEmpty)
        await served.listener.stop()
    }

    @Test func `an allowed host cannot redirect to another one`() async throws {
        let hidden = try RawServer { _ in RawServer.json(200, "{}") }
        let port = hidden.port
        let allowed = try RawServer { request in
            RawServer.json(302, "{}", ["Location: http://127.0.0.1:\(port)\(request.target)"])
        }
        let served = try await ServedDatabase {
            $0.allowsReplicationWith = { [port = allowed.port] in $0.port == Int(port) }
        }
        let url = "http://127.0.0.1:\(allowed.port)/db"
        let answer = try await served.replicate(["source": .string(url), "target": "main"])
        #expect(answer.status == 500)
        #expect(answer.json["reason"]?.string?.contains("redirected") == true)
        #expect(!allowed.requests.isEmpty)
        #expect(hidden.requests.isEmpty)
        await served.listener.stop()
    }

    @Test func `the listener's own URLs mean its databases, with its users' credentials`() async throws {
        let served = try await ServedDatabase {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
            $0.allowsDatabaseCreation = true
        }
        #expect(try await served.call("PUT", "/main/a", [:], as: "ana").status == 201)
        let port = served.client.port
        let own: [JSONValue] = [
            "main", .string(served.url("main")), .string("http://localhost:\(port)/main/"),
            .string("http://bob:bob@127.0.0.1:\(port)/main"),
            ["url": .string(served.url("main")), "auth": ["basic": ["username": "bob", "password": "bob"]]],
            ["url": .string(served.url("main")), "headers": ["Authorization": "Basic Ym9iOmJvYg=="]],
        ]
        var sessions: Set<JSONValue> = []
        for source in own {
            let request: JSONValue = ["source": source, "target": "copy", "create_target": true]
            let answer = try await served.replicate(request, as: "ana")
            #expect(answer.status == 200, "\(source): \(answer.text)")
            sessions.insert(answer.json["session_id"] ?? .null)
        }
        #expect(sessions.count == 1)
        let wrong = "http://bob:ana@127.0.0.1:\(port)/main"
        let refused = try await served.replicate(["source": .string(wrong), "target": "copy"], as: "ana")
        #expect(refused.status == 500)
        #expect(refused.json["error"] == "replication_auth_error")
        for path in ["", "/", "main/x", "main?x=1", "none"] {
            let request: JSONValue = ["source": .string(served.url(path)), "target": "copy"]
            let answer = try await served.replicate(request, as: "ana")
            #expect(answer.status == 500, "\(path)")
            #expect(answer.json["error"] == "db_not_found", "\(path)")
        }
        let anonymous = try await served.replicate(["source": "main", "target": "copy"])
        #expect(anonymous.status == 401)
        #expect(anonymous.json["error"] == "unauthorized")
        await served.listener.stop()
    }

    @Test func `read-only and write-only listeners and policies refuse what they protect`() async throws {
        let request: JSONValue = ["source": "a", "target": "b"]
        let changes: [(@Sendable (inout CouchDBListenerConfiguration) -> Void, Int)] = [
            ({ $0.readOnly = true }, 403), ({ $0.writeOnly = true }, 403),
            ({ $0.accessPolicy = AccessPolicy { _, _, _ in .write } }, 403), ({ _ in }, 200),
        ]
        for (change, status) in changes {
            let served = try await ServedDatabase {
                for name in ["a", "b"] { _ = try $0.database.createCollection(name: name) }
                change(&$0)
            }
            #expect(try await served.replicate(request).status == status)
            await served.listener.stop()
        }
        // The direction counts, not the host.
        let remote = try await PassiveSide()
        let url = JSONValue.string(try remote.url().absoluteString)
        for isReadOnly in [true, false] {
            let served = try await ServedDatabase {
                $0.readOnly = isReadOnly
                $0.writeOnly = !isReadOnly
                $0.allowsReplicationWith = { _ in true }
            }
            let push = try await served.replicate(["source": "main", "target": url])
            #expect(push.status == (isReadOnly ? 200 : 403), "\(push.text)")
            let pull = try await served.replicate(["source": url, "target": "main"])
            #expect(pull.status == (isReadOnly ? 403 : 200), "\(pull.text)")
            await served.listener.stop()
        }
        await remote.listener.stop()
    }

    @Test func `a target is created only where clients may create databases`() async throws {
        let served = try await ServedDatabase()
        let request: JSONValue = ["source": "main", "target": "new", "create_target": true]
        #expect(try await served.replicate(request).status == 403)
        let existing: JSONValue = ["source": "main", "target": "main", "create_target": true]
        #expect(try await served.replicate(existing).status == 200)
        await served.listener.stop()
    }

    @Test func `requests that are not valid are refused as CouchDB refuses them`() async throws {
        let served = try await ServedDatabase()
        let wrong: [(JSONValue, String)] = [
            (["doc_ids": "x"], "parameter `doc_ids` must be an array"),
            (["doc_ids": [1]], "parameter `doc_ids` must be an array"),
            (["selector": 5], "parameter `selector` must be a JSON object"),
            (["continuous": "x"], "parameter `continuous` must be a boolean"),
            (["cancel": 1], "parameter `cancel` must be a boolean"),
            (["create_target": "x"], "parameter `create_target` must be a boolean"),
            (["winning_revs_only": "x"], "parameter `winning_revs_only` must be a boolean"),
            (["filter": "a/b", "doc_ids": ["a"]], "`doc_ids`,`filter`,`selector` are mutually exclusive"),
            (["selector": [:], "doc_ids": ["a"]], "`doc_ids`,`filter`,`selector` are mutually exclusive"),
            (["source": 5], "`source` must be the name or the URL of a database"),
            (["target": ["url": ""]], "`target` must be the name or the URL of a database"),
            (
                ["source": ["url": "http://a/b", "headers": ["Host": "c"]]],
                "the header Host of `source` is not allowed, or is not a string"
            ),
            (["target": "http://"], "`target` is not a valid URL"),
        ]
        for (options, reason) in wrong {
            var request = options
            for side in ["source", "target"] where request[side] == nil { request[side] = "main" }
            let answer = try await served.replicate(request)
            #expect(answer.status == 400, "\(answer.text)")
            #expect(answer.json["reason"]?.string == reason, "\(answer.text)")
        }
        #expect(try await served.replicate([1]).status == 400)
        #expect(try await served.replicate([:]).status == 400)
        #expect(try await served.call("POST", "/_replicate").status == 415)
        #expect(try await served.call("GET", "/_replicate").status == 400)
        #expect(try await served.call("PUT", "/_replicate", [:]).status == 405)
        await served.listener.stop()
    }
}
