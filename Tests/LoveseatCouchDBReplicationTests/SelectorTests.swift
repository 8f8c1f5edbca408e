import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// `Selector` and `Collation`: which documents Mango's conditions match (protocol/couchdb.md §4.9).
struct SelectorTests {
    private static let document: JSONValue = [
        "_id": "m", "n": 5, "s": "Bob", "a": [1, 2, ["k": 3]], "e": [], "o": ["x": 1, "y": "z"], "null": nil,
        "f": false,
    ]

    private static let matching: [JSONValue] = [
        [:], ["n": 5], ["n": ["$eq": 5]], ["n": ["$ne": 6]], ["n": ["$lt": 6]], ["n": ["$lte": 5]],
        ["n": ["$gt": 4]], ["n": ["$gte": 5]], ["n": ["$gt": 4, "$lt": 6]], ["n": ["$exists": true]],
        ["missing": ["$exists": false]], ["null": ["$exists": true]], ["null": nil],
        ["n": ["$type": "number"]], ["s": ["$type": "string"]], ["a": ["$type": "array"]],
        ["o": ["$type": "object"]], ["null": ["$type": "null"]], ["f": ["$type": "boolean"]],
        ["n": ["$in": [4, 5]]], ["a": ["$in": [2]]], ["a": ["$in": [[1, 2, ["k": 3]]]]], ["n": ["$nin": [4]]],
        ["n": ["$nin": []]], ["a": ["$size": 3]], ["e": ["$size": 0]], ["n": ["$mod": [3, 2]]],
        ["n": ["$mod": [1, 0]]], ["s": ["$regex": "^B"]], ["s": ["$beginsWith": "Bo"]],
        ["s": ["$beginsWith": "Bob"]], ["a": ["$all": [2, 1]]], ["a": ["$all": []]],
        ["a": ["$elemMatch": ["$gt": 1]]], ["a": ["$elemMatch": ["k": 3]]], ["a": ["$allMatch": ["$gte": 1]]],
        ["o": ["$keyMapMatch": ["$eq": "x"]]], ["$and": [["n": 5], ["f": false]]], ["$and": []],
        ["$or": [["n": 6], ["f": false]]], ["$nor": [["n": 6], ["f": true]]], ["$not": ["n": 6]],
        ["$not": ["missing": ["$exists": true]]], ["n": ["$not": ["$gt": 5]]], ["n": ["$not": 6]],
        ["$not": ["$and": [["n": 5], ["f": true]]]], ["$not": ["$nor": [["n": 5]]]],
        ["$not": ["$not": ["n": 5]]], ["$not": ["n": ["$ne": 5]]], ["$not": ["n": ["$nin": [5]]]],
        ["o.x": 1], ["o": ["x": 1]], ["a.2.k": 3], ["a.0": 1], ["o": ["$eq": ["x": 1, "y": "z"]]], ["e": []],
        // An ID is compared by its bytes, and comes after all values that are no text; other text has an order of letters.
        ["_id": "m"], ["_id": ["$gt": "M"]], ["_id": ["$gt": 5]], ["_id": ["$gt": [:]]],
        ["s": ["$gt": "a"]], ["s": ["$lt": [:]]],
    ]

    private static let others: [JSONValue] = [
        ["n": 6], ["n": ["$eq": 6]], ["n": ["$ne": 5]], ["missing": ["$ne": 5]], ["missing": 5],
        ["n": ["$lt": 5]], ["n": ["$lte": 4]], ["n": ["$gt": 5]], ["n": ["$gte": 6]],
        ["n": ["$gt": 4, "$lt": 5]], ["n": ["$gt": 5, "$lt": 6]], ["n": ["$exists": false]],
        ["missing": ["$exists": true]], ["n": ["$type": "string"]], ["n": ["$in": [4]]], ["n": ["$in": []]],
        ["n": ["$nin": [5]]], ["missing": ["$nin": [4]]], ["a": ["$nin": [2]]], ["a": ["$size": 2]],
        ["n": ["$size": 1]], ["n": ["$mod": [3, 1]]], ["s": ["$mod": [3, 2]]], ["s": ["$regex": "^b"]],
        ["n": ["$regex": "5"]], ["s": ["$beginsWith": "bo"]], ["s": ["$beginsWith": "Bobb"]],
        ["a": ["$all": [2, 9]]], ["n": ["$all": [5]]], ["a": ["$elemMatch": ["$lt": 1]]],
        ["a": ["$allMatch": ["$gte": 2]]], ["e": ["$allMatch": ["$gte": 1]]],
        ["e": ["$elemMatch": ["$gte": 1]]],
        ["o": ["$keyMapMatch": ["$eq": "q"]]], ["n": ["$keyMapMatch": ["$eq": "x"]]],
        ["$and": [["n": 5], ["f": true]]], ["$or": [["n": 6], ["f": true]]], ["$or": []],
        ["$nor": [["n": 6], ["f": false]]], ["$nor": [["missing": 1]]], ["$not": ["n": 5]],
        ["$not": ["missing": 5]], ["n": ["$not": ["$gt": 4]]], ["n": ["$not": 5]],
        ["$not": ["$or": [["n": 6], ["f": false]]]], ["$not": ["n": ["$in": [5]]]],
        ["$not": ["n": ["$exists": true]]], ["o": ["x": 2]], ["o": [:]], ["a.9": 1], ["a.3": 1], ["o.y.z": 1],
        ["_id": ["$lt": 5]], ["_id": ["$lt": [:]]], ["_id": ["$gt": "m"]], ["_id": ["$lt": "M"]],
        ["n": 5, "f": true],
    ]

    @Test func `a selector matches what its conditions say, also as CouchDB shows it`() throws {
        for (selectors, isMatch) in [(Self.matching, true), (Self.others, false)] {
            for value in selectors {
                let selector = try Selector(parsing: value)
                #expect(selector.matches(Self.document) == isMatch, "\(value)")
                let shown = try Selector(parsing: selector.description)
                #expect(
                    shown.matches(Self.document) == isMatch,
                    "\(value) is shown as \(selector.description)"
                )
            }
        }
    }

    @Test(
        arguments: [
            5, [], "n", ["$and": 5], ["$or": [:]], ["$nor": [5]], ["$not": 5], ["n": ["$exists": 1]],
            ["n": ["$type": 5]],
            ["n": ["$in": 5]], ["n": ["$nin": [:]]], ["n": ["$size": -1]], ["n": ["$size": "1"]],
            ["n": ["$mod": [0, 1]]],
            ["n": ["$mod": [-1, 0]]], ["n": ["$mod": [3]]], ["n": ["$mod": [3, 1, 1]]],
            ["n": ["$mod": ["x", 1]]],
            ["n": ["$mod": [3, 0.5]]], ["n": ["$regex": "("]], ["n": ["$regex": 5]],
            ["n": ["$beginsWith": 5]],
            ["n": ["$all": 5]], ["n": ["$elemMatch": 5]], ["n": ["$allMatch": []]],
            ["n": ["$keyMapMatch": 5]],
            ["n": ["$nope": 5]], ["$nope": 5],
        ] as [JSONValue]
    )
    func `a condition with a wrong argument is refused`(_ value: JSONValue) {
        #expect(throws: Selector.ParseError.self) { try Selector(parsing: value) }
    }

    /// A depth that does not grow in one of the ways to nest.
    @Test func `selectors nest a hundred levels deep, in whatever way`() throws {
        let ways: [(levels: Int, wrap: (JSONValue) -> JSONValue)] = [
            (1, { ["$and": [$0]] }), (1, { ["$or": [$0]] }), (1, { ["$nor": [$0]] }), (1, { ["$not": $0] }),
            (1, { ["a": $0] }), (2, { ["a": ["$elemMatch": $0]] }), (2, { ["a": ["$allMatch": $0]] }),
            (2, { ["a": ["$keyMapMatch": $0]] }),
        ]
        for (index, way) in ways.enumerated() {
            func nested(_ count: Int) -> JSONValue {
                (0..<count).reduce(["n": 5]) { value, _ in way.wrap(value) }
            }
            let most = 99 / way.levels
            #expect(throws: Never.self, "\(index)") { try Selector(parsing: nested(most)) }
            let error = #expect(throws: Selector.ParseError.self, "\(index)") {
                try Selector(parsing: nested(most + 1))
            }
            #expect(error?.reason == "the selector is nested too deeply")
        }
    }

    /// A union for an intersection, a field that need not be there, or a comparison that holds for some documents only.
    @Test func `an index is used for the fields and comparisons that every match has`() throws {
        func required(_ value: JSONValue) throws -> Set<String> {
            Set(try Selector(parsing: value).requiredPaths.map(Selector.text(of:)))
        }
        #expect(try required(["n": 5, "o.x": ["$exists": true]]) == ["n", "o.x"])
        #expect(try required(["n": ["$exists": false]]) == [])
        #expect(try required(["$or": [["n": 5, "s": 1], ["n": 6, "f": 1]]]) == ["n"])
        #expect(try required(["$or": []]) == [])
        #expect(try required(["$not": ["n": 5]]) == [])
        #expect(try required(["$nor": [["n": 5]]]) == [])
        func compared(_ value: JSONValue) throws -> [String: Int] {
            var counts: [String: Int] = [:]
            for (path, all) in try Selector(parsing: value).comparisons {
                counts[Selector.text(of: path)] = all.count
            }
            return counts
        }
        #expect(try compared(["n": ["$gt": 1, "$lt": 9], "s": "x"]) == ["n": 2, "s": 1])
        #expect(try compared(["$and": [["n": 5], ["n": ["$gte": 2]]]]) == ["n": 2])
        #expect(try compared(["$or": [["n": 5]], "s": ["$exists": true]]) == [:])
        #expect(try compared(["n": ["$ne": 5]]) == [:])
        #expect(try compared(["$not": ["n": 5]]) == [:])
    }

    /// A comparison in the wrong order, or of the wrong parts.
    @Test func `values have CouchDB's order`() {
        let long = "1" + String(repeating: "0", count: 40)
        let longer = "1" + String(repeating: "0", count: 39) + "1"
        let ordered: [JSONValue] = [
            nil, false, true, .number(.text("-\(longer)")), .number(.text("-\(long)")), -1, 0, 0.5, 1, 2,
            .number(.unsigned(.max)), .number(.text("18446744073709551616")),
            .number(.text("18446744073709551617")), .number(.text(long)), .number(.text(longer)), "", "_",
            "0",
            "9", "a", "A", "aa", "aA", "Aa", "AA", "ab", "b", "z", "é", [], [1], [1, 2], [2], ["a"], [:],
            ["a": 1], ["a": 2], ["a": 2, "b": 1], ["b": 0],
        ]
        for (place, one) in ordered.enumerated() {
            for (otherPlace, other) in ordered.enumerated() {
                let wanted: Selector.Comparison =
                    place < otherPlace ? .before : place > otherPlace ? .after : .same
                #expect(Collation.compare(one, other) == wanted, "\(one) and \(other)")
            }
        }
        #expect(Collation.compare(1, 1.0) == .same)
    }
}
