import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Any two names that differ in bytes stay two, although Swift's strings are equal if they are canonically equivalent.
struct LookalikeNamesTests {
    /// Two spellings of each letter: composed and decomposed, signs that are letters, and marks in another order.
    private static let spellings: [(String, String)] = [
        ("\u{E9}", "e\u{301}"), ("\u{C5}", "\u{212B}"), ("A\u{30A}", "\u{C5}"), ("K", "\u{212A}"),
        ("\u{3A9}", "\u{2126}"), (";", "\u{37E}"), ("\u{1E69}", "s\u{323}\u{307}"),
        ("s\u{323}\u{307}", "s\u{307}\u{323}"), ("\u{AC00}", "\u{1100}\u{1161}"), ("\u{F900}", "\u{8C48}"),
        ("\u{B7}", "\u{387}"), ("/\u{338}", "/\u{338}\u{334}\u{335}"), ("~\u{301}", "~\u{341}"),
    ]

    /// Two names that are equal as strings, as a rule, and whose bytes differ.
    private static func pair(_ random: inout SeededGenerator) -> (String, String) {
        var (one, other) = ("", "")
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            let plain = ["a", "Z", "1", "-", " ", "/"].randomElement(using: &random) ?? "a"
            (one, other) = (one + plain, other + plain)
        }
        let (first, second) = spellings.randomElement(using: &random) ?? ("K", "\u{212A}")
        (one, other) = (one + first, other + second)
        let end = ["", ".txt", "x", "0"].randomElement(using: &random) ?? ""
        return Bool.random(using: &random) ? (one + end, other + end) : (other + end, one + end)
    }

    private func path(_ parts: String...) -> String {
        "/" + parts.map { PathEncoding.segment($0) }.joined(separator: "/")
    }

    private func base64(_ text: String) -> JSONValue { .string(Data(text.utf8).base64EncodedString()) }

    private func contents(_ served: ServedDatabase, _ id: String, _ names: [String]) async throws -> [String]
    {
        var found: [String] = []
        for name in names { found.append(try await served.call("GET", path("main", id, name)).text) }
        return found
    }

    @Test func `queries that differ in a lookalike name have their own answers, one after the other`()
        async throws
    {
        let served = try await ServedDatabase()
        var random = SeededGenerator(seed: 5)
        for number in 0..<60 {
            let (one, other) = Self.pair(&random)
            let collection = try served.database.createCollection(name: "c\(number)")
            try collection.save(
                try Document(id: "d", json: JSONText(canonical: [one: 1, other: 2]).bytes)
            )
            for _ in 0..<2 {
                for (name, value) in [(one, 1), (other, 2)] {
                    let query = try served.database.createQuery("SELECT `\(name)` AS x FROM c\(number)")
                    #expect(try await query.execute(as: [String: Int].self).map { $0["x"] } == [value])
                }
            }
            // A dot in a field's name is a path there.
            guard number < 20, !one.utf8.contains(UInt8(ascii: ".")) else { continue }
            // Indexes on both make both statements alike.
            for name in [one, other] {
                let body: JSONValue = ["index": ["fields": [.string("n\(number)\(name)")]]]
                #expect(try await served.call("POST", "/main/_index", body).status == 200)
            }
            let names = [one, other].map { "n\(number)\($0)" }
            let fields: JSONValue = [names[0]: 1, names[1]: 2]
            #expect(try await served.call("PUT", "/main/f\(number)", fields).status == 201)
            for (name, value) in zip(names, [1, 2] as [JSONValue]) {
                let found = try await served.call("POST", "/main/_find", ["selector": [name: value]])
                #expect(found.json["docs"]?.array?.count == 1, "\(name)")
            }
        }
        await served.listener.stop()
    }

    @Test func `attachments stay two through every request, a save with stubs, a pull and a push`()
        async throws
    {
        let served = try await ServedDatabase()
        let port = try #require(served.listener.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/main"))
        var pairs: [(id: String, names: [String])] = []
        for seed in PropertySeeds.of("LOOKALIKE", 40) {
            var random = SeededGenerator(seed: seed)
            let (one, other) = Self.pair(&random)
            let id = "d\(seed)"
            pairs.append((id, [one, other]))
            switch seed % 3 {
            case 0:
                var table = JSONObject()
                table[one] = ["data": base64("one \(seed)")]
                table[other] = ["data": base64("other \(seed)")]
                #expect(
                    try await served.call("PUT", path("main", id), ["_attachments": .object(table)]).status
                        == 201
                )
            case 1:
                let made = try await served.call("PUT", path("main", id, one), .string("one"))
                let revision = try #require(made.json["rev"]?.string)
                #expect(
                    try await served.call(
                        "PUT",
                        path("main", id, other) + "?rev=\(revision)",
                        .string("other")
                    ).status
                        == 201
                )
            default:
                let table: (String, Int) -> String = { name, length in
                    "\(JSONValue.string(name)):{\"follows\":true,\"length\":\(length),\"content_type\":\"text/plain\"}"
                }
                let text = """
                    --B\r\nContent-Type: application/json\r\n\r\n{"_attachments":{\(table(one, 3)),\(table(other, 5))}}\r
                    --B\r\nContent-Disposition: attachment; filename="\(other)"\r\n\r\nother\r
                    --B\r\nContent-Disposition: attachment; filename="\(one)"\r\n\r\none\r\n--B--
                    """
                let (client, target) = (served.client, path("main", id))
                let answer = try await offPool {
                    try client.send(
                        "PUT",
                        target,
                        [("Content-Type", "multipart/related; boundary=\"B\"")],
                        body: Array(text.utf8)
                    )
                }
                #expect(answer.status == 201, "\(answer.text)")
            }
            let before = try await contents(served, id, [one, other])
            #expect(before[0].contains("one"), "seed \(seed): \(before)")
            #expect(before[1].contains("other"), "seed \(seed): \(before)")
            // As all clients save: what is not changed comes as stubs.
            var document = try await served.call("GET", path("main", id)).json
            document["n"] = 1
            #expect(try await served.call("PUT", path("main", id), document).status == 201)
            #expect(try await contents(served, id, [one, other]) == before, "seed \(seed)")
        }
        let copy = try ActiveSide()
        #expect(try await copy.replicate(url, .pull).failed.isEmpty)
        let target = try await ServedDatabase()
        let targetPort = try #require(target.listener.port)
        let targetURL = try #require(URL(string: "http://127.0.0.1:\(targetPort)/main"))
        #expect(try await copy.replicate(targetURL, .push).failed.isEmpty)
        for (id, names) in pairs {
            #expect(try await contents(target, id, names) == contents(served, id, names), "\(id)")
            let here = try #require(try copy.collection.document(id: id))
            let table = try #require(here.properties["_attachments"]?.object)
            #expect(table.count == 2)
            #expect(table[names[0]] != nil)
            #expect(table[names[1]] != nil)
            // One is deleted, the other stays.
            let revision = try #require(try await served.call("GET", path("main", id)).json["_rev"]?.string)
            let gone = try await served.call("DELETE", path("main", id, names[1]) + "?rev=\(revision)")
            #expect(gone.status == 200)
            #expect(try await served.call("GET", path("main", id, names[0])).status == 200)
            #expect(try await served.call("GET", path("main", id, names[1])).status == 404)
        }
    }

    @Test func `documents stay two over both wires, and in what is pending`() async throws {
        let here = try ActiveSide()
        var ids: [String] = []
        for seed in PropertySeeds.of("LOOKALIKE", 40) {
            var random = SeededGenerator(seed: seed)
            let (one, other) = Self.pair(&random)
            for id in [one, other] {
                ids.append("\(seed)\(id)")
                try here.save("\(seed)\(id)", ["spelling": JSONValue(id.utf8.map { Int($0) }.description)])
            }
        }
        let served = try await ServedDatabase()
        let port = try #require(served.listener.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/main"))
        let pushing = Replicator(try here.configuration(CouchDBEndpoint(url: url), .push))
        let pending = try pushing.pendingDocumentIds(collection: here.collection)
        #expect(pending.count == ids.count)
        #expect(Set(pending.map { ExactText($0) }) == Set(ids.map { ExactText($0) }))
        #expect(try await here.replicate(url, .push).pushed.count == ids.count)
        let far = try ActiveSide()
        try await far.synchronize(with: here)
        for id in ids {
            let body = try here.collection.document(id: id)?.properties
            #expect(body != nil)
            #expect(try far.collection.document(id: id)?.properties == body)
            #expect(try served.database.defaultCollection().document(id: id)?.properties == body)
            let answer = try await served.call("GET", path("main", id)).json
            #expect(answer["spelling"] == body?["spelling"])
            #expect(answer["_id"] == .string(id))
        }
    }

    @Test func `properties stay two in queries, indexes, selectors and their order`() async throws {
        for seed in PropertySeeds.of("LOOKALIKE", 30) {
            var random = SeededGenerator(seed: seed)
            let (first, second) = Self.pair(&random)
            // A dot divides names in selectors.
            let one = first.replacing(".", with: ""), other = second.replacing(".", with: "")
            let served = try await ServedDatabase()
            let collection = try served.database.defaultCollection()
            for number in 0..<5 {
                var body: JSONObject = ["n": JSONValue(number)]
                body[one] = JSONValue(number)
                body[other] = JSONValue(10 - number)
                try collection.save(Document(id: "d\(number)", body))
            }
            func check(_ stage: String) async throws {
                var query = try served.database.createQuery(
                    "SELECT `\(one)`, `\(other)`, n AS `\(one)x`, n + 1 AS `\(other)x` FROM _ WHERE `\(other)` = $v"
                )
                query.parameters["v"] = 7
                let rows = try await query.execute()
                #expect(rows.count == 1, "seed \(seed), \(stage)")
                let row = try #require(rows.first)
                #expect(row[one] == 3)
                #expect(row[other] == 7)
                #expect(row[one + "x"] == 3)
                #expect(row[other + "x"] == 4)
                #expect(row.properties.count == 4)
                #expect(row.columns.count == 4)
                var (equal, sorted) = (JSONObject(), JSONObject())
                equal[one] = 3
                sorted[other] = ["$gt": 0]
                let found = try await served.call(
                    "POST",
                    "/main/_find",
                    ["selector": .object(equal), "fields": [.string(other)]]
                )
                var expected = JSONObject()
                expected[other] = 7
                #expect(found.json["docs"] == [.object(expected)], "seed \(seed), \(stage): \(found.text)")
                let ordered = try await served.call(
                    "POST",
                    "/main/_find",
                    ["selector": .object(sorted), "fields": ["_id"]]
                )
                #expect(ordered.json["docs"]?.array?.count == 5, "seed \(seed), \(stage)")
            }
            try await check("without an index")
            for field in [one, other] {
                let made = try await served.call(
                    "POST",
                    "/main/_index",
                    ["index": ["fields": [.string(field)]], "name": .string(field), "ddoc": "both"]
                )
                #expect(made.json["result"] == "created", "seed \(seed): \(made.text)")
                try await check("with an index")
            }
            let listed = try await served.call("GET", "/main/_index").json["indexes"]?.array ?? []
            #expect(listed.count == 3, "seed \(seed)")
            var order = JSONObject()
            order[other] = "asc"
            var positive = JSONObject()
            positive[other] = ["$gt": 0]
            let sorted = try await served.call(
                "POST",
                "/main/_find",
                [
                    "selector": .object(positive), "sort": [.object(order)],
                    "fields": ["_id"],
                ]
            )
            let inOrder: [String] = sorted.json["docs"]?.array?.compactMap { $0["_id"]?.string } ?? []
            #expect(inOrder == ["d4", "d3", "d2", "d1", "d0"], "seed \(seed): \(sorted.text)")
            let quoted = try await served.call("DELETE", path("main", "_index", "both", "json", one))
            #expect(quoted.status == 200, "seed \(seed)")
            #expect(try await served.call("GET", "/main/_index").json["indexes"]?.array?.count == 2)
            for name in [one, other] {
                try await collection.createIndex(ValueIndexConfiguration(["n"]), withName: name)
            }
            try await collection.createIndex(ValueIndexConfiguration(["`\(one)`"]), withName: "same")
            try await collection.createIndex(ValueIndexConfiguration(["`\(other)`"]), withName: "same")
            let index = try #require(try collection.index(withName: "same") as? ValueIndexConfiguration)
            #expect(index.expressions.first.map { ExactText($0) } == ExactText("`\(other)`"))
            try collection.deleteIndex(forName: one)
            #expect(try collection.index(withName: one) == nil)
            #expect(try collection.index(withName: other) != nil)
        }
    }

    @Test func `results of a page end where the next one begins, whatever their IDs look like`() async throws
    {
        let served = try await ServedDatabase()
        let collection = try served.database.defaultCollection()
        for id in ["\u{E9}", "e\u{301}", "K", "\u{212A}", "a", "z"] {
            try collection.save(Document(id: id, ["n": 1]))
        }
        _ = try await served.call("POST", "/main/_index", ["index": ["fields": ["n"]]])
        var (found, bookmark): ([ExactText], JSONValue) = ([], "nil")
        for _ in 0..<7 {
            let answer = try await served.call(
                "POST",
                "/main/_find",
                ["selector": ["n": 1], "limit": 1, "bookmark": bookmark, "fields": ["_id"]]
            )
            found += answer.json["docs"]?.array?.compactMap { $0["_id"]?.string.map { ExactText($0) } } ?? []
            bookmark = answer.json["bookmark"] ?? "nil"
        }
        #expect(found.count == 6)
        #expect(Set(found).count == 6)
    }
}
