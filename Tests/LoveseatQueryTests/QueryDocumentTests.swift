import Foundation
import LoveseatModel
import Testing

/// The queries of docs/queries.md have the answers that are shown there.
struct QueryDocumentTests {
    /// The text of the first block of a language in a section.
    private func block(_ language: String, in section: Substring) -> Substring? {
        let parts = section.split(separator: "```\(language)\n", maxSplits: 1)
        return parts.count < 2 ? nil : parts[1].split(separator: "\n```", maxSplits: 1).first
    }

    @Test func `each group has a query with the recorded answer`() throws {
        let file = GoldenCorpus.folder.appending(path: "../../../docs/queries.md").standardized
        let sections = try String(contentsOf: file, encoding: .utf8).split(separator: "<!-- golden: ")
            .dropFirst()
        let questions = try GoldenCorpus.questions()
        var groups: Set<String> = ["makeindex"]
        for section in sections {
            let id = section.prefix { $0 != " " }
            let question = try #require(questions.first { $0.id == id }, "\(id) is not a golden question")
            groups.insert(question.category)
            #expect(block("sql", in: section).map(String.init) == question["query"]?.string, "\(id)")
            guard let answer = block("json", in: section) else {
                #expect(question["error"] != nil, "\(id) shows no answer")
                continue
            }
            let lines = answer.split(separator: "\n")
            let shown = try lines.filter { $0 != "…" }.map { try JSONValue(parsing: String($0)) }
            let rows = question["rows"]?.items.map(\.value) ?? []
            #expect(lines.last == "…" ? shown == Array(rows.prefix(shown.count)) : shown == rows, "\(id)")
        }
        #expect(groups == Set(questions.map(\.category)))
    }
}
