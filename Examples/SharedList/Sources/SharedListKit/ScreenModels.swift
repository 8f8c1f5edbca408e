import Foundation
import Loveseat
import Observation

/// What the screens have in common: the last action's problem, for people to read.
@MainActor package protocol ScreenModel: AnyObject {
    var problem: String? { get set }
    /// Why the screen cannot be shown as it is now.
    var failure: String? { get }
}

extension ScreenModel {
    package var failure: String? { nil }
    /// What is wrong, for people to read.
    package var trouble: String? { problem ?? failure }

    func attempt(_ action: () async throws -> Void) async {
        do {
            try await action()
            problem = nil
        } catch { problem = error.messageForPeople }
    }
}

/// The first screen: all lists.
@MainActor @Observable
package final class ListsModel: ScreenModel {
    package struct Row: Identifiable, Hashable, Sendable {
        package let id: String
        package let name: String
        package let open: Int
        package let done: Int
    }

    package var problem: String?
    package let store: ListStore
    private let live: LiveModel<[Row]>

    package init(_ store: ListStore) {
        self.store = store
        live = LiveModel(initial: []) { [store] in
            try store.database.observe([store.lists, store.items]) { try Self.rows(store, $0) }
        }
    }

    package var rows: [Row] { live.value }
    package var isLoading: Bool { live.isLoading }
    package var failure: String? { live.error?.messageForPeople }

    /// Adds a list. Returns its ID, or nil if there is a ``problem``.
    @discardableResult
    package func add(_ name: String) async -> String? {
        let list = SharedList(name: name)
        await attempt { try await store.add(list) }
        return problem == nil ? list.id : nil
    }

    package func remove(_ id: String) async { await attempt { try await store.delete(list: id) } }

    nonisolated private static func rows(_ store: ListStore, _ transaction: ReadTransaction) throws -> [Row] {
        var counts: [String: (open: Int, done: Int)] = [:]
        let query = try transaction.createQuery(
            "SELECT list, isDone, COUNT(*) AS number FROM shared.items GROUP BY list, isDone"
        )
        for row in try transaction.execute(query) {
            guard let list = row["list"]?.string, let number = row["number"]?.int else { continue }
            if row["isDone"]?.bool == true {
                counts[list, default: (0, 0)].done += number
            } else {
                counts[list, default: (0, 0)].open += number
            }
        }
        var rows: [Row] = []
        for list in try transaction.documents(in: store.lists, as: SharedList.self) {
            let count = counts.removeValue(forKey: list.id) ?? (0, 0)
            rows.append(Row(id: list.id, name: list.name, open: count.open, done: count.done))
        }
        // One device deleted the list while another one added or edited an item.
        for (id, count) in counts {
            rows.append(Row(id: id, name: ListModel.nameOfDeleted, open: count.open, done: count.done))
        }
        return rows.sorted { ($0.name.lowercased(), $0.id) < ($1.name.lowercased(), $1.id) }
    }
}

/// The second screen: a list with its items, those that are done last.
@MainActor @Observable
package final class ListModel: ScreenModel {
    nonisolated static let nameOfDeleted = "From a deleted list"

    package var problem: String?
    package let store: ListStore
    package let id: String
    private let list: LiveDocument<SharedList>
    private let liveItems: LiveQuery<Item>

    package init(_ store: ListStore, list id: String) {
        self.store = store
        self.id = id
        list = LiveDocument(store.lists, id: id)
        liveItems = LiveQuery(
            "SELECT meta().id, * FROM shared.items WHERE list = $list ORDER BY isDone, added, meta().id",
            ["list": .string(id)],
            in: store.database,
            dataKey: "items"
        )
    }

    package var name: String { list.value?.name ?? (list.isLoading ? "" : Self.nameOfDeleted) }
    package var items: [Item] { liveItems.value }
    package var isLoading: Bool { list.isLoading || liveItems.isLoading }
    package var failure: String? { (list.error ?? liveItems.error)?.messageForPeople }

    package func add(_ text: String) async {
        await attempt { try await store.add(Item(list: id, text: text)) }
    }

    package func toggle(_ item: Item) async {
        // What the person sees decides, not what has arrived since.
        let isDone = !item.isDone
        await attempt { try await store.update(item: item.id) { $0.isDone = isDone } }
    }

    package func rename(_ name: String) async { await attempt { try await store.rename(list: id, to: name) } }
    package func remove(_ item: String) async { await attempt { try await store.delete(item: item) } }
}

/// The third screen: the details of an item.
@MainActor @Observable
package final class ItemModel: ScreenModel {
    package var problem: String?
    package let store: ListStore
    package let id: String
    private let live: LiveDocument<Item>

    package init(_ store: ListStore, item id: String) {
        self.store = store
        self.id = id
        live = LiveDocument(store.items, id: id)
    }

    /// Nil if somebody has removed it.
    package var item: Item? { live.value }
    package var isLoading: Bool { live.isLoading }
    package var failure: String? { live.error?.messageForPeople }

    package func set(text: String) async { await change { $0.text = text } }
    package func set(note: String) async { await change { $0.note = note } }
    package func set(isDone: Bool) async { await change { $0.isDone = isDone } }
    package func remove() async { await attempt { try await store.delete(item: id) } }

    private func change(_ change: @Sendable (inout Item) -> Void) async {
        await attempt { try await store.update(item: id, change) }
    }
}
