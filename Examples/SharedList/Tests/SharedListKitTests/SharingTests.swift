import Foundation
import Loveseat
import SharedListKit
import Testing

/// Two devices that share over TLS on the loopback interface.
@MainActor @Suite(.timeLimit(.minutes(2)))
struct SharingTests {
    private let scratch = Scratch()

    private struct Device {
        let store: ListStore
        let lists: ListsModel
        let sharing: SharingModel
    }

    private func device(_ name: String) async throws -> Device {
        let store = try await scratch.store(name)
        let sharing = try SharingModel(store, networkInterface: "127.0.0.1")
        return Device(store: store, lists: ListsModel(store), sharing: sharing)
    }

    private func pair(_ one: Device, with other: Device) async throws {
        await one.sharing.showCode()
        let code = try #require(one.sharing.code)
        await other.sharing.join(code.digits ?? "", url: code.urls.first?.absoluteString)
        #expect(other.sharing.problem == nil)
        await watch { one.sharing.devices.count == 1 && one.sharing.code == nil }
        await watch { other.sharing.devices.map(\.state) == [.upToDate] }
    }

    @Test func `devices that are paired by six digits have the same lists, also after a restart`()
        async throws
    {
        var (ana, ben) = (try await device("ana"), try await device("ben"))
        let food = try #require(await ana.lists.add("food"))
        try await pair(ana, with: ben)
        await watch { ben.lists.rows.map(\.name) == ["food"] }
        await watch { ana.sharing.devices.map(\.state) == [.upToDate] }

        for device in [ana, ben] {
            await device.sharing.goOffline()
            try await device.store.close()
        }
        (ana, ben) = (try await device("ana"), try await device("ben"))
        #expect(ana.sharing.devices.map(\.state) == [.notConnected])
        await ana.sharing.goOnline()
        await ben.sharing.goOnline()
        try ben.store.items.save(Item(list: food, text: "milk"))
        await watch { ana.lists.rows.first?.open == 1 }
        try await ana.store.close()
        try await ben.store.close()
    }

    @Test func `edits that two people made apart are all there when they meet again`() async throws {
        let (ana, ben) = (try await device("ana"), try await device("ben"))
        let food = try #require(await ana.lists.add("food"))
        for id in ["milk", "bread", "tea"] {
            try ana.store.items.save(Document(id: id, ["list": .string(food), "text": .string(id)]))
        }
        try await pair(ana, with: ben)
        await watch { ben.lists.rows.first?.open == 3 }
        await ana.sharing.goOffline()
        await ben.sharing.goOffline()

        let (anas, bens) = (ListModel(ana.store, list: food), ListModel(ben.store, list: food))
        await ItemModel(ana.store, item: "milk").set(text: "oat milk")
        await ItemModel(ben.store, item: "milk").set(text: "soy milk")
        await ItemModel(ana.store, item: "bread").set(note: "dark")
        await ItemModel(ben.store, item: "bread").set(isDone: true)
        await anas.remove("tea")
        await ItemModel(ben.store, item: "tea").set(note: "green")
        await bens.add("rice")

        await ana.sharing.goOnline()
        await ben.sharing.goOnline()
        await watch { isMerged(anas.items) && isMerged(bens.items) }
        #expect(isMerged(anas.items))
        #expect(isMerged(bens.items))
        try await ana.store.close()
        try await ben.store.close()
    }

    private func isMerged(_ items: [Item]) -> Bool {
        let found = Dictionary(grouping: items, by: \.text).mapValues { $0[0] }
        return Set(found.keys) == ["oat milk / soy milk", "bread", "tea", "rice"]
            && found["bread"]?.note == "dark" && found["bread"]?.isDone == true
            && found["tea"]?.note == "green"
    }

    @Test func `wrong digits and a device that was forgotten are explained`() async throws {
        let (ana, ben) = (try await device("ana"), try await device("ben"))
        await ana.sharing.showCode()
        let code = try #require(ana.sharing.code)
        let wrong = code.digits == "000000" ? "111111" : "000000"
        await ben.sharing.join(wrong, url: code.urls.first?.absoluteString)
        #expect(ben.sharing.problem?.contains("code") == true)
        await ben.sharing.join("12", url: code.urls.first?.absoluteString)
        #expect(ben.sharing.problem?.hasPrefix("a pairing code has six digits") == true)
        #expect(ben.sharing.devices.isEmpty)

        try await pair(ana, with: ben)
        await watch { ana.sharing.devices.map(\.state) == [.upToDate] }
        await ana.sharing.forget(ana.sharing.devices[0].id)
        await ben.sharing.retry()
        await watch {
            ben.sharing.devices.first.map { $0.state.text.contains("does not know this device") } ?? false
        }
        #expect(ana.sharing.devices.isEmpty)
        try await ana.store.close()
        try await ben.store.close()
    }
}
