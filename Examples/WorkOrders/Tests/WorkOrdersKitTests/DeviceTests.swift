import Foundation
import Hummingbird
import Loveseat
import Testing
import WorkOrdersKit

/// Devices that replicate with the server, over TLS.
@Suite(.timeLimit(.minutes(1)))
struct DeviceTests {
    private let server = TestServer()

    private func pass(_ configuration: ReplicatorConfiguration) async -> LoveseatError? {
        let replicator = Replicator(configuration)
        replicator.start()
        return await replicator.waitUntilStopped().error
    }

    @Test func `an order that a device has done is confirmed, and the device is told`() async throws {
        let (database, orders) = try server.device("van-7")
        try await server.run { client in
            _ = try await client.send(
                .post,
                "/api/orders",
                ["id": "a", "title": "Paint", "site": "Pump 7", "assignee": "van-7"]
            )
            var configuration = try await client.replication(of: orders, as: "van-7")
            configuration.continuous = true
            let replicator = Replicator(configuration)
            replicator.start()
            for try await order in try orders.observe(id: "a", as: Order.self) {
                if order?.confirmed != nil { break }
                if order?.status == .open {
                    _ = try orders.update(id: "a", as: Order.self) { $0.status = .done }
                }
            }
            #expect(try await client.send(.get, "/api/orders/a").json["confirmed"]?.string != nil)
            replicator.stop()
            await replicator.waitUntilStopped()
            #expect(
                try await client.send(.get, "/metrics").text.contains("workorders_documents_received_total")
            )
        }
        try await database.close()
    }

    @Test func `a device has the orders that are offered to all and its own, and loses those of others`()
        async throws
    {
        let (database, orders) = try server.device("van-7")
        try await server.run { client in
            for (id, assignee) in [("all", JSONValue.null), ("mine", "van-7"), ("other", "van-8")] {
                var order: JSONValue = ["id": .string(id), "title": "Paint", "site": "Pump 7"]
                order["assignee"] = assignee
                _ = try await client.send(.post, "/api/orders", order)
            }
            let configuration = try await client.replication(of: orders, as: "van-7")
            #expect(await pass(configuration) == nil)
            #expect(try await orders.documentIDs() == ["all", "mine"])

            var order = try await client.send(.get, "/api/orders/mine").json
            order["assignee"] = "van-8"
            _ = try await client.send(.put, "/api/orders/mine", order)
            #expect(await pass(configuration) == nil)
            #expect(try await orders.documentIDs() == ["all"])

            #expect(try await client.send(.delete, "/api/devices/van-7").status == .noContent)
            #expect(await pass(configuration)?.code == .httpAuthRequired)
        }
        try await database.close()
    }

    @Test func `what a device may not write is refused, and the device says why`() async throws {
        let (database, orders) = try server.device("van-7")
        try await server.run { client in
            let configuration = try await client.replication(of: orders, as: "van-7")
            try orders.save(Document(id: "bad", ["title": "", "site": "Pump 7", "assignee": "van-7"]))
            try orders.save(Document(id: "good", ["title": "Rust", "site": "Pump 7", "assignee": "van-7"]))
            try orders.save(Document(id: "theirs", ["title": "Rust", "site": "Pump 7", "assignee": "van-8"]))
            let replicator = Replicator(configuration)
            let events = replicator.documentReplications
            replicator.start()
            var errors: [String: String] = [:]
            for await event in events {
                for document in event.documents { errors[document.id] = document.error?.message }
            }
            #expect(errors["bad"]?.contains("title must have 1 to 200 characters") == true)
            #expect(errors["theirs"] != nil)
            #expect(errors["good"] == nil)
            #expect(
                try await client.send(.get, "/api/orders").json.array?.map { $0["id"]?.string } == ["good"]
            )
        }
        try await database.close()
    }

    @Test func `the nightly hour is always ahead`() {
        let noon = Date(timeIntervalSince1970: 12 * 3_600)
        #expect(Maintenance.seconds(from: noon, to: 3) == 15 * 3_600)
        #expect(Maintenance.seconds(from: noon, to: 13) == 3_600)
        #expect(Maintenance.seconds(from: noon, to: 12) == 86_400)
    }
}
