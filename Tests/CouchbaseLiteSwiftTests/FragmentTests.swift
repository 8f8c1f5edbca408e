import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct FragmentTests {
    private let world: World

    init() throws { world = try World() }

    private func document() -> MutableDocument {
        MutableDocument(
            id: "tower",
            data: ["name": "Eiffel", "address": ["city": "Paris", "floors": [1, 2]]]
        )
    }

    @Test func `subscripts find nested values`() throws {
        let stored = try world.reloaded(document())
        #expect(stored["name"].string == "Eiffel")
        #expect(stored["address"]["city"].string == "Paris")
        #expect(stored["address"]["floors"][1].int == 2)
        #expect(stored["address"].exists)
        #expect(!stored["address"]["nowhere"]["deeper"][3].exists)
        #expect(stored["address"]["floors"][9].value == nil)
        #expect(stored["address"].dictionary === stored.dictionary(forKey: "address"))
    }

    @Test func `fragments of a document that can change write through`() throws {
        let document = document()
        document["name"].string = "Tour Eiffel"
        document["likes"].int = 4
        document["address"]["city"].value = "Lyon"
        document["address"]["floors"][0].double = 1.5
        document["tags"].array = MutableArrayObject(data: ["iron"])
        document["gone"].date = nil
        let stored = try world.reloaded(document)
        #expect(stored["name"].string == "Tour Eiffel")
        #expect(stored["likes"].int == 4)
        #expect(stored["address"]["city"].string == "Lyon")
        #expect(stored["address"]["floors"][0].double == 1.5)
        #expect(stored["tags"][0].string == "iron")
        #expect(stored["gone"].value is NSNull)
        document["tags"].array?.addString("tall")
        #expect(document["tags"].array?.count == 2)
    }

    @Test func `setting below a value that does not exist changes nothing`() {
        let document = document()
        document["nowhere"]["deeper"].string = "x"
        document["address"]["floors"][7].int = 8
        #expect(!document.contains(key: "nowhere"))
        #expect(document["address"]["floors"].array?.count == 2)
    }

    @Test func `a collection's subscript finds documents and never throws`() throws {
        _ = try world.reloaded(document())
        #expect(world.sights["tower"].exists)
        #expect(world.sights["tower"]["address"]["city"].string == "Paris")
        #expect(!world.sights["nowhere"].exists)
        #expect(world.sights["nowhere"].document == nil)
        #expect(world.sights["nowhere"]["name"].string == nil)
        #expect(!world.sights[""].exists)
    }
}
