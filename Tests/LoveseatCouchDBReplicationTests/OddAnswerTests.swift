import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// Answers of which one thing is odd. Each means the same as before, or is an error: what a remote lacks or refuses must not count as sent.
struct OddAnswerTests {
    private static let odd: [JSONValue] = [nil, true, 5, "?", [], [[]], [:], ["x": 1]]

    private static func kind(_ value: JSONValue) -> JSONElement.Kind {
        JSONElement(JSONText(canonical: value)).kind
    }

    /// Changes one thing: a value becomes one of another kind, a text another one, a member is left out or gets another name. Members of the
    /// answer itself are not left out, since that means something; documents stay as they are.
    private static func changed(_ value: JSONValue, depth: Int = 0, _ random: inout SeededGenerator)
        -> JSONValue
    {
        let goesOn = Int.random(in: 0..<4, using: &random) > 0
        if goesOn, var array = value.array, let index = array.indices.randomElement(using: &random) {
            array[index] = changed(array[index], depth: depth + 1, &random)
            return .array(array)
        }
        if goesOn, var object = value.object, let key = object.keys.sorted().randomElement(using: &random),
            let member = object[key]
        {
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where depth > 0: object[key] = nil
            case 1:
                object[key] = nil
                object[key + "x"] = member
            case _ where key == "ok" && member.object != nil:
                object[key] = odd.filter { $0.object == nil }.randomElement(using: &random)
            default: object[key] = changed(member, depth: depth + 1, &random)
            }
            return .object(object)
        }
        if let text = value.string, Bool.random(using: &random) { return .string(text + "x") }
        return odd.filter { kind($0) != kind(value) }.randomElement(using: &random) ?? .null
    }

    private static func element(_ value: JSONValue) throws -> JSONElement {
        try JSONElement(parsing: JSONText(canonical: value).bytes)
    }

    private static let seeds = 0..<3_000 as Range<UInt64>

    @Test func `an odd answer to _revs_diff does not say that nothing is missing`() throws {
        for seed in Self.seeds {
            var random = SeededGenerator(seed: seed)
            var asked: [(id: String, revisions: [RevisionID])] = []
            var (answer, missing): (JSONValue, [String: [String]]) = ([:], [:])
            for number in 0..<Int.random(in: 1...4, using: &random) {
                let revisions = ["1-a\(number)", "2-b\(number)", "2-c\(number)"]
                asked.append(("d\(number)", revisions.compactMap { RevisionID($0) }))
                let lacked = revisions.filter { _ in Bool.random(using: &random) }
                if lacked.isEmpty { continue }
                missing["d\(number)"] = lacked
                var entry: JSONValue = ["missing": .array(lacked.map { .string($0) })]
                if Bool.random(using: &random) { entry["possible_ancestors"] = ["1-z"] }
                answer["d\(number)"] = entry
            }
            let good = try MissingRevisions.read(try Self.element(answer), about: asked)
            #expect(good.count == missing.count, "seed \(seed)")
            let changed = Self.changed(answer, &random)
            do {
                let told = try MissingRevisions.read(try Self.element(changed), about: asked)
                for (id, lacked) in missing {
                    let result = try #require(told[ExactText(id)], "seed \(seed): \(id) of \(changed)")
                    guard case .success(let read) = result else { continue }
                    #expect(read.missing == Set(lacked.map { ExactText($0) }), "seed \(seed): \(changed)")
                }
            } catch let error as LoveseatError { #expect(error.code == .remoteError) }
        }
    }

    @Test(arguments: [
        #"{"a":{}}"#, #"{"a":{"missing":null}}"#, #"{"a":{"missing":{}}}"#, #"{"a":{"missing":"1-a"}}"#,
        #"{"a":{"missing":[5]}}"#, #"{"a":{"missing":["1-b"]}}"#, #"{"a":["1-a"]}"#, #"{"a":null}"#,
    ])
    func `what cannot be read of one document is its error alone`(_ text: String) throws {
        let revision = try #require(RevisionID("1-a"))
        let whole = #"{"b":{"missing":["1-a"]},"# + text.dropFirst()
        let told = try MissingRevisions.read(
            try JSONElement(parsing: Array(whole.utf8)),
            about: [("a", [revision]), ("b", [revision]), ("c", [revision])]
        )
        guard case .failure(let error)? = told["a"] else {
            Issue.record("\(text) counts as \(String(describing: told["a"]))")
            return
        }
        #expect(error.code == .remoteError)
        #expect(try told["b"]?.get().missing == ["1-a"])
        #expect(told["c"] == nil)
    }

    @Test(arguments: [
        #"{"c":{"missing":["1-a"]}}"#, #"{"a":{"missing":["1-a"]},"a":{"missing":[]}}"#, "[]", "null",
    ])
    func `an answer about other documents, or about one twice, is refused`(_ text: String) throws {
        let revision = try #require(RevisionID("1-a"))
        let answer = try JSONElement(parsing: Array(text.utf8))
        let error = #expect(throws: LoveseatError.self) {
            try MissingRevisions.read(answer, about: [("a", [revision]), ("b", [revision])])
        }
        #expect(error?.code == .remoteError)
    }

    @Test func `an odd answer to _bulk_docs does not say that a refused document was stored`() throws {
        for seed in Self.seeds {
            var random = SeededGenerator(seed: seed)
            var (rows, sent, refused): ([JSONValue], [String], Set<String>) = ([], [], [])
            for number in 0..<Int.random(in: 1...4, using: &random) {
                let id = "d\(number)"
                sent.append(id)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: rows.append(["ok": true, "id": .string(id), "rev": "1-a"])
                case 1:
                    rows.append(["id": .string(id), "rev": "1-a", "error": "forbidden", "reason": "no"])
                    refused.insert(id)
                default: break
                }
            }
            let good = try RefusedDocument.read(try Self.element(.array(rows)), of: DocumentSet(sent))
            #expect(Set(good.map(\.documentID)) == refused, "seed \(seed)")
            let changed = Self.changed(.array(rows), &random)
            do {
                let told = try RefusedDocument.read(try Self.element(changed), of: DocumentSet(sent))
                #expect(Set(told.map(\.documentID)).isSuperset(of: refused), "seed \(seed): \(changed)")
            } catch let error as LoveseatError { #expect(error.code == .remoteError) }
        }
    }

    @Test func `an odd answer to _bulk_get gives all revisions of an entry or none`() throws {
        for seed in Self.seeds {
            var random = SeededGenerator(seed: seed)
            var (results, documents): ([JSONValue], [[JSONValue]]) = ([], [])
            for number in 0..<Int.random(in: 1...4, using: &random) {
                let found: [JSONValue] = (0..<Int.random(in: 0...2, using: &random)).map {
                    ["_id": .string("d\(number)"), "_rev": .string("1-\($0)")]
                }
                var entries: [JSONValue] = found.map { ["ok": $0] }
                if entries.isEmpty { entries = [["error": ["id": "x", "rev": "1-a", "error": "not_found"]]] }
                results.append(["id": .string("d\(number)"), "docs": .array(entries)])
                documents.append(found)
            }
            let answer: JSONValue = ["results": .array(results)]
            let good = try #require(BulkGetItem.read(try Self.element(answer)))
            #expect(good.map { $0.documents.map(\.value) } == documents, "seed \(seed)")
            let changed = Self.changed(answer, &random)
            // Anything else is asked for one by one.
            guard let told = BulkGetItem.read(try Self.element(changed)), told.count == documents.count else {
                continue
            }
            for (number, item) in told.enumerated()
            where item.documentID.isExactly("d\(number)") && !item.documents.isEmpty {
                #expect(item.documents.map(\.value) == documents[number], "seed \(seed): \(changed)")
            }
        }
    }
}
