import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Mango: `_find`, `_index` and `_explain` (protocol/couchdb.md §4.9).
struct FindTests {
    /// Serves 60 documents, and one that lacks the field `n`.
    private func serve(_ change: (inout CouchDBListenerConfiguration) throws -> Void = { _ in }) async throws
        -> ServedDatabase
    {
        let served = try await ServedDatabase(change)
        let collection = try served.database.defaultCollection()
        try await served.database.write { transaction in
            for number in 0..<60 {
                let body: JSONObject = [
                    "n": JSONValue((number * 7) % 60), "kind": .string(number % 3 == 0 ? "a" : "B"),
                    "deep": ["x": JSONValue(number)],
                ]
                try transaction.save(Document(id: "d\(number)", body), in: collection)
            }
            try transaction.save(Document(id: "lacks", ["kind": "a"]), in: collection)
        }
        return served
    }

    private func find(_ served: ServedDatabase, _ body: JSONValue, as user: String? = nil) async throws
        -> JSONValue
    {
        let answer = try await served.call("POST", "/main/_find", body, as: user)
        #expect(answer.status == 200, "\(answer.text)")
        return answer.json
    }

    private func ids(_ answer: JSONValue) -> [String] {
        answer["docs"]?.array?.compactMap { $0["_id"]?.string } ?? []
    }

    private func numbers(_ answer: JSONValue) -> [Int] {
        answer["docs"]?.array?.compactMap { $0["n"]?.int } ?? []
    }

    @Test func `an index without fields is not preferred to those with fields`() async throws {
        let served = try await serve()
        let selector: JSONValue = ["n": ["$gte": 55]]
        #expect(try await served.call("POST", "/main/_index", ["index": ["fields": []]]).status == 200)
        let scanned = try await find(served, ["selector": selector])
        #expect(ids(scanned).count == 5)
        #expect(scanned["warning"]?.string?.contains("No matching index found") == true)
        let index: JSONValue = ["index": ["fields": ["n"]], "name": "byn"]
        #expect(try await served.call("POST", "/main/_index", index).status == 200)
        #expect(numbers(try await find(served, ["selector": selector])) == [55, 56, 57, 58, 59])
        let explained = try await served.call("POST", "/main/_explain", ["selector": selector])
        #expect(explained.json["index"]?["name"] == "byn")
        await served.listener.stop()
    }

    @Test func `documents are found in the order of their IDs, and in that of an index once there is one`()
        async throws
    {
        let served = try await serve()
        let selector: JSONValue = ["n": ["$gte": 55]]
        let scanned = try await find(served, ["selector": selector])
        #expect(ids(scanned) == ids(scanned).sorted())
        #expect(ids(scanned).count == 5)
        #expect(scanned["warning"]?.string?.contains("No matching index found") == true)
        let made = try await served.call("POST", "/main/_index", ["index": ["fields": ["n"]]])
        #expect(made.status == 200)
        #expect(made.json["result"]?.string == "created")
        let again = try await served.call("POST", "/main/_index", ["index": ["fields": ["n"]]])
        #expect(again.json["result"]?.string == "exists")
        let indexed = try await find(served, ["selector": selector, "execution_stats": true])
        #expect(numbers(indexed) == [55, 56, 57, 58, 59])
        #expect(Set(ids(indexed)) == Set(ids(scanned)))
        #expect(indexed["warning"] == nil)
        #expect(indexed["execution_stats"]?["total_docs_examined"] == 5)
        // The index is one of SQL, too.
        #expect(try served.database.defaultCollection().indexes().count == 1)
        let list = try await served.call("GET", "/main/_index")
        #expect(list.json["total_rows"]?.int == 2)
        let explained = try await served.call("POST", "/main/_explain", ["selector": selector])
        #expect(explained.json["index"]?["type"]?.string == "json")
        #expect(explained.json["selector"] == selector)
    }

    @Test func `_explain tells which part of an index can have results`() async throws {
        let served = try await serve()
        _ = try await served.call("POST", "/main/_index", ["index": ["fields": ["a", "b"]]])
        let cases: [(selector: JSONValue, start: JSONValue, end: JSONValue)] = [
            (["a": 1, "b": ["$gt": 2]], [1, 2], [1, "<MAX>"]), (["a": 1, "b": 2], [1, 2], [1, 2, "<MAX>"]),
            (["a": ["$gte": 1, "$lt": 5], "b": ["$exists": true]], [1], [5, "<MAX>"]),
            (["a": ["$gt": 1], "b": 3], [1, 3], ["<MAX>"]),
            (["$and": [["a": ["$gt": 1]], ["a": ["$gt": 4]]], "b": ["$lte": "x"]], [4], ["<MAX>"]),
            (["a": ["$exists": true], "b": 1], [], ["<MAX>"]),
        ]
        for (selector, start, end) in cases {
            for isDescending in [false, true] {
                var query: JSONValue = ["selector": selector]
                if isDescending { query["sort"] = [["a": "desc"], ["b": "desc"]] }
                let answer = try await served.call("POST", "/main/_explain", query)
                let arguments = answer.json["mrargs"]
                #expect(arguments?["start_key"] == (isDescending ? end : start), "\(selector)")
                #expect(arguments?["end_key"] == (isDescending ? start : end), "\(selector)")
                #expect(arguments?["direction"]?.string == (isDescending ? "rev" : "fwd"))
            }
        }
        let scan = try await served.call("POST", "/main/_explain", ["selector": ["c": 1]])
        #expect(scan.json["mrargs"]?["start_key"] == nil)
    }

    @Test(arguments: [false, true]) func `pages follow each other without gaps`(_ hasIndex: Bool) async throws
    {
        let served = try await serve()
        if hasIndex {
            _ = try await served.call("POST", "/main/_index", ["index": ["fields": ["n"]], "ddoc": "byn"])
        }
        var seen: [String] = []
        var bookmark = "nil"
        while true {
            let page = try await find(
                served,
                ["selector": ["n": ["$gt": nil]], "limit": 7, "bookmark": .string(bookmark)]
            )
            if ids(page).isEmpty { break }
            seen += ids(page)
            bookmark = page["bookmark"]?.string ?? ""
        }
        #expect(seen.count == 60)
        #expect(Set(seen).count == 60)
        #expect(!seen.contains("lacks"))
        let skipped = try await find(served, ["selector": ["n": ["$gt": nil]], "skip": 58])
        #expect(ids(skipped) == Array(seen.suffix(2)))
    }

    @Test func `results are sorted by an index, both ways, and refused without one`() async throws {
        let served = try await serve()
        let request: JSONValue = [
            "selector": ["kind": "a", "n": ["$gt": 10]], "sort": [["n": "desc"]], "fields": ["n"], "limit": 3,
        ]
        let refused = try await served.call("POST", "/main/_find", request)
        #expect(refused.status == 400)
        #expect(refused.json["error"]?.string == "no_usable_index")
        // A field with one value does not count in the order.
        _ = try await served.call("POST", "/main/_index", ["index": ["fields": ["kind", "n"]]])
        #expect(try await find(served, request)["docs"] == [["n": 57], ["n": 54], ["n": 51]])
    }

    @Test func `a named index is used if it can be, and the client is told otherwise`() async throws {
        let served = try await serve()
        let index: JSONValue = [
            "index": ["fields": ["n"], "partial_filter_selector": ["kind": "a"]], "ddoc": "some",
            "name": "of-a",
        ]
        _ = try await served.call("POST", "/main/_index", index)
        let selector: JSONValue = ["n": ["$lt": 9]]
        #expect(numbers(try await find(served, ["selector": selector])).count == 9)
        let partial = try await find(served, ["selector": selector, "use_index": ["some", "of-a"]])
        #expect(numbers(partial) == [0, 3, 6])
        let other = try await find(served, ["selector": selector, "use_index": "none"])
        #expect(other["warning"]?.string?.hasPrefix("_design/none was not used") == true)
        let strict: JSONValue = ["selector": selector, "use_index": "none", "allow_fallback": false]
        #expect(try await served.call("POST", "/main/_find", strict).status == 400)
    }

    @Test func `IDs have the order of their bytes, and come after all values that are not strings`()
        async throws
    {
        let served = try await serve()
        func count(_ condition: JSONValue) async throws -> Int {
            ids(try await find(served, ["selector": ["_id": condition], "limit": 100])).count
        }
        for value: JSONValue in [nil, true, 5, [], [:], ["a": 1]] {
            #expect(try await count(["$lt": value]) == 0)
            #expect(try await count(["$lte": value]) == 0)
            #expect(try await count(["$gt": value]) == 61)
            #expect(try await count(["$gte": value]) == 61)
        }
        #expect(try await count(["$gt": "Z"]) == 61)
        #expect(try await count(["$lte": "d59"]) == 56)
        // An index of the IDs, whose own order is another one, leaves out none.
        let matching = try await count(["$gt": "D5"])
        #expect(matching == 61)
        let made = try await served.call("POST", "/main/_index", ["index": ["fields": ["_id"]]])
        #expect(made.status == 200)
        #expect(try await count(["$gt": "D5"]) == matching)
        // The IDs of documents only.
        let other = try await find(served, ["selector": ["deep": ["x": ["$lt": [:]]]], "limit": 100])
        #expect(ids(other).count == 60)
        await served.listener.stop()
    }

    @Test func `an index with another name is in another design document`() async throws {
        let served = try await serve()
        func create(_ name: String) async throws -> JSONValue {
            let index: JSONValue = ["index": ["fields": ["n"]], "name": .string(name)]
            return try await served.call("POST", "/main/_index", index).json
        }
        let (one, other) = (try await create("one"), try await create("other"))
        #expect(other["result"] == "created")
        #expect(one["id"] != other["id"])
        let again = try await create("one")
        #expect(again["result"] == "exists")
        #expect(again["id"] == one["id"])
        await served.listener.stop()
    }

    @Test func `an index is not put into a design document of another language`() async throws {
        let served = try await serve()
        let functions: JSONValue = ["views": ["byn": ["map": "function (doc) { emit(doc.n) }"]]]
        for (name, design): (String, JSONValue) in [("empty", [:]), ("functions", functions)] {
            #expect(try await served.call("PUT", "/main/_design/\(name)", design).status == 201)
            let index: JSONValue = ["index": ["fields": ["n"]], "name": "byn", "ddoc": .string(name)]
            #expect(try await served.call("POST", "/main/_index", index).status == 400)
            let stored = try await served.call("GET", "/main/_design/\(name)").json
            #expect(stored["views"] == design["views"])
        }
        await served.listener.stop()
    }

    @Test func `the condition of a partial index is stored with its operators`() async throws {
        let served = try await serve()
        let definition: JSONValue = ["fields": ["n"], "partial_filter_selector": ["kind": "a"]]
        let index: JSONValue = ["index": definition, "name": "some", "ddoc": "of-a"]
        #expect(try await served.call("POST", "/main/_index", index).status == 200)
        let view = try await served.call("GET", "/main/_design/of-a").json["views"]?["some"]
        #expect(view?["map"]?["partial_filter_selector"] == ["kind": ["$eq": "a"]])
        #expect(view?["options"]?["def"] == definition)
        await served.listener.stop()
    }

    @Test func `an index that is deleted is gone with its design document, and can be made again`()
        async throws
    {
        let served = try await serve()
        let path = "/main/_index/_design%2Fbyn/json/first"
        let index: JSONValue = ["index": ["fields": ["n"]], "ddoc": "byn", "name": "first"]
        _ = try await served.call("POST", "/main/_index", index)
        #expect(try await served.call("GET", "/main/_design/byn").json["language"]?.string == "query")
        #expect(try await served.call("DELETE", path).status == 200)
        #expect(try await served.call("DELETE", path).status == 404)
        #expect(try await served.call("GET", "/main/_design/byn").status == 404)
        #expect(try served.database.defaultCollection().indexes().isEmpty)
        let again = try await served.call("POST", "/main/_index", index)
        #expect(again.json["result"] == "created", "\(again.text)")
        #expect(try served.database.defaultCollection().indexes().count == 1)
        // A client may delete the design document like any other.
        let revision = try await served.call("GET", "/main/_design/byn").json["_rev"]?.string ?? ""
        #expect(try await served.call("DELETE", "/main/_design/byn?rev=\(revision)").status == 200)
        #expect(try await served.call("POST", "/main/_index", ["index": ["fields": ["kind"]]]).status == 200)
        #expect(try await served.call("POST", "/main/_view_cleanup", [:]).status == 202)
        #expect(try served.database.defaultCollection().indexes().count == 1)
    }

    @Test(.timeLimit(.minutes(1))) func `huge limits cost no more than the documents`() async throws {
        let served = try await serve()
        let collection = try served.database.defaultCollection()
        try await served.database.write { transaction in
            for number in 0..<20_000 {
                try transaction.save(Document(id: "m\(number)", ["n": JSONValue(number)]), in: collection)
            }
        }
        _ = try await served.call("POST", "/main/_index", ["index": ["fields": ["n"]]])
        let half = JSONValue(Int.max / 2 + 1)
        let none = try await find(
            served,
            ["selector": ["n": ["$gte": 0]], "sort": ["n"], "skip": half, "limit": half]
        )
        #expect(ids(none).isEmpty)
        let all = try await find(
            served,
            ["selector": ["n": ["$gte": 0]], "sort": ["n"], "fields": ["n"], "limit": half]
        )
        #expect(numbers(all).count == 20_060)
        #expect(numbers(all) == numbers(all).sorted())
    }

    @Test func `odd values are found with an index as without`() async throws {
        let served = try await serve()
        let odd: [JSONValue] = [
            nil, false, true, -1, 1.5, 9_007_199_254_740_993, "", "a", "A", "é", "a\"'`$", [], [1], ["a"],
            [:],
            ["b": 1],
        ]
        for (number, value) in odd.enumerated() {
            let id = "odd\(number)"
            #expect(try await served.call("PUT", "/main/\(id)", ["v`\"": value, "v": value]).status == 201)
        }
        let operators = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]
        func all(_ field: String) async throws -> [[String]] {
            var found: [[String]] = []
            for value in odd {
                for name in operators {
                    let selector: JSONValue = .object([field: .object([name: value])])
                    found.append(ids(try await find(served, ["selector": selector])).sorted())
                }
            }
            return found
        }
        let before = try await all("v")
        let beforeOdd = try await all("v`\"")
        #expect(before == beforeOdd)
        #expect(before.contains { $0.count > 3 })
        for field in ["v", "v`\""] {
            let made = try await served.call(
                "POST",
                "/main/_index",
                ["index": ["fields": .array([.string(field)])], "name": .string("by \"\(field)\"")]
            )
            #expect(made.status == 200, "\(made.text)")
        }
        #expect(try await all("v") == before)
        #expect(try await all("v`\"") == before)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a selector with many comparisons of one field is read in proportion`() throws {
        let parts = (0..<100_000).map { JSONValue.object(["k": ["$gt": JSONValue($0)]]) }
        let selector = try Selector(parsing: ["$and": .array(parts)])
        #expect(selector.comparisons[["k"]]?.count == 100_000)
    }

    @Test
    func
        `a selector with many comparisons of an indexed field finds the same, and one with too many is refused`()
        async throws
    {
        let served = try await serve()
        #expect(
            try await served.call("POST", "/main/_index", ["index": ["fields": ["n"]]]).status == 200
        )
        func selector(_ count: Int) -> JSONValue {
            ["$and": .array((0..<count).map { .object(["n": ["$gt": JSONValue(50 - $0)]]) })]
        }
        let found = try await find(served, ["selector": selector(2_000)])
        #expect(numbers(found) == [51, 52, 53, 54, 55, 56, 57, 58, 59])
        let tooMany = selector(20_000)
        #expect(try await served.call("POST", "/main/_find", ["selector": tooMany]).status == 413)
        let feed = "/main/_changes?filter=_selector"
        #expect(try await served.call("POST", feed, ["selector": tooMany]).status == 413)
        await served.listener.stop()
    }

    @Test func `what a client may not read is not found`() async throws {
        let served = try await serve {
            $0.authenticator = ListenerPasswordAuthenticator { $0 == $1 }
            $0.accessPolicy = AccessPolicy { peer, _, document in
                guard let document else { return .write }
                return peer.username == "ana" || document["kind"]?.string == "a" ? .write : .none
            }
        }
        let request: JSONValue = ["selector": ["n": ["$gte": 0]], "limit": 100]
        #expect(ids(try await find(served, request, as: "ana")).count == 60)
        #expect(ids(try await find(served, request, as: "bob")).count == 20)
        _ = try await served.call("POST", "/main/_index", ["index": ["fields": ["n"]]], as: "ana")
        #expect(ids(try await find(served, request, as: "bob")).count == 20)
        #expect(ids(try await find(served, request, as: "ana")).count == 60)
    }
}
