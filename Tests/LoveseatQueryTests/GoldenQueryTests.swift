import LoveseatModel
import LoveseatQuery
import Testing

/// Our answers against the real engine's (Tests/Fixtures/query).
struct GoldenQueryTests {
    static let zones = ["UTC", "America/New_York", "Asia/Kolkata"]

    /// What is wrong with our answer, or nil.
    private static func difference(_ question: GoldenCorpus.Question, in database: GoldenDatabase) throws
        -> String?
    {
        var drop: [String] = []
        defer { #expect(throws: Never.self) { try database.forgetIndexes(drop) } }
        do {
            for (number, index) in (question["indexes"]?.items ?? emptyItems).enumerated() {
                drop += try database.makeIndex(index, number: number)
            }
            if let index = question["createIndex"] {
                drop += try database.makeIndex(index, number: 0)
                return question["error"] == nil ? nil : "the index should be refused"
            }
            let answer = try database.answer(question["query"]?.string ?? "", question["parameters"])
            if question["quirk"] != nil { return nil }
            if question["error"] != nil { return "should be an error" }
            if let wrong = GoldenJudge.difference(question, columns: answer.columns, rows: answer.rows) {
                return wrong
            }
            return planDifference(question, answer.plan)
        } catch let failure as GoldenDatabase.Failure {
            if question["quirk"] != nil { return nil }
            guard let expected = question["error"] else { return "unexpected error: \(failure.message)" }
            guard expected["stage"]?.string == failure.stage else {
                return
                    "an error at \(failure.stage) instead of \(expected["stage"]?.string ?? ""): \(failure.message)"
            }
            return nil
        }
    }

    private static var emptyItems: JSONElement.Items { JSONElement(JSONText.emptyObject).items }

    /// An index of the app is used where the real engine uses it.
    private static func planDifference(_ question: GoldenCorpus.Question, _ plan: [String]) -> String? {
        let theirs = question["plan"]?.items.compactMap(\.string) ?? []
        for index in question["indexes"]?.items ?? emptyItems where index["type"]?.string == "value" {
            let used = "INDEX \(index["name"]?.string ?? "")"
            let isUsed = theirs.contains { $0.contains(used) }
            if isUsed != plan.contains(where: { $0.contains(used) }) {
                return isUsed ? "the index is not used: \(plan)" : "the index is used: \(plan)"
            }
        }
        return nil
    }

    @Test(arguments: zones)
    func `queries have the answers of the real engine`(_ zone: String) throws {
        let documents = try GoldenCorpus.documents()
        let hasISO = documents.keys.contains { $0.scope == "iso" }
        let database = try GoldenDatabase(timeZone: zone, documents: documents)
        var asked = 0
        var skipped = 0
        for question in try GoldenCorpus.questions() where question["timezone"]?.string ?? "UTC" == zone {
            if !hasISO, question.needsISO {
                skipped += 1
                continue
            }
            asked += 1
            let difference = try Self.difference(question, in: database)
            let text = question["query"]?.string ?? ""
            if let reason = GoldenDeviations.reasons[question.id] {
                #expect(difference != nil, "\(question.id) has the same answer now, although \(reason)")
            } else {
                #expect(difference == nil, "\(question.id): \(text)")
            }
        }
        #expect(asked > 5)
        if skipped > 0 {
            Issue.record(
                "\(skipped) questions need Debian's package iso-codes 4.15.0: install it",
                severity: .warning
            )
        }
    }
}
