import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Several clients that follow the same changes.
struct SharedFeedTests {
    private static let forms = [
        "", "&include_docs=true", "&style=all_docs", "&include_docs=true&conflicts=true",
    ]

    /// The rows of a continuous feed, without its last line.
    private static func rows(_ text: String) throws -> [JSONElement] {
        try text.split(separator: "\n").map { try JSONElement(parsing: Array($0.utf8)) }.filter {
            $0["id"] != nil
        }
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `all followers hear of every change in order, in their own form`(_ seed: UInt64) async throws {
        let served = try await ServedDatabase()
        let client = served.client
        let collection = try served.database.defaultCollection()
        let first = JSONValue.array((0..<300).map { ["_id": .string("old\($0)"), "text": "before"] })
        #expect(try await served.call("POST", "/main/_bulk_docs", ["docs": first]).status == 201)
        let followers = Self.forms.indices.flatMap { [Int](repeating: $0, count: 5) }
        let texts = try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for form in followers {
                group.addTask {
                    let path = "/main/_changes?feed=continuous&timeout=6000\(Self.forms[form])"
                    return (form, try await offPool { try client.send("GET", path).text })
                }
            }
            group.addTask {
                var generator = SeededGenerator(seed: seed)
                for round in 0..<25 {
                    let docs = (0..<generator.pick([1, 3, 100])).map { number in
                        JSONValue(
                            dictionaryLiteral: ("_id", .string("d\(number % 40)-\(round)")),
                            ("round", JSONValue(round))
                        )
                    }
                    _ = try await served.call("POST", "/main/_bulk_docs", ["docs": .array(docs)])
                    if generator.chance(0.3) { try collection.purge(id: "old\(round)") }
                    if generator.chance(0.3), let document = try collection.document(id: "old\(100 + round)")
                    {
                        try collection.delete(document)
                    }
                }
                return (-1, "")
            }
            return try await group.reduce(into: [(Int, String)]()) { $0.append($1) }
        }
        let end = try await served.call("GET", "/main/_changes").json["results"]?.array ?? []
        let expected = end.map { (id: ExactText($0["id"]?.string ?? ""), sequence: $0["seq"]?.int) }
        for (form, text) in texts where form >= 0 {
            let rows = try Self.rows(text)
            let sequences = rows.compactMap { $0["seq"]?.int }
            #expect(sequences == sequences.sorted())
            #expect(Set(sequences).count == sequences.count)
            var last: [ExactText: Int] = [:]
            for row in rows { last[ExactText(row["id"]?.string ?? "")] = row["seq"]?.int }
            for (id, sequence) in expected { #expect(last[id] == sequence, "\(id) in form \(form)") }
            #expect(rows.allSatisfy { ($0["doc"] != nil) == Self.forms[form].contains("include_docs") })
        }
        await served.listener.stop()
    }
}
