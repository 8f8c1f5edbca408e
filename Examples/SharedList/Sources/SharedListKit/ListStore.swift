import Foundation
import Loveseat

/// The app's database, and everything that a person does to it.
package struct ListStore: Sendable {
    package let database: Database
    package let lists: Loveseat.Collection
    package let items: Loveseat.Collection
    /// Not shared with other devices.
    let device: Loveseat.Collection
    /// Keeps the key by which other devices know this one.
    let identities: any IdentityStore

    /// Opens the database of a folder, or creates it. `identities`: on Apple's systems the keychain; nil for a folder beside the database.
    package static func open(folder: URL, identities: (any IdentityStore)? = nil) async throws -> ListStore {
        let database = try Database(name: "sharedlist", config: .init(directory: folder.path))
        let items = try database.createCollection(name: "items", scope: "shared")
        try await items.createIndex(ValueIndexConfiguration(["list", "isDone", "added"]), withName: "list")
        return ListStore(
            database: database,
            lists: try database.createCollection(name: "lists", scope: "shared"),
            items: items,
            device: try database.createCollection(name: "device"),
            identities: identities ?? FileIdentityStore(folder: folder.appending(path: "identities"))
        )
    }

    /// Ends sharing, and closes the database.
    package func close() async throws { try await database.close() }

    // MARK: Edits

    // Each of them waits on one of the database's own threads, not on the main actor.

    func add(_ list: SharedList) async throws {
        try await database.write { try $0.save(list, in: lists) }
    }

    func add(_ item: Item) async throws {
        try await database.write { try $0.save(item, in: items) }
    }

    /// Changes an item. Only what the closure changes is written, so that a newer app's properties stay.
    func update(item id: String, _ change: @Sendable (inout Item) -> Void) async throws {
        try await database.write { _ = try $0.update(id: id, in: items, as: Item.self, change) }
    }

    func rename(list id: String, to name: String) async throws {
        try await database.write {
            _ = try $0.update(id: id, in: lists, as: SharedList.self) { $0.name = name }
        }
    }

    func delete(item id: String) async throws {
        try await database.write { try $0.delete(id: id, in: items) }
    }

    /// Deletes a list with the items that this device knows. An item that somebody else adds or edits meanwhile comes back.
    func delete(list id: String) async throws {
        try await database.write { transaction in
            var query = try transaction.createQuery("SELECT meta().id FROM shared.items WHERE list = $list")
            query.parameters = ["list": .string(id)]
            for row in try transaction.execute(query) {
                if let item = row["id"]?.string { try transaction.delete(id: item, in: items) }
            }
            if try transaction.exists(id: id, in: lists) { try transaction.delete(id: id, in: lists) }
        }
    }
}

extension Error {
    /// What to show to a person.
    var messageForPeople: String { (self as? LoveseatError)?.message ?? "\(self)" }
}
