import LoveseatModel
import Testing

@Suite struct JSONValueTests {
    @Test func `the canonical form is the one of the specification`() throws {
        let text = """
            {"b":1,"a":[1.0,2.5,1e21,-0.0,123456789012345678,9007199254740992.0,0.00001,0.001],"A":"x/\\u00e9\\n\\b\\u007f\\"\\\\","aa":null}
            """
        let expected = """
            {"A":"x/é\\n\\u0008\\u007f\\"\\\\","a":[1.0,2.5,1e+21,-0.0,123456789012345678,9007199254740992.0,1e-05,0.001],"aa":null,"b":1}
            """
        #expect(try JSONText(text).canonical.description == expected)
        #expect(JSONText(canonical: try JSONValue(parsing: text)).description == expected)
    }

    @Test func `integers of 64 bits and longer numbers are exact`() throws {
        for text in [
            "9223372036854775807", "-9223372036854775808", "18446744073709551615", "18446744073709551616",
            "123456789012345678901234567890", "0.12345678901234567890123", "1e999", "1e-999",
        ] {
            #expect(try JSONText(text).canonical.description == text)
        }
        #expect(try JSONValue(parsing: "18446744073709551615") == .number(.unsigned(.max)))
        #expect(try JSONElement(parsing: Array("-9223372036854775808".utf8)).int == .min)
        #expect(try JSONElement(parsing: Array("123456789012345678".utf8)).int == 123_456_789_012_345_678)
    }

    @Test func `elements read what is asked and nothing else`() throws {
        let element = try JSONElement(
            parsing: Array("{\"a\":[1,{\"b\":\"\\u00e9x\"},[]],\"n\":null,\"f\":1.5}".utf8)
        )
        #expect(element.count == 3)
        #expect(element["a"]?[1]?["b"]?.string == "éx")
        #expect(element["a"]?[2]?.count == 0)
        #expect(element["a"]?[3] == nil)
        #expect(element["a"]?[-1] == nil)
        #expect(element["x"] == nil)
        #expect(element[0] == nil)
        #expect(element["n"]?.isNull == true)
        #expect(element["f"]?.double == 1.5)
        #expect(element.members.map(\.key) == ["a", "n", "f"])
        #expect(
            element["a"].map { String(decoding: $0.bytes, as: UTF8.self) } == "[1,{\"b\":\"\\u00e9x\"},[]]"
        )
    }

    @Test func `a document is made of a part of a text`() throws {
        let list = try JSONElement(parsing: Array(#"[{"b":[1, 2],"a":"x","a":"y"},7]"#.utf8))
        var document = try Document(id: "d", element: try #require(list[0]))
        #expect(document.revisionID == nil)
        #expect(document["b"] == [1, 2])
        #expect(document.json.description == #"{"b":[1, 2],"a":"x","a":"y"}"#)
        #expect(try document.canonicalBody().description == #"{"a":"y","b":[1,2]}"#)
        document["c"] = 3
        #expect(document.json.description == #"{"a":"y","b":[1,2],"c":3}"#)
        let number = try #require(list[1])
        expectJSONError(JSONError(.unexpectedByte, at: 0)) { try Document(id: "d", element: number) }
    }

    struct Sight: Codable, Equatable {
        var city: String
        var likes: Int
        var tags: [String]
        var rating: Double?
        var nested: [String: [Int8]]
        var flag = true
        var large = UInt64.max
    }

    @Test func `Codable goes straight to text and back`() throws {
        let sight = Sight(
            city: "Paris \"é\"",
            likes: -3,
            tags: ["a", ""],
            rating: 4.5,
            nested: ["x": [1, -2], "": []]
        )
        let text = try JSONText(encoding: sight)
        #expect(
            text.description
                == #"{"city":"Paris \"é\"","flag":true,"large":18446744073709551615,"likes":-3,"nested":{"":[],"x":[1,-2]},"rating":4.5,"tags":["a",""]}"#
        )
        #expect(try JSONElement(text).decode(Sight.self) == sight)
        let mismatch = #expect(throws: DecodingError.self) {
            try JSONElement(JSONText("{\"city\":1}")).decode(Sight.self)
        }
        guard case .typeMismatch(let type, let place) = mismatch else {
            Issue.record("\(String(describing: mismatch))")
            return
        }
        #expect(type is String.Type)
        #expect(place.codingPath.map(\.stringValue) == ["city"])
        let overflow = #expect(throws: DecodingError.self) {
            try JSONElement(JSONText("[300]")).decode([Int8].self)
        }
        guard case .dataCorrupted(let place) = overflow else {
            Issue.record("\(String(describing: overflow))")
            return
        }
        #expect(place.codingPath.map(\.intValue) == [0])
        let deep = #expect(throws: DecodingError.self) {
            try JSONElement(JSONText("[[],[{\"a\":[true]}]]")).decode([[[String: [String]]]].self)
        }
        guard case .typeMismatch(_, let place) = deep else {
            Issue.record("\(String(describing: deep))")
            return
        }
        #expect(place.codingPath.map(\.stringValue) == ["Index 1", "Index 0", "a", "Index 0"])
        let notANumber = #expect(throws: EncodingError.self) { try JSONText(encoding: [Double.nan]) }
        guard case .invalidValue(let value, _) = notANumber else {
            Issue.record("\(String(describing: notANumber))")
            return
        }
        #expect((value as? Double)?.isNaN == true)
    }

    @Test func `a property that is nil is left out, or written as null where that is asked for`() throws {
        struct Optionals: Encodable {
            var text: String?
            var number: Int8?
            var flag: Bool?
            var list: [Double]?
        }
        var hooks = JSONCodingHooks.none
        #expect(try JSONText(encoding: Optionals(), hooks: hooks).description == "{}")
        hooks.writesNull = true
        let nulls = #"{"flag":null,"list":null,"number":null,"text":null}"#
        #expect(try JSONText(encoding: Optionals(), hooks: hooks).description == nulls)
        let values = Optionals(text: "a", number: 1, flag: true, list: [2])
        let written = #"{"flag":true,"list":[2.0],"number":1,"text":"a"}"#
        #expect(try JSONText(encoding: values, hooks: hooks).description == written)
    }

    class Base: Codable { var a = 1 }
    final class Derived: Base {
        var b = 2
        enum Keys: String, CodingKey { case b }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(b, forKey: .b)
            try super.encode(to: encoder)
        }
    }

    @Test func `a subclass adds to its superclass's object`() throws {
        #expect(try JSONText(encoding: Derived()).description == "{\"a\":1,\"b\":2}")
    }

    @Test func `documents read lazily and change by value`() throws {
        let stored = try Document(id: "x", json: "{\"likes\":3,\"deep\":{\"a\":[1]}}")
        var copy = stored
        copy["likes"] = 4
        copy["deep"]?["a"] = ["b"]
        copy["gone"] = nil
        #expect(stored["likes"]?.int == 3)
        #expect(copy.json.description == #"{"deep":{"a":["b"]},"likes":4}"#)
        expectJSONError(JSONError(.unexpectedByte, at: 0)) { try Document(id: "x", json: "[]") }
    }

    @Test func `blobs are found wherever they are`() throws {
        let digest = "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="
        let stub = "{\"@type\":\"blob\",\"digest\":\"\(digest)\",\"length\":0}"
        let text = try JSONText("{\"a\":[{\"x\":\(stub)}],\"b\":\(stub),\"c\":{\"@type\":\"blob\"}}")
        #expect(BlobReference.all(in: text).map(\.digest.text) == [digest])
        let hidden = try JSONText("{\"a\":{\"\\u0040type\":\"\\u0062lob\",\"digest\":\"\(digest)\"}}")
        #expect(BlobReference.all(in: hidden).map(\.digest.text) == [digest])
        #expect(BlobDigest(digest)?.hexadecimalText == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
        for bad in [
            "sha1-", "sha1-x", "md5-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk",
        ] {
            #expect(BlobDigest(bad) == nil)
        }
    }
}
