import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// One revision ID stands for one content.
struct OtherContentTests {
    private func row(_ served: ServedDatabase, _ document: JSONValue) async throws -> JSONValue? {
        let answer = try await served.call(
            "POST",
            "/main/_bulk_docs",
            ["new_edits": false, "docs": [document]]
        )
        #expect(answer.status == 201, "\(answer.text)")
        return answer.json[0]
    }

    @Test func `other content for a revision that is here is reported, and replaces nothing`() async throws {
        let served = try await ServedDatabase()
        for seed in PropertySeeds.of("CONTENT", 60) {
            var random = SeededGenerator(seed: seed)
            let isLine = Bool.random(using: &random)
            let revisions: JSONValue = ["start": isLine ? 2 : 1, "ids": isLine ? ["bb", "aa"] : ["aa"]]
            var first: JSONValue = ["_id": .string("d\(seed)"), "_rev": isLine ? "2-bb" : "1-aa"]
            first["_revisions"] = revisions
            first["n"] = [1, "é", [1, ["x": nil]], 2.5].randomElement(using: &random)
            if seed % 3 == 0 { first["_attachments"] = ["a": ["data": "YQ=="]] }
            #expect(try await row(served, first) == nil)
            if seed % 4 == 0 {
                // Another branch wins meanwhile.
                let other: JSONValue = [
                    "_id": .string("d\(seed)"), "_rev": "3-ff", "_revisions": ["start": 3, "ids": ["ff"]],
                ]
                #expect(try await row(served, other) == nil)
            }
            // The same again is fine.
            #expect(try await row(served, first) == nil)
            var second = first
            switch Int.random(in: 0..<4, using: &random) {
            case 0: second["n"] = ["e\u{301}", 3, [1, ["x": 1]]].randomElement(using: &random)
            case 1: second["more"] = true
            case 2: second["_attachments"] = ["a": ["data": "Yg=="]]
            default: second["_deleted"] = true
            }
            let report = try await row(served, second)
            #expect(report?["error"] == "forbidden", "seed \(seed)")
            #expect(report?["id"] == .string("d\(seed)"), "seed \(seed)")
            let kept = try await served.call(
                "GET",
                "/main/d\(seed)?rev=\(isLine ? "2-bb" : "1-aa")&attachments=true",
                nil,
                [("Accept", "application/json")]
            ).json
            #expect(kept["n"] == first["n"], "seed \(seed)")
            #expect(kept["more"] == nil, "seed \(seed)")
            #expect(kept["_deleted"] == nil, "seed \(seed)")
            #expect(
                kept["_attachments"]?["a"]?["data"] == first["_attachments"]?["a"]?["data"],
                "seed \(seed)"
            )
        }
    }

    @Test func `a number that a peer writes in its own way is the same content`() async throws {
        let served = try await ServedDatabase()
        #expect(try await row(served, ["_id": "d", "_rev": "1-aa", "n": 1.0, "m": 100]) == nil)
        #expect(try await row(served, ["_id": "d", "_rev": "1-aa", "n": 1, "m": 1e2]) == nil)
    }

    @Test func `other content for a replaced revision is reported as long as its own is here`() async throws {
        let served = try await ServedDatabase()
        for seed in PropertySeeds.of("CONTENT", 30) {
            var random = SeededGenerator(seed: seed)
            let id = "d\(seed)"
            let count = random.pick([2, 3, 70])
            let told = random.int(1...count - 1)
            func document(_ generation: Int, _ content: JSONValue) -> JSONValue {
                let ids = (1...generation).reversed().map { JSONValue.string("aa\($0)") }
                return [
                    "_id": .string(id), "_revisions": ["start": JSONValue(generation), "ids": .array(ids)],
                    "n": content,
                ]
            }
            for generation in 1...count {
                #expect(try await row(served, document(generation, JSONValue(generation))) == nil)
            }
            // The same again is fine.
            #expect(try await row(served, document(told, JSONValue(told))) == nil, "seed \(seed)")
            let report = try await row(served, document(told, "other"))
            #expect(report?["error"] == "forbidden", "seed \(seed)")
            #expect(report?["rev"] == .string("\(told)-aa\(told)"), "seed \(seed)")
            let alone = try await served.call("PUT", "/main/\(id)?new_edits=false", document(told, "other"))
            #expect(alone.status == 403, "seed \(seed)")
            // Several at once, of which one is refused.
            let batch = try await served.call(
                "POST",
                "/main/_bulk_docs",
                [
                    "new_edits": false,
                    "docs": [
                        document(count + 1, "x"), document(told, "other"), document(count, JSONValue(count)),
                    ],
                ]
            )
            #expect(batch.json.array?.count == 1)
            #expect(batch.json[0]?["rev"] == .string("\(told)-aa\(told)"))
            let kept = try await served.call("GET", "/main/\(id)?rev=\(told)-aa\(told)").json
            #expect(kept["n"] == JSONValue(told), "seed \(seed)")
            #expect(try await served.call("GET", "/main/\(id)").json["n"] == "x", "seed \(seed)")
        }
        await served.listener.stop()
    }
}
