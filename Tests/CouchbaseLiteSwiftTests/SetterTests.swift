import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct SetterTests {
    private let world: World

    init() throws { world = try World() }

    @Test func `nil is stored as null`() throws {
        let document = MutableDocument().setString(nil, forKey: "a").setValue(nil, forKey: "b")
        for document in [document, try world.reloaded(document)] {
            #expect(document.contains(key: "a"))
            #expect(document.value(forKey: "a") is NSNull)
            #expect(document.value(forKey: "b") is NSNull)
        }
    }

    @Test func `a date becomes text in UTC with milliseconds`() throws {
        let date = Date(timeIntervalSince1970: 1_772_357_400.25)
        let document = MutableDocument().setDate(date, forKey: "opened")
        #expect(document.string(forKey: "opened") == "2026-03-01T09:30:00.250Z")
        #expect(document.value(forKey: "opened") is String)
        let read = try #require(try world.reloaded(document).date(forKey: "opened"))
        #expect(abs(read.timeIntervalSince(date)) < 0.001)
    }

    @Test func `a dictionary that can change is kept by reference until the document is reloaded`() throws {
        let document = MutableDocument(id: "tower")
        let address = MutableDictionaryObject(data: ["city": "Paris"])
        document.setDictionary(address, forKey: "home").setValue(address, forKey: "work")
        #expect(document.dictionary(forKey: "home") === address)
        #expect(document.value(forKey: "work") as? MutableDictionaryObject === address)
        try world.sights.save(document: document)
        address.setString("Lyon", forKey: "city")
        #expect(document.dictionary(forKey: "work")?.string(forKey: "city") == "Lyon")
        let stored = try #require(try world.sights.document(id: "tower"))
        #expect(stored.dictionary(forKey: "home")?.string(forKey: "city") == "Paris")
        try world.sights.save(document: document)
        let again = try #require(try world.sights.document(id: "tower"))
        #expect(again.dictionary(forKey: "home")?.string(forKey: "city") == "Lyon")
    }

    @Test func `a nested value of a loaded document can be changed and saved`() throws {
        let document = MutableDocument(
            id: "tower",
            data: ["address": ["city": "Paris", "lines": ["a", "b"]], "n": 1]
        )
        let loaded = try world.reloaded(document).toMutable()
        loaded.dictionary(forKey: "address")?.array(forKey: "lines")?.addString("c")
        let changed = try world.reloaded(loaded)
        #expect(changed.dictionary(forKey: "address")?.array(forKey: "lines")?.count == 3)
        #expect(changed.dictionary(forKey: "address")?.string(forKey: "city") == "Paris")
        #expect(changed.int(forKey: "n") == 1)
    }

    @Test func `toMutable copies`() throws {
        let document = MutableDocument(data: ["map": ["a": 1], "list": [1, [2]]])
        let map = try #require(document.dictionary(forKey: "map"))
        let copy = map.toMutable().setInt(2, forKey: "a")
        #expect(map.int(forKey: "a") == 1)
        #expect(copy.int(forKey: "a") == 2)
        let list = try #require(document.array(forKey: "list"))
        list.toMutable().array(at: 1)?.addInt(3)
        #expect(list.array(at: 1)?.count == 1)
        #expect(document.toMutable() === document)
        let stored = try world.reloaded(document)
        let edited = stored.toMutable().setInt(5, forKey: "n")
        #expect(!stored.contains(key: "n"))
        #expect(edited.int(forKey: "n") == 5)
    }

    @Test func `arrays are set, added to, inserted into and removed from`() throws {
        let list = MutableArrayObject()
        list.addInt(1).addString("two").addBoolean(true).addValue(nil)
        list.insertDouble(0.5, at: 0).insertValue(["a": 1], at: 5).setInt64(9, at: 1).removeValue(at: 2)
        let expected: [Any] = [0.5, 9, true, NSNull(), ["a": 1]]
        #expect(list == MutableArrayObject(data: expected))
        let reloaded = try world.reloaded(MutableDocument().setArray(list, forKey: "list"))
        #expect(reloaded.array(forKey: "list") == list)
        #expect(reloaded.array(forKey: "list")?.toJSON() == #"[0.5,9,true,null,{"a":1}]"#)
    }

    @Test func `values of many types are taken`() throws {
        let document = MutableDocument()
        document.setValue(UInt8(8), forKey: "byte").setValue(UInt64.max, forKey: "large")
        document.setValue(NSNumber(value: true), forKey: "boxed").setValue(Float(2.5), forKey: "float")
        document.setValue(Date(timeIntervalSince1970: 0), forKey: "date")
        document.setValue(["a", "b"], forKey: "strings").setValue(["k": [true]], forKey: "nested")
        let reloaded = try world.reloaded(document)
        #expect(reloaded.int(forKey: "byte") == 8)
        #expect(reloaded.value(forKey: "large") as? UInt64 == .max)
        #expect(reloaded.toJSON().contains(#""boxed":true"#))
        #expect(reloaded.double(forKey: "float") == 2.5)
        #expect(reloaded.string(forKey: "date") == "1970-01-01T00:00:00.000Z")
        #expect(reloaded.array(forKey: "strings")?.string(at: 1) == "b")
        #expect(reloaded["nested"]["k"][0].boolean)
    }

    @Test func `setData replaces everything, and removing leaves no key`() {
        let document = MutableDocument(data: ["a": 1, "b": 2]).removeValue(forKey: "a")
        #expect(document.keys == ["b"])
        document.setData(["c": 3])
        #expect(document.keys == ["c"])
        #expect(document.removeValue(forKey: "nowhere").count == 1)
    }
}
