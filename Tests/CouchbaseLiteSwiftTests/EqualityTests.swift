import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct EqualityTests {
    private let world: World

    init() throws { world = try World() }

    @Test func `documents are equal by collection, ID and content, whatever their revision`() throws {
        let document = MutableDocument(id: "tower", data: ["n": 1])
        #expect(document == MutableDocument(id: "tower", data: ["n": 1]))
        #expect(document != MutableDocument(id: "other", data: ["n": 1]))
        #expect(document != MutableDocument(id: "tower", data: ["n": 2]))
        let stored = try world.reloaded(document)
        #expect(stored == document)
        #expect(stored != MutableDocument(id: "tower", data: ["n": 1]))
        let copy = stored.toMutable().setInt(2, forKey: "n")
        #expect(copy != stored)
        try world.sights.save(document: copy)
        copy.setInt(1, forKey: "n")
        #expect(copy == stored)
        #expect(Set([copy as Document, stored]).count == 1)
    }

    @Test func `a document of another database is another one`() throws {
        let other = try Database(name: "other", config: world.config)
        let collection = try other.createCollection(name: "sights", scope: "travel")
        let mine = try world.reloaded(MutableDocument(id: "tower", data: ["n": 1]))
        let twin = MutableDocument(id: "tower", data: ["n": 1])
        try collection.save(document: twin)
        #expect(twin != mine)
        let again = try Database(name: "trips", config: world.config)
        let same = try #require(try again.collection(name: "sights", scope: "travel")?.document(id: "tower"))
        #expect(same == mine)
    }

    @Test func `dictionaries and arrays are equal by content, also if only one can change`() throws {
        let data: [String: Any] = ["a": 1, "b": [true, NSNull(), ["c": "d"]]]
        let stored = try world.reloaded(MutableDocument(data: ["map": data]))
        let map = try #require(stored.dictionary(forKey: "map"))
        #expect(map == MutableDictionaryObject(data: data))
        #expect(map.toMutable() == map)
        #expect(map != MutableDictionaryObject(data: ["a": 1]))
        #expect(map.array(forKey: "b") == MutableArrayObject(data: [true, NSNull(), ["c": "d"]]))
        #expect(map.array(forKey: "b") != MutableArrayObject(data: [NSNull(), true, ["c": "d"]]))
        #expect(Set([map, MutableDictionaryObject(data: data)]).count == 1)
    }

    @Test func `numbers are equal by value, and booleans are not numbers`() {
        #expect(MutableArrayObject(data: [1, 2.0]) == MutableArrayObject(data: [1.0, 2]))
        #expect(MutableArrayObject(data: [Int64.max]) != MutableArrayObject(data: [Int64.max - 1]))
        #expect(MutableArrayObject(data: [1]) != MutableArrayObject(data: [true]))
    }
}
