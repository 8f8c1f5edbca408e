import Foundation
import LoveseatModel
import Testing

/// Keys and strings that look the same and are not.
struct JSONObjectTests {
    private static let composed = "\u{E9}"
    private static let decomposed = "e\u{301}"
    private let text = "{\"\(decomposed)\":1,\"\(composed)\":2}"

    @Test func `two Unicode forms of a key stay two keys`() throws {
        let value = try JSONValue(parsing: text)
        #expect(value.object?.count == 2)
        #expect(value[Self.composed] == 2)
        #expect(value[Self.decomposed] == 1)
        #expect(Array(value.description.utf8) == Array(text.utf8))
        var changed = value
        changed["n"] = 3
        changed[Self.composed] = nil
        #expect(changed[Self.decomposed] == 1)
        #expect(changed.object?.count == 2)
        let made: JSONValue = [Self.composed: 2, Self.decomposed: 1]
        #expect(made == value)
    }

    @Test func `an edited document keeps both forms, and so does one that is encoded again`() throws {
        var document = try Document(id: "d", json: text)
        document["n"] = 3
        #expect(document.properties.count == 3)
        #expect(document.json.description.utf8.count == text.utf8.count + 6)
        let foreign = try JSONEncoder().encode(document.properties)
        let back = try JSONDecoder().decode(JSONValue.self, from: foreign)
        #expect(back["n"] == 3)
    }

    @Test func `strings that only look the same are not equal, and a delta tells of the change`() throws {
        let old: JSONValue = ["s": .string(Self.composed)]
        let new: JSONValue = ["s": .string(Self.decomposed)]
        #expect(old != new)
        #expect(Set([old, new]).count == 2)
        let delta = JSONDelta.create(from: old, to: new)
        let made = try JSONDelta.apply(delta, to: old)
        #expect(Array(made.description.utf8) == Array(new.description.utf8))
        // A key that changes its form is another key.
        let (one, other): (JSONValue, JSONValue) = ([Self.composed: 1], [Self.decomposed: 1])
        let renamed = try JSONDelta.apply(JSONDelta.create(from: one, to: other), to: one)
        #expect(renamed == other)
        #expect(renamed != one)
    }

    @Test func `an object is used like a dictionary`() {
        var object: JSONObject = ["a": 1, "b": 2]
        object["c"] = 3
        #expect(object.removeValue(forKey: "a") == 1)
        #expect(object.count == 2)
        #expect(Set(object.keys) == ["b", "c"])
        #expect(object.values.contains(3))
        #expect(object.filter { $0.key == "b" } == ["b": 2])
        #expect(object.mapValues { _ in .null } == ["b": .null, "c": .null])
        #expect(JSONObject(["x": 1] as [String: JSONValue]) == ["x": 1])
        #expect(JSONObject() == [:])
        #expect(JSONObject().isEmpty)
    }
}
