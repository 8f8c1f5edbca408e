import CouchbaseLiteSwift
import Foundation
import Testing

@Suite(.ownThreads) struct JSONTests {
    private let world: World

    init() throws { world = try World() }

    @Test func `a saved document gives compact text with sorted keys`() throws {
        let document = MutableDocument(data: [
            "key2": 10.5, "key1": 12345, "key3": ["b": NSNull(), "a": "é\""],
        ])
        let stored = try world.reloaded(document)
        #expect(stored.toJSON() == #"{"key1":12345,"key2":10.5,"key3":{"a":"é\"","b":null}}"#)
        #expect(stored.dictionary(forKey: "key3")?.toJSON() == #"{"a":"é\"","b":null}"#)
    }

    @Test func `the text of a document keeps white space in strings, and no other`() throws {
        let stored = try world.reloaded(
            try MutableDocument(json: #" { "c" : "", "b" : [ " ", {"c d" : 1} ], "a" : "\\ \" {" } "#)
        )
        let text = #"{"a":"\\ \" {","b":[" ",{"c d":1}],"c":""}"#
        #expect(stored.toJSON() == text)
        #expect(stored.toMutable().setString("x", forKey: "c").string(forKey: "a") == #"\ " {"#)
        #expect(stored.toJSON() == text)
    }

    @Test func `a floating number stays one in text`() throws {
        let stored = try world.reloaded(
            MutableDocument().setDouble(12345, forKey: "d").setInt(12345, forKey: "i")
        )
        #expect(stored.toJSON() == #"{"d":12345.0,"i":12345}"#)
    }

    @Test func `documents, dictionaries and arrays are made from text`() throws {
        let document = try MutableDocument(id: "tower", json: #"{"name":"Eiffel","floors":[1,{"a":2}]}"#)
        #expect(document.string(forKey: "name") == "Eiffel")
        #expect(document["floors"][1]["a"].int == 2)
        #expect(try world.reloaded(document)["floors"][0].int == 1)
        #expect(try MutableDictionaryObject(json: "{}").count == 0)
        #expect(try MutableArrayObject(json: "[1,2]").count == 2)
        #expect(try document.setJSON(#"{"n":1}"#).keys == ["n"])
        #expect(try world.reloaded(document).toJSON() == #"{"n":1}"#)
    }

    @Test(arguments: ["", " ", "[]", "7", #""text""#, "{", #"{"a":}"#])
    func `text that is not an object makes no document`(text: String) {
        expectError(CBLError.invalidJSON) { try MutableDocument(json: text) }
        expectError(CBLError.invalidJSON) { try MutableDictionaryObject(json: text) }
        expectError(CBLError.invalidJSON) { try MutableDocument().setJSON(text) }
    }

    @Test func `text that is not an array makes no array`() {
        for text in ["", "{}", "[", "null"] {
            expectError(CBLError.invalidJSON) { try MutableArrayObject(json: text) }
        }
    }
}
