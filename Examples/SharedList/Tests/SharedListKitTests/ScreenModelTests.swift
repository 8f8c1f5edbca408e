import Foundation
import Loveseat
import SharedListKit
import Testing

/// The view models of the first three screens.
@MainActor @Suite(.timeLimit(.minutes(1)))
struct ScreenModelTests {
    private let scratch = Scratch()

    @Test func `lists are shown in the order of their names, with the number of their items`() async throws {
        let lists = ListsModel(try await scratch.store("phone"))
        await watch { !lists.isLoading }
        #expect(lists.rows == [])
        let food = try #require(await lists.add("food"))
        await lists.add("Books")
        let list = ListModel(lists.store, list: food)
        await list.add("milk")
        await list.add("bread")
        await watch { list.items.map(\.text) == ["milk", "bread"] && list.name == "food" }
        await list.toggle(list.items[0])
        await watch { lists.rows.map(\.name) == ["Books", "food"] && lists.rows[1].done == 1 }
        #expect(lists.rows[1].open == 1)
        #expect(lists.failure == nil)
    }

    @Test func `items that are done come last, and a rename, a check mark and a removal are seen at once`()
        async throws
    {
        let lists = ListsModel(try await scratch.store("phone"))
        let list = ListModel(lists.store, list: try #require(await lists.add("food")))
        for text in ["milk", "bread", "tea"] { await list.add(text) }
        await watch { list.items.count == 3 }
        await list.toggle(list.items[0])
        await list.rename("groceries")
        await watch { list.items.map(\.text) == ["bread", "tea", "milk"] && list.name == "groceries" }
        await list.remove(list.items[0].id)
        await watch { list.items.map(\.text) == ["tea", "milk"] }
        #expect(list.items.map(\.isDone) == [false, true])
    }

    @Test func `an edit of an item keeps the properties that only a newer app knows`() async throws {
        let store = try await scratch.store("phone")
        try store.items.save(Document(id: "milk", ["list": "food", "text": "milk", "price": 3]))
        let model = ItemModel(store, item: "milk")
        await model.set(note: "two bottles")
        await model.set(isDone: true)
        await watch { model.item?.isDone == true }
        #expect(model.item?.note == "two bottles")
        #expect(try store.items.document(id: "milk")?["price"] == 3)
        await model.remove()
        await watch { model.item == nil }
        #expect(model.problem == nil)
    }

    @Test func `an item whose list was deleted elsewhere can still be found`() async throws {
        let lists = ListsModel(try await scratch.store("phone"))
        try lists.store.items.save(Item(list: "gone", text: "milk"))
        await watch { lists.rows.map(\.id) == ["gone"] }
        #expect(lists.rows[0].open == 1)
        await lists.remove("gone")
        await watch { lists.rows.isEmpty }
    }

    @Test func `what fails is shown to the person until something works`() async throws {
        let lists = ListsModel(try await scratch.store("phone"))
        let list = ListModel(lists.store, list: "missing")
        await list.rename("food")
        #expect(list.problem?.contains("missing") == true)
        await list.add("milk")
        #expect(list.problem == nil)
        try await lists.store.close()
        #expect(await lists.add("food") == nil)
        #expect(lists.problem != nil)
    }
}
