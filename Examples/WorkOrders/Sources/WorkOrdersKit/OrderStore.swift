import Crypto
import Foundation
import Loveseat

/// The server's database.
package struct OrderStore: Sendable {
    package let database: Database
    /// Devices replicate this collection, and no other.
    package let orders: Loveseat.Collection
    let devices: Loveseat.Collection

    /// Opens the database of a folder, or creates it.
    package static func open(folder: URL) async throws -> OrderStore {
        // What a client was told is stored survives a power loss.
        let configuration = DatabaseConfiguration(directory: folder.path, fullSync: true)
        let database = try Database(name: "workorders", config: configuration)
        let orders = try database.createCollection(name: "orders", scope: "field")
        let devices = try database.createCollection(name: "devices")
        // The second one finds at once what the server has to confirm.
        try await orders.createIndex(ValueIndexConfiguration(["status", "priority"]), withName: "status")
        try await orders.createIndex(ValueIndexConfiguration(["site", "status"]), withName: "site")
        return OrderStore(database: database, orders: orders, devices: devices)
    }

    // Handlers await: none of them blocks a thread of Swift's pool or of the HTTP server.

    package func order(_ id: String) async throws -> Order {
        guard let order = try await database.read({ try $0.document(id: id, in: orders, as: Order.self) })
        else {
            throw APIError.notFound("order \(id)")
        }
        return order
    }

    /// Returns orders, the most urgent first.
    package func orders(status: Order.Status?, site: String?, assignee: String?, limit: Int) async throws
        -> [Order]
    {
        var conditions: [String] = []
        var parameters: QueryParameters = ["maximum": JSONValue(limit)]
        for (name, value) in [("status", status?.rawValue), ("site", site), ("assignee", assignee)] {
            // Values are parameters; the names are ours.
            guard let value else { continue }
            conditions.append("\(name) = $\(name)")
            parameters[name] = .string(value)
        }
        let condition = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
        var query = try database.createQuery(
            "SELECT meta().id, meta().revisionID, * FROM field.orders \(condition) ORDER BY priority, meta().id LIMIT $maximum"
        )
        query.parameters = parameters
        query.deadline = .seconds(5)
        return try await query.execute(as: Order.self, dataKey: "orders")
    }

    /// Creates an order. Throws ``APIError/conflict`` if there is one with its ID.
    package func create(_ order: Order) async throws -> Order {
        try await save(order) { stored in stored == nil }
    }

    /// Replaces an order that the client has read. Throws ``APIError/conflict`` if it was changed since.
    package func replace(_ order: Order) async throws -> Order {
        try await save(order) { stored in
            guard let stored else { throw APIError.notFound("order \(order.id)") }
            return stored.revisionID == order.revisionID
        }
    }

    private func save(_ order: Order, if isRight: @Sendable (Order?) throws -> Bool) async throws -> Order {
        guard order.problems.isEmpty else { throw APIError.invalid(order.problems) }
        return try await database.write { transaction in
            var order = order
            let stored = try transaction.document(id: order.id, in: orders, as: Order.self)
            guard try isRight(stored) else { throw APIError.conflict }
            order.revisionID = stored?.revisionID
            order.confirmed = order.status == .done ? stored?.confirmed : nil
            try transaction.save(&order, in: orders)
            return order
        }
    }

    package func delete(_ id: String) async throws {
        try await database.write { transaction in
            guard try transaction.exists(id: id, in: orders) else { throw APIError.notFound("order \(id)") }
            try transaction.delete(id: id, in: orders)
        }
    }

    // MARK: Devices

    /// Lets a device connect, and returns its password, which is not stored. An earlier password does not work any more.
    package func addDevice(_ name: String) async throws -> String {
        guard Device.isName(name) else { throw APIError.invalid(["name": Device.nameRule]) }
        let password = Data((0..<18).map { _ in UInt8.random(in: 0...255) }).base64EncodedString()
        let device = Device(id: name, digest: Self.digest(password))
        try await database.write { try $0.save(device, in: devices) }
        return password
    }

    package func removeDevice(_ name: String) async throws {
        try await database.write { transaction in
            guard try transaction.exists(id: name, in: devices) else {
                throw APIError.notFound("device \(name)")
            }
            try transaction.delete(id: name, in: devices)
        }
    }

    package func count() async throws -> UInt64 { try await database.read { try $0.count(in: orders) } }

    package func deviceNames() async throws -> [String] {
        try await database.read { try $0.documentIDs(in: devices) }
    }

    func isDevice(_ name: String, password: String? = nil) -> Bool {
        guard let device = try? devices.document(id: name, as: Device.self) else { return false }
        return password.map { ListenerPasswordAuthenticator.isEqual(device.digest, Self.digest($0)) } ?? true
    }

    private static func digest(_ password: String) -> String {
        SHA256.hash(data: Data(password.utf8)).map { String($0 / 16, radix: 16) + String($0 % 16, radix: 16) }
            .joined()
    }
}
