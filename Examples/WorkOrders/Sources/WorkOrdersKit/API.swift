import Foundation
import Hummingbird
import Loveseat
import Metrics

extension Order: ResponseEncodable {}

private struct DeviceRequest: Decodable {
    let name: String
}

private struct NewDevice: ResponseEncodable {
    let name: String
    let password: String
    let urls: [String]
    /// What the device pins.
    let fingerprint: String?
}

/// The REST API of the office.
package struct API: Sendable {
    let store: OrderStore
    let sync: SyncService
    let maintenance: Maintenance
    let metrics: PrometheusMetrics
    let token: String

    package func router() -> Router<BasicRequestContext> {
        let router = Router()
        router.add(middleware: MetricsMiddleware())
        router.add(middleware: TypedErrors())
        router.get("health") { _, _ in "ok\n" }
        router.get("metrics") { _, _ in
            Gauge(label: "workorders_orders").record(Int(try await store.count()))
            return metrics.text
        }
        let api = router.group("api").add(middleware: RequireToken(token: token))
        addOrders(to: api.group("orders"))
        addDevices(to: api.group("devices"))
        api.post("maintenance") { _, _ in "\(try await maintenance.perform()) tombstones removed\n" }
        return router
    }

    private func addOrders(to group: RouterGroup<BasicRequestContext>) {
        group.get { request, _ in
            let parameters = request.uri.queryParameters
            let status = parameters.get("status")
            guard status == nil || status.flatMap(Order.Status.init) != nil else {
                throw APIError.invalid(["status": "must be open, started or done"])
            }
            let limit = parameters.get("limit", as: Int.self) ?? 100
            guard (1...1_000).contains(limit) else { throw APIError.invalid(["limit": "must be 1 to 1000"]) }
            return try await store.orders(
                status: status.flatMap(Order.Status.init),
                site: parameters.get("site"),
                assignee: parameters.get("assignee"),
                limit: limit
            )
        }
        group.post { request, context in
            let order = try await store.create(try await request.decode(as: Order.self, context: context))
            let location = HTTPFields(dictionaryLiteral: (.location, "/api/orders/\(order.id)"))
            return EditedResponse(status: .created, headers: location, response: order)
        }
        group.get(":id") { _, context in try await store.order(try context.parameters.require("id")) }
        group.put(":id") { request, context in
            var order = try await request.decode(as: Order.self, context: context)
            order.id = try context.parameters.require("id")
            return try await store.replace(order)
        }
        group.delete(":id") { _, context in
            try await store.delete(try context.parameters.require("id"))
            return HTTPResponse.Status.noContent
        }
    }

    private func addDevices(to group: RouterGroup<BasicRequestContext>) {
        group.get { _, _ in try await store.deviceNames() }
        group.post { request, context in
            let name = try await request.decode(as: DeviceRequest.self, context: context).name
            let device = NewDevice(
                name: name,
                password: try await store.addDevice(name),
                urls: sync.listener.urls?.map(\.absoluteString) ?? [],
                fingerprint: sync.listener.tlsIdentity?.certs.first?.fingerprint
            )
            return EditedResponse(status: .created, response: device)
        }
        group.delete(":name") { _, context in
            try await store.removeDevice(try context.parameters.require("name"))
            // A device that is connected loses what it has; it cannot connect again.
            await sync.listener.accessChanged()
            return HTTPResponse.Status.noContent
        }
    }
}
