import LoveseatModel
import LoveseatTesting
import Testing

private func json(_ text: String) throws -> JSONValue { try JSONValue(parsing: text) }

/// The vectors are those of replication.md §F.2, made with the library that other peers use.
@Suite struct DeltaTests {
    @Test(
        arguments: [
            (#"{"a":1}"#, #"{"a":1}"#, #"{}"#),
            (#"{"a":1,"b":2}"#, #"{"a":1,"b":3,"c":"new"}"#, #"{"b":3,"c":"new"}"#),
            (#"{"a":1,"b":2}"#, #"{"a":1}"#, #"{"b":[]}"#),
            (#"{"a":1}"#, #"{"a":null}"#, #"{"a":null}"#),
            (#"{"n":{"x":1,"y":2}}"#, #"{"n":{"x":1,"y":5}}"#, #"{"n":{"y":5}}"#),
            (#"{"a":1}"#, #"{"a":1,"o":{"x":1}}"#, #"{"o":[{"x":1}]}"#),
            (#"{"a":1}"#, #"{"a":1,"o":[1,2]}"#, #"{"o":[[1,2]]}"#),
            (#"{"a":1}"#, #"{"a":{"x":1}}"#, #"{"a":[{"x":1}]}"#),
            (#"{"a":{"x":1}}"#, #"{"a":7}"#, #"{"a":7}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":[1,2,4]}"#, #"{"a":{"2":4}}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":[1,2,3,4,5]}"#, #"{"a":{"3-":[4,5]}}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":[1]}"#, #"{"a":{"1-":[]}}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":[9,2,3,4]}"#, #"{"a":{"0":9,"3-":[4]}}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":[2,3]}"#, #"{"a":{"0":2,"1":3,"2-":[]}}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":[]}"#, #"{"a":[[]]}"#),
            (#"{"a":[]}"#, #"{"a":[1]}"#, #"{"a":[[1]]}"#),
            (#"{"a":[{"x":1},{"x":2}]}"#, #"{"a":[{"x":1},{"x":3}]}"#, #"{"a":{"1":{"x":3}}}"#),
            (#"{"a":[[1],2]}"#, #"{"a":[[2],2]}"#, #"{"a":{"0":{"0":2}}}"#),
            (#"{"a":[1,[2]]}"#, #"{"a":[1,[2],[3]]}"#, #"{"a":{"2-":[[3]]}}"#),
            (#"{"a":1}"#, #"{"a":1.5,"x":{}}"#, #"{"a":1.5,"x":[{}]}"#),
            (#"{"a":1}"#, #"{}"#, #"{"a":[]}"#),
            (#"{"d":1.0}"#, #"{"d":1}"#, #"{"d":1}"#),
            (#"{"t":"short"}"#, #"{"t":"shore"}"#, #"{"t":"shore"}"#),
            (#"[1,2]"#, #"[1,3]"#, #"{"1":3}"#),
            (#"{"a":1}"#, #"[1]"#, #"[[1]]"#),
        ]
    )
    func `creating gives the deltas of other peers, and applying them the new document`(
        _ old: String,
        _ new: String,
        _ delta: String
    ) throws {
        #expect(JSONDelta.create(from: try json(old), to: try json(new)) == (try json(delta)))
        #expect(JSONDelta.isSame(try JSONDelta.apply(try json(delta), to: try json(old)), try json(new)))
    }

    private static let fox =
        "The quick brown fox jumps over the lazy dog. Pack my box with five dozen liquor jugs."
    private static let heart = "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë."

    @Test(
        arguments: [
            (
                fox, "The quick brown fox leaps over the lazy dog. Pack my box with five dozen liquor jugs!",
                "20=3-3+lea|61=1-1+!|"
            ),
            (fox, fox + "!", "85=1+!|"),
            (
                heart, "Le cœur déçu mais l'âme plutôt naïve, Louÿs réva de crapaüter en canoë.",
                "52=2-2+é|27="
            ),
            (String(repeating: "a", count: 60) + "b", String(repeating: "a", count: 60), "60=1-"),
        ]
    )
    func `long strings are patched by bytes, at whole characters`(
        _ old: String,
        _ new: String,
        _ patch: String
    )
        throws
    {
        let delta = JSONDelta.create(from: ["t": .string(old)], to: ["t": .string(new)])
        #expect(delta == ["t": [.string(patch), 0, 2]])
        #expect(try JSONDelta.apply(delta, to: ["t": .string(old)]) == ["t": .string(new)])
    }

    @Test func `short strings and strings with little in common are told whole`() {
        let short = String(repeating: "a", count: 59)
        #expect(
            JSONDelta.create(from: ["t": .string(short + "b")], to: ["t": .string(short)]) == [
                "t": .string(short)
            ]
        )
        let other = JSONValue.string(String(repeating: "0123456789", count: 100))
        #expect(JSONDelta.create(from: ["t": .string(Self.fox)], to: ["t": other]) == ["t": other])
    }

    @Test(
        arguments: [
            (#"{"a":1}"#, #"{"a":[5]}"#, #"{"a":5}"#),
            (#"{"a":1}"#, #"{"a":[1,6]}"#, #"{"a":6}"#),
            (#"{"a":1}"#, #"{"a":[1,0,0]}"#, #"{}"#),
            (#"{"a":{"q":1}}"#, #"{"a":{"x":1}}"#, #"{"a":{"q":1,"x":1}}"#),
            (#"{"a":{"q":1}}"#, #"{"a":{"x":[[]]}}"#, #"{"a":{"q":1,"x":[]}}"#),
            (#"{"a":{"b":1}}"#, #"{"a":{"b":[]}}"#, #"{"a":{}}"#),
            (#"{"a":{"q":1}}"#, #"[{"z":1}]"#, #"{"z":1}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"0":7}}"#, #"{"a":[7,2,3]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"2-":[]}}"#, #"{"a":[1,2]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"3-":[4]}}"#, #"{"a":[1,2,3,4]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"1-":[8,9]}}"#, #"{"a":[1,8,9]}"#),
            // Positions are not negative; of several the first counts.
            (#"{"a":[1,2,3]}"#, #"{"a":{"-2-":[8,9]}}"#, #"{"a":[1,2,3]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"3-":[7],"1-":[],"2-":[8]}}"#, #"{"a":[1]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"5":7}}"#, #"{"a":[1,2,3]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"x":7}}"#, #"{"a":[1,2,3]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"5-":[7]}}"#, #"{"a":[1,2,3]}"#),
            (#"{"a":[1,2,3]}"#, #"{"a":{"01":7}}"#, #"{"a":[1,2,3]}"#),
            (#"{"a":"abc"}"#, #"{"a":["2=1-",0,2]}"#, #"{"a":"ab"}"#),
            (#"{"a":"abc"}"#, #"{"a":["2=1-1+Z|",0,2]}"#, #"{"a":"abZ"}"#),
            (#"{"a":"abc"}"#, #"{"a":["3-3+xyz|",0,2]}"#, #"{"a":"xyz"}"#),
        ]
    )
    func `applying takes every form that peers write`(_ old: String, _ delta: String, _ new: String) throws {
        #expect(try JSONDelta.apply(try json(delta), to: try json(old)) == (try json(new)))
    }

    @Test(
        arguments: [
            (#"{"a":1}"#, #"{"zz":[]}"#), (#"{"a":1}"#, #"{"a":{"x":1}}"#), (#"{"a":1}"#, #"{"b":{"x":1}}"#),
            (#"{"a":"abc"}"#, #"{"a":["9=",0,2]}"#), (#"{"a":"abc"}"#, #"{"a":["2=",0,2]}"#),
            (#"{"a":"abc"}"#, #"{"a":["",0,2]}"#), (#"{"a":"abc"}"#, #"{"a":["3=1+d",0,2]}"#),
            (#"{"a":"abc"}"#, #"{"a":["3=2+d|",0,2]}"#), (#"{"a":5}"#, #"{"a":["3=",0,2]}"#),
            (#"{"a":{"q":1}}"#, #"{"a":{"q":[1,2,3,4]}}"#), (#"{"a":{"q":1}}"#, #"{"a":{"q":[1,0,5]}}"#),
            (#"{"a":{"q":1}}"#, #""str""#), (#"{"a":"é"}"#, #"{"a":["1=1-",0,2]}"#),
        ]
    )
    func `what is no delta of the document is refused`(_ old: String, _ delta: String) throws {
        #expect(throws: JSONDelta.Failure.corrupt) { try JSONDelta.apply(try json(delta), to: try json(old)) }
    }

    @Test func `applying the difference gives the other document`() throws {
        var generator = SeededGenerator(seed: 4_711)
        for _ in 0..<3_000 {
            let old = RandomDocuments.object(&generator, depth: 3)
            let new = RandomDocuments.edited(old, &generator)
            let delta = JSONDelta.create(from: old, to: new)
            // As it travels: as text.
            let received = try JSONValue(parsing: JSONText(canonical: delta).description)
            let result = try JSONDelta.apply(received, to: old)
            #expect(JSONDelta.isSame(result, new), "\(old) to \(new) by \(delta)")
        }
    }

    @Test func `strings that look the same but differ are told apart`() throws {
        let (composed, decomposed) = (JSONValue.string("\u{e9}"), JSONValue.string("e\u{301}"))
        let delta = JSONDelta.create(from: ["a": composed], to: ["a": decomposed])
        let result = try JSONDelta.apply(delta, to: ["a": composed])
        #expect(result["a"]?.string?.utf8.count == 3)
    }
}

/// Documents with everything in them that a delta may trip over.
private enum RandomDocuments {
    static func object(_ generator: inout SeededGenerator, depth: Int) -> JSONValue {
        var members: JSONObject = [:]
        for _ in 0..<Int.random(in: 0...6, using: &generator) {
            members["k\(Int.random(in: 0...9, using: &generator))"] = value(&generator, depth: depth)
        }
        return .object(members)
    }

    static func value(_ generator: inout SeededGenerator, depth: Int) -> JSONValue {
        switch Int.random(in: 0...(depth > 0 ? 8 : 5), using: &generator) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &generator))
        case 2: return JSONValue(Int.random(in: -3...3, using: &generator))
        case 3: return JSONValue(Double(Int.random(in: -3...3, using: &generator)) / 2)
        case 4, 5: return .string(string(&generator))
        case 6: return object(&generator, depth: depth - 1)
        default:
            return .array(
                (0..<Int.random(in: 0...4, using: &generator)).map { _ in value(&generator, depth: depth - 1)
                }
            )
        }
    }

    static func string(_ generator: inout SeededGenerator) -> String {
        let alphabet = ["a", "b", " ", "é", "e\u{301}", "👩‍👩‍👧‍👦", "👍🏽", "日本", "|", "=", "+", "\u{0}", "\"", "🇫🇷"]
        let length = Bool.random(using: &generator) ? 6 : 120
        return (0..<Int.random(in: 0...length, using: &generator)).map { _ in
            alphabet[Int.random(in: 0..<alphabet.count, using: &generator)]
        }.joined()
    }

    static func edited(_ value: JSONValue, _ generator: inout SeededGenerator) -> JSONValue {
        switch value {
        case .object(var members):
            for key in members.keys.sorted() where Int.random(in: 0...2, using: &generator) == 0 {
                members[key] =
                    Int.random(in: 0...4, using: &generator) == 0
                    ? nil : members[key].map { edited($0, &generator) }
            }
            if Int.random(in: 0...2, using: &generator) == 0 {
                members["n\(Int.random(in: 0...3, using: &generator))"] = self.value(&generator, depth: 2)
            }
            return .object(members)
        case .array(var items):
            if !items.isEmpty, Bool.random(using: &generator) {
                let index = Int.random(in: 0..<items.count, using: &generator)
                items[index] = edited(items[index], &generator)
            }
            if Bool.random(using: &generator) { items.append(self.value(&generator, depth: 1)) }
            if !items.isEmpty, Bool.random(using: &generator) {
                items.remove(at: Int.random(in: 0..<items.count, using: &generator))
            }
            return .array(items)
        case .string(let text):
            var scalars = Array(text.unicodeScalars)
            for _ in 0..<Int.random(in: 1...4, using: &generator) where !scalars.isEmpty {
                let index = Int.random(in: 0..<scalars.count, using: &generator)
                if Bool.random(using: &generator) {
                    scalars.remove(at: index)
                } else {
                    scalars.insert(contentsOf: Array("é+|".unicodeScalars), at: index)
                }
            }
            var edited = ""
            edited.unicodeScalars.append(contentsOf: scalars)
            return .string(edited)
        default: return self.value(&generator, depth: 1)
        }
    }
}
