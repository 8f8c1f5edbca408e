import Foundation
import LoveseatTesting
import Testing

/// `loveseat sql`, with a script and at a terminal.
struct QueryShellTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        let sights = (0..<600).map {
            "{\"_id\":\"s\($0)\",\"city\":\"\($0 == 7 ? "Paris" : "Rome")\",\"likes\":\($0)}\n"
        }
        try folder.write(sights.joined(), to: "sights.jsonl")
        try folder.run("import", "db", "sights.jsonl")
        try folder.run("index", "create", "db", "by-city", "city")
    }

    private func script(_ text: String, _ arguments: String...) throws -> CommandLineFolder.Outcome {
        try script(Data(text.utf8), arguments)
    }

    private func script(_ bytes: Data, _ arguments: [String] = []) throws -> CommandLineFolder.Outcome {
        let (process, output, errors) = try folder.start(["sql", "db"] + arguments, input: bytes)
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let problems = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return .init(output: said, errors: problems, status: process.terminationStatus)
    }

    @Test func `a script runs query after query`() throws {
        let outcome = try script(
            """
            .param city=Paris
            SELECT meta().id
              FROM _ WHERE city = $city;
            .csv
            SELECT ';' AS sign, COUNT(*) AS n
            FROM _;
            .collections
            .indexes
            .table
            SELECT likes FROM _ WHERE meta().id = 's3'
            """,
            "--json"
        )
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(
            outcome.output == """
                {"id":"s7"}
                sign,n
                ;,600
                _default._default\t600 documents
                _default._default\tby-city
                likes
                -----
                3    

                """
        )
    }

    @Test func `the first mistake in a script ends it`() throws {
        let outcome = try script(
            "SELECT 1 AS n FROM _ LIMIT 1;\nSELECT FROM;\nSELECT 2 AS n FROM _ LIMIT 1;\n",
            "--json"
        )
        #expect(outcome.output == "{\"n\":1}\n")
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("line 2: "), "\(outcome.errors)")
        #expect(try script(".nothing\n").errors.contains("line 1: there is no command .nothing"))
        let latin1 = try script(
            Data("SELECT 1 FROM _ LIMIT 1;\n.param city=Orl".utf8) + [0xE9] + Data("ans\n".utf8)
        )
        #expect(latin1.status == 64)
        #expect(latin1.errors.contains("line 2: it is not UTF-8"), "\(latin1.errors)")
    }

    @Test func `a line of a script may have several queries, and end as on Windows`() throws {
        let outcome = try script(
            "SELECT ';;' AS a FROM _ LIMIT 1;; SELECT 2 AS b\r\n FROM _ LIMIT 1 ; \r\n.csv\r\nSELECT 3 AS c FROM _ LIMIT 1;SELECT\r\n4 AS d FROM _ LIMIT 1",
            "--json"
        )
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output == "{\"a\":\";;\"}\n{\"b\":2}\nc\n3\nd\n4\n")
    }

    @Test func `at a terminal words are completed, mistakes are shown, and the history is kept`() throws {
        let state = ["XDG_STATE_HOME": "\(folder.path)/state", "TERM": "xterm"]
        let terminal = try Terminal(folder, ["sql", "db", "--json"], environment: state)
        try terminal.wait(for: "loveseat> ")
        try terminal.type("SEL\tmeta().id FROM _ WHERE ci\t = 'Paris';\n")
        try terminal.wait(for: "{\"id\":\"s7\"}")
        try terminal.type("SELECT 'ä日😀' AS x FROM _ LIMIT 1;\n")
        try terminal.wait(for: "{\"x\":\"ä日😀\"}")
        try terminal.type(".ind\t\n")
        try terminal.wait(for: "by-city")
        try terminal.type("SELECT FROM;\n")
        try terminal.wait(for: "Syntax error")
        try terminal.wait(for: "loveseat> ")
        try terminal.type("SELECT COUNT(*) AS n\n")
        try terminal.wait(for: "...> ")
        try terminal.type("FROM _;\n")
        try terminal.wait(for: "{\"n\":600}")
        try terminal.type(".quit\n")
        #expect(try terminal.end() == 0)
        let file = "\(folder.path)/state/loveseat/queries"
        #expect(try String(contentsOfFile: file, encoding: .utf8).contains("COUNT"))
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)

        let next = try Terminal(folder, ["sql", "db", "--json"], environment: state)
        try next.wait(for: "loveseat> ")
        try next.type("\u{1B}[A\u{1B}[A\n")
        try next.wait(for: "{\"n\":600}")
        // A Ctrl-D before the line is edited is a character of it, which Ctrl-U takes away.
        #expect(try next.end(pressing: "\u{15}\u{4}") == 0)
    }

    @Test func `an interrupt ends a query that runs, and the prompt stays`() throws {
        let terminal = try Terminal(
            folder,
            ["sql", "db", "--json"],
            environment: ["XDG_STATE_HOME": "\(folder.path)/state"]
        )
        try terminal.wait(for: "loveseat> ")
        // Hours of work.
        let query =
            "SELECT COUNT(*) AS n FROM _ a JOIN _ b ON b.likes >= 0 JOIN _ c ON c.likes >= 0 JOIN _ d ON d.likes >= 0;\n"
        // An interrupt that comes before the query runs empties the line, and the query has to be typed again.
        var isInterrupted = false
        for _ in 0..<50 where !isInterrupted {
            try terminal.type(query)
            try terminal.wait(for: "d.likes >= 0;")
            try terminal.interrupt()
            isInterrupted = try terminal.wait(for: "interrupted", atMost: .seconds(1))
        }
        #expect(isInterrupted)
        // A second interrupt, if it took long, empties the line once more.
        var isAnswered = false
        for _ in 0..<20 where !isAnswered {
            try terminal.type("SELECT COUNT(*) AS n FROM _;\n")
            isAnswered = try terminal.wait(for: "{\"n\":600}", atMost: .seconds(3))
        }
        #expect(isAnswered)
        try terminal.type(".quit\n")
        #expect(try terminal.end() == 0)
    }
}
