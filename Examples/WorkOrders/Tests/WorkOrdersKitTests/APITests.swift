import Foundation
import Hummingbird
import Loveseat
import Testing

@Suite(.timeLimit(.minutes(1)))
struct APITests {
    private let server = TestServer()

    @Test func `an order is created, read, replaced, listed and deleted`() async throws {
        try await server.run { client in
            let made = try await client.send(
                .post,
                "/api/orders",
                ["title": "Replace the filter", "site": "Pump 7", "priority": 1]
            )
            #expect(made.status == .created)
            let id = try #require(made.json["id"]?.string)
            _ = try await client.send(
                .post,
                "/api/orders",
                ["title": "Paint", "site": "Pump 7", "status": "started", "id": "paint"]
            )

            let read = try await client.send(.get, "/api/orders/\(id)")
            #expect(read.json == made.json)
            var changed = read.json
            changed["assignee"] = "van-7"
            let replaced = try await client.send(.put, "/api/orders/\(id)", changed)
            #expect(replaced.status == .ok)
            #expect(replaced.json["assignee"] == "van-7")

            let all = try await client.send(.get, "/api/orders?site=Pump%207")
            #expect(all.json.array?.map { $0["title"]?.string } == ["Replace the filter", "Paint"])
            let started = try await client.send(.get, "/api/orders?status=started&limit=5")
            #expect(started.json.array?.map { $0["id"]?.string } == ["paint"])
            #expect(try await client.send(.get, "/api/orders?assignee=van-7").json.array?.count == 1)

            #expect(try await client.send(.delete, "/api/orders/\(id)").status == .noContent)
            #expect(try await client.send(.get, "/api/orders/\(id)").status == .notFound)
        }
    }

    @Test func `errors have a status, a code and the names of the fields`() async throws {
        try await server.run { client in
            let invalid = try await client.send(
                .post,
                "/api/orders",
                ["title": "", "site": "Pump 7", "priority": 9]
            )
            #expect(invalid.status == .unprocessableContent)
            #expect(invalid.json["error"]?["code"] == "invalid")
            #expect(invalid.json["error"]?["fields"]?.object?.keys.sorted() == ["priority", "title"])
            #expect(
                try await client.send(.post, "/api/orders", ["title": "x"]).json["error"]?["code"]
                    == "badRequest"
            )
            #expect(try await client.send(.get, "/api/orders?status=odd").status == .unprocessableContent)
            #expect(
                try await client.send(.post, "/api/orders", ["title": "x", "site": "y", "id": "_a"]).status
                    == .unprocessableContent
            )
            #expect(try await client.send(.get, "/api/nothing").json["error"]?["code"] == "notFound")
            #expect(try await client.send(.get, "/api/orders", token: "wrong").status == .unauthorized)
            #expect(try await client.send(.get, "/health", token: "none").status == .ok)
            #expect(
                try await client.send(.post, "/api/devices", ["name": "Van 7"]).status
                    == .unprocessableContent
            )
            #expect(try await client.send(.delete, "/api/devices/van-7").status == .notFound)
        }
    }

    @Test func `a client that has read an older revision changes nothing`() async throws {
        try await server.run { client in
            let order: JSONValue = ["id": "a", "title": "Paint", "site": "Pump 7"]
            let first = try await client.send(.post, "/api/orders", order)
            #expect(try await client.send(.post, "/api/orders", order).status == .conflict)
            #expect(try await client.send(.put, "/api/orders/a", order).status == .conflict)
            var changed = first.json
            changed["notes"] = "twice"
            #expect(try await client.send(.put, "/api/orders/a", changed).status == .ok)
            changed["notes"] = "once"
            #expect(
                try await client.send(.put, "/api/orders/a", changed).json["error"]?["code"] == "conflict"
            )
            #expect(try await client.send(.get, "/api/orders/a").json["notes"] == "twice")
            #expect(try await client.send(.put, "/api/orders/b", changed).status == .notFound)
        }
    }

    @Test func `metrics name requests by route, and documents and maintenance`() async throws {
        try await server.run { client in
            _ = try await client.send(.post, "/api/orders", ["title": "Paint", "site": "Pump 7"])
            _ = try await client.send(.get, "/api/orders/missing")
            #expect(try await client.send(.post, "/api/maintenance").text == "0 tombstones removed\n")
            let text = try await client.send(.get, "/metrics").text
            #expect(text.contains("# TYPE workorders_orders gauge\nworkorders_orders "))
            #expect(text.contains("# TYPE workorders_maintenance_runs_total counter\n"))
            let label =
                "http_route=\"/api/orders/{id}\",http_request_method=\"GET\",http_response_status_code=\"404\""
            #expect(text.contains("hb_requests_total{\(label)}"))
        }
    }
}
