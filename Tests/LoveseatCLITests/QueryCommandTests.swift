import Foundation
import Testing

/// `loveseat query`, `loveseat index` and `loveseat ls --where` as a person uses them.
struct QueryCommandTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        let sights = """
            {"_id":"bridge","city":"Rome","likes":2,"tags":["old","stone"]}
            {"_id":"tower","city":"Paris","likes":5,"tags":["iron"],"text":"An iron tower of many visitors"}
            {"_id":"wheel","city":"Paris","likes":3,"note":"says \\"hello\\", turns"}

            """
        try folder.write(sights, to: "sights.jsonl")
        try folder.run("import", "db", "sights.jsonl")
    }

    @Test func `a query prints one JSON object for each row`() throws {
        let outcome = try folder.run("query", "db", "SELECT meta().id, likes FROM _ ORDER BY likes DESC")
        #expect(
            outcome.lines == [
                "{\"id\":\"tower\",\"likes\":5}", "{\"id\":\"wheel\",\"likes\":3}",
                "{\"id\":\"bridge\",\"likes\":2}",
            ]
        )
        #expect(outcome.status == 0)
    }

    @Test func `parameters are JSON, or else texts`() throws {
        let query = "SELECT meta().id FROM _ WHERE city = $city AND likes > $least"
        let outcome = try folder.run("query", "db", query, "--param", "city=Paris", "--param", "$least=3")
        #expect(outcome.lines == ["{\"id\":\"tower\"}"])
        let unknown = try folder.run("query", "db", query, "--param", "town=Paris")
        #expect(unknown.status == 64)
        #expect(unknown.errors.contains("the query has no parameter $town"))
        let wrong = try folder.run("query", "db", query, "--param", "city")
        #expect(wrong.status == 64)
        #expect(wrong.errors.contains("name=value"))
    }

    @Test func `a value that a function refuses is no failure of the disk`() throws {
        let outcome = try folder.run("query", "db", "SELECT ROUND('x') FROM _")
        #expect(outcome.status == 65)
        #expect(outcome.errors.contains("ROUND() takes numbers"))
    }

    @Test func `rows are comma-separated values, quoted where they must be`() throws {
        let query = "SELECT meta().id, note, tags FROM _ ORDER BY meta().id"
        let outcome = try folder.run("query", "db", query, "--csv")
        #expect(
            outcome.output.split(separator: "\n").map(String.init) == [
                "id,note,tags", "bridge,,\"[\"\"old\"\",\"\"stone\"\"]\"", "tower,,\"[\"\"iron\"\"]\"",
                "wheel,\"says \"\"hello\"\", turns\",",
            ]
        )
    }

    @Test func `a quotation mark is doubled whatever stands behind it`() throws {
        try folder.write("{\"_id\":\"accent\",\"note\":\"\\\"\u{301}\"}\n", to: "accent.jsonl")
        try folder.run("import", "db", "accent.jsonl")
        let query = "SELECT note FROM _ WHERE meta().id = 'accent'"
        #expect(try folder.run("query", "db", query, "--csv").output == "note\n\"\"\"\u{301}\"\n")
    }

    @Test func `a table has titles and columns of equal width`() throws {
        let query = "SELECT city, COUNT(*) AS sights FROM _ GROUP BY city ORDER BY city"
        let lines = try folder.run("query", "db", query, "--table").output.split(separator: "\n")
        #expect(
            lines.map(String.init) == ["city   sights", "-----  ------", "Paris  2     ", "Rome   1     "]
        )
    }

    @Test func `mistakes in a query are told with their place, and what does not exist ends with 66`() throws
    {
        let syntax = try folder.run("query", "db", "SELECT FROM _ WHERE")
        #expect(syntax.status == 64)
        #expect(syntax.errors.contains("character"))
        let collection = try folder.run("query", "db", "SELECT * FROM nowhere")
        #expect(collection.status == 66)
        #expect(collection.errors.contains("nowhere"))
        let index = try folder.run("query", "db", "SELECT 1 FROM _ WHERE MATCH(words, 'x')")
        #expect(index.status == 66)
    }

    @Test func `indexes are created, listed, used, replaced and deleted`() throws {
        #expect(
            try folder.run("index", "create", "db", "by-city", "city", "--where", "likes > 0").status == 0
        )
        try folder.run("index", "create", "db", "words", "text", "--full-text", "--language", "en")
        try folder.run("index", "create", "db", "tags", "--array", "tags")
        #expect(
            try folder.run("index", "list", "db").lines.map { $0.split(separator: "\t").map(String.init) }
                == [
                    ["by-city", "value", "city", "where likes > 0"], ["tags", "array", "tags"],
                    ["words", "full-text", "text", "language en"],
                ]
        )
        let match = "SELECT meta().id FROM _ WHERE MATCH(words, 'visitor')"
        #expect(try folder.run("query", "db", match).lines == ["{\"id\":\"tower\"}"])
        try folder.run("index", "create", "db", "by-city", "city")
        let filter = "SELECT meta().id FROM _ WHERE city = 'Rome'"
        #expect(try folder.run("query", "db", filter, "--explain").output.contains("USING INDEX by-city"))
        #expect(try folder.run("query", "db", filter).lines == ["{\"id\":\"bridge\"}"])
        #expect(try folder.run("index", "delete", "db", "by-city").status == 0)
        #expect(try folder.run("query", "db", filter, "--explain").output.contains("by-city") == false)
        #expect(try folder.run("index", "delete", "db", "by-city").status == 66)
        #expect(try folder.run("check", "db").status == 0)
    }

    @Test func `an index needs something to index, and is of one kind`() throws {
        for arguments in [
            ["by-city"], ["words", "text", "--language", "en"],
            ["a", "text", "--full-text", "--array", "tags"],
            ["a", "--array", "tags", "--where", "likes > 0"], ["a", "likes >"],
        ] {
            let outcome = try folder.run(["index", "create", "db"] + arguments)
            #expect(outcome.status == 64, "\(arguments): \(outcome.errors)")
        }
        #expect(try folder.run("index", "list", "db").lines.isEmpty)
    }

    @Test func `ls lists the documents that meet a condition`() throws {
        #expect(try folder.run("ls", "db", "--where", "city = 'Paris'").lines == ["tower", "wheel"])
        #expect(try folder.run("ls", "db", "--where", "likes > 2", "--reverse").lines == ["wheel", "tower"])
        #expect(try folder.run("ls", "db", "--where", "city = 'Paris'", "--limit", "1").lines == ["tower"])
        #expect(try folder.run("ls", "db", "--where", "city = 'Paris'", "--prefix", "w").lines == ["wheel"])
        let unfinished = try folder.run("ls", "db", "--where", "city =")
        #expect(unfinished.status == 64)
        #expect(unfinished.errors.contains(" (at the end of the condition)"), "\(unfinished.errors)")
        #expect(
            try folder.run("ls", "db", "--where", "nofn(city) = 3").errors.contains(#/at character [1-5]\b/#)
        )
    }

    @Test func `a parameter without a value is missing, and standard error names it`() throws {
        let query = "SELECT meta().id FROM _ WHERE city = $city AND likes > $least"
        let outcome = try folder.run("query", "db", query, "--param", "least=3")
        #expect(outcome.status == 0)
        #expect(outcome.lines.isEmpty)
        #expect(outcome.errors.contains("$city has no value"), "\(outcome.errors)")
        #expect(!outcome.errors.contains("$least"), "\(outcome.errors)")
        let plan = try folder.run("query", "db", query, "--explain")
        #expect(!plan.errors.contains("has no value"), "\(plan.errors)")
    }

    @Test func `a live query and a feed of changes end when nobody reads them any more`() throws {
        for arguments in [
            ["query", "db", "SELECT COUNT(*) AS n FROM _", "--live"], ["changes", "db", "--follow"],
        ] {
            let (process, output, _) = try folder.start(arguments)
            #expect(!output.fileHandleForReading.availableData.isEmpty)
            try output.fileHandleForReading.close()
            process.waitUntilExit()
            #expect(process.terminationReason == .exit)
        }
    }

    @Test func `a live query prints again what another process changes`() throws {
        let query = "SELECT COUNT(*) AS n FROM _"
        let (process, output, _) = try folder.start(["query", "db", query, "--live"])
        defer { process.terminate() }
        var said = ""
        func expectOutput(_ text: String) throws {
            while !said.contains(text) {
                let piece = output.fileHandleForReading.availableData
                try #require(!piece.isEmpty, "it ended after \(said)")
                said += String(decoding: piece, as: UTF8.self)
            }
        }
        try expectOutput("{\"n\":3}\n")
        try folder.run("put", "db", "gate", "{}")
        try expectOutput("{\"n\":4}\n")
        process.interrupt()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a live query prints again what only another spelling of a letter has changed`() throws {
        try folder.run("put", "db", "name", "{\"name\":\"caf\u{E9}\"}")
        let query = "SELECT name FROM _ WHERE meta().id = 'name'"
        let (process, output, _) = try folder.start(["query", "db", query, "--live"])
        defer { process.terminate() }
        var said = Data()
        func expectOutput(_ text: String) throws {
            while said.range(of: Data(text.utf8)) == nil {
                let piece = output.fileHandleForReading.availableData
                try #require(!piece.isEmpty)
                said += piece
            }
        }
        try expectOutput("caf\u{E9}")
        try folder.run("put", "db", "name", "{\"name\":\"cafe\u{301}\"}")
        try expectOutput("cafe\u{301}")
    }
}
