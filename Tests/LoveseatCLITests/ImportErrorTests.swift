import Foundation
import LoveseatModel
import LoveseatTesting
import Testing

/// Imports that fail: what they say, and what is left of them.
struct ImportErrorTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    @Test func `an import that is aborted says how many it kept, and an atomic one keeps none`() throws {
        let lines = (0..<1_500).map { "{\"_id\":\"d\($0)\"}\n" }.joined()
        try folder.write(lines + "{\"_id\":\"_bad\"}\n", to: "in.jsonl")
        let plain = try folder.run("import", "db", "in.jsonl", "--json")
        #expect(plain.status == 65)
        #expect(plain.errors.contains("line 1501"))
        #expect(plain.errors.contains("1000 documents before it were saved"))
        let report = try JSONValue(parsing: plain.output)
        #expect(["documents", "unchanged", "replaced"].map { report[$0]?.int } == [1_000, 0, 0])
        #expect(report["error"]?.string?.contains("line 1501") == true)
        #expect(report["exitCode"]?.int == 65)
        #expect(try folder.run("ls", "db").lines.count == 1_000)
        let atomic = try folder.run("import", "other", "in.jsonl", "--atomic")
        #expect(atomic.status == 65)
        #expect(atomic.errors.contains("nothing was saved"))
        #expect(try folder.run("ls", "other").lines.isEmpty)
        // One that cannot read its file prints the same members.
        let missing = try folder.run("import", "db", "none", "--json")
        let absence = try JSONValue(parsing: missing.output)
        let numbers = ["documents", "unchanged", "replaced", "exitCode"].map { absence[$0]?.int }
        #expect(numbers == [0, 0, 0, 66])
    }

    @Test(arguments: [[], ["--atomic"], ["--json"], ["-c", "a.b"]])
    func `a failed import leaves nothing of a new database, and does not say that it was created`(
        _ options: [String]
    ) throws {
        try folder.write(#"{"_collection":"c.d","_documents":0}"# + "\n{\"_id\":\"_bad\"}", to: "in")
        let outcome = try folder.run(["import", "db", "in"] + options)
        #expect(outcome.status != 0)
        #expect(!outcome.errors.contains("created the"), "\(outcome.errors)")
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/db.loveseat"))
        try folder.write(#"{"_id":"good"}"#, to: "in")
        let made = try folder.run(["import", "db", "in"] + options)
        #expect(made.errors.contains("created the database db"), "\(made.errors)")
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `an atomic import that is interrupted leaves nothing of a new database`(_ signal: Int32) throws {
        try folder.write((0..<500_000).map { "{\"_id\":\"d\($0)\"}\n" }.joined(), to: "in.jsonl")
        let (process, output, errors) = try folder.start(["import", "new", "in.jsonl", "--atomic", "--json"])
        // The first line of the progress comes with the first document.
        let begun = try errors.text { $0.contains("importing") }
        #expect(begun.contains("importing"))
        kill(process.processIdentifier, signal)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let rest = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit)
        #expect(process.terminationStatus == 128 + signal)
        #expect(try JSONValue(parsing: text)["exitCode"]?.int == 128 + Int(signal))
        #expect(rest.contains("interrupted; nothing was saved"), "\(rest)")
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/new.loveseat"))
    }

    @Test(arguments: [(SIGINT, true), (SIGTERM, true), (SIGINT, false)])
    func `an import that is interrupted while it waits for more of a pipe ends as one of a file does`(
        _ signal: Int32,
        _ isAtomic: Bool
    ) throws {
        let process = Process()
        process.executableURL = try CommandLineFolder.program
        process.arguments = ["import", "new", "-", "--json"] + (isAtomic ? ["--atomic"] : [])
        process.currentDirectoryURL = URL(filePath: folder.path)
        let (input, output, errors) = (Pipe(), Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = errors
        try Lifeline.run(process)
        let lines = (0..<1_500).map { "{\"_id\":\"d\($0)\"}\n" }.joined()
        try input.fileHandleForWriting.write(contentsOf: Data(lines.utf8))
        // The first line of the progress comes with the first thousand documents. The rest of the pipe never comes.
        _ = try errors.text { $0.contains("importing") }
        kill(process.processIdentifier, signal)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let rest = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        withExtendedLifetime(input) {}
        #expect(process.terminationReason == .exit)
        #expect(process.terminationStatus == 128 + signal)
        #expect(try JSONValue(parsing: text)["documents"]?.int == (isAtomic ? 0 : 1_000))
        let outcome = isAtomic ? "nothing was saved" : "1000 documents before it were saved"
        #expect(rest.contains("interrupted; \(outcome)"), "\(rest)")
        #expect(FileManager.default.fileExists(atPath: "\(folder.path)/new.loveseat") != isAtomic)
    }

    @Test(arguments: [[], ["--atomic"]])
    func `a failed import leaves no empty collection that it has created`(_ options: [String]) throws {
        try folder.run("create", "db", "--collections", "old.one")
        let before = try folder.run("info", "db", "--json").output
        try folder.write(#"{"_collection":"c.d","_documents":0}"# + "\n{\"_id\":\"_bad\"}", to: "in")
        for collection in ["new.one", "old.one", "_default"] {
            let outcome = try folder.run(["import", "db", "in", "-c", collection] + options)
            #expect(outcome.status == 65)
            #expect(!outcome.errors.contains("created"), "\(outcome.errors)")
            let after = try folder.run("info", "db", "--json").output
            #expect(try JSONValue(parsing: after)["collections"] == JSONValue(parsing: before)["collections"])
        }
        let dump = try folder.run("import", "db", "--from-couchdb", "in", "-c", "new.one")
        #expect(dump.status != 0)
        #expect(try folder.run("ls", "db", "-c", "new.one").status == 66)
        // One that has got documents stays.
        let lines = (0..<1_000).map { #"{"_id":"d\#($0)"}"# } + [#"{"_id":"_bad"}"#]
        try folder.write(lines.joined(separator: "\n"), to: "in")
        let partial = try folder.run("import", "db", "in", "-c", "new.one")
        #expect(partial.errors.contains("created the collection new.one"), "\(partial.errors)")
        #expect(try folder.run("ls", "db", "-c", "new.one").lines.count == 1_000)
    }

    @Test(arguments: [
        ("{\"_id\":\"a\"}\n{\"_id\":\"b\",\"x\":tru}\n", [], 2, 19),
        ("{\"_id\":\"a\"}\n\n  {\n\"_id\":\"é\",\"x\":tru}\n", [], 4, 18),
        ("{\"_id\":\"a\"} {\"_id\":\"b\"}{\"_c\":1}", [], 1, 24), ("[{\"a\":1},\n {\"b\":}]", [], 2, 7),
        ("[{\"a\":1},\n {\"_b\":2}]", [], 2, 2), ("\n[{\"a\":1},\n 5]", [], 3, 2),
        ("{\"a\":{},\n \"b\":7}", ["--keyed"], 2, 6), ("{\"x\":[\n{\"_b\":2}]}", ["--array", "x"], 2, 1),
        ("\n{\"_id\":\"_x\"}", [], 2, 1), ("{\"_id\":\"a\"},", [], 1, 12),
        ("{\"_id\":\"a\"}\n{\"_blob\":\"none\",\"content\":\"\"}", [], 2, 1),
        (
            "\n{\"_blob\":\"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=\",\"content\":\"aaaa\"}\n{\"_id\":\"a\"}", [],
            2, 1
        ),
    ]) func `every error of an import names the line and the column, counted from 1`(
        _ text: String,
        _ options: [String],
        _ line: Int,
        _ column: Int
    ) throws {
        try folder.write(text, to: "in")
        let outcome = try folder.run(["import", "db", "in"] + options)
        #expect(outcome.status == 65)
        #expect(outcome.errors.contains("in, line \(line), column \(column): "), "\(outcome.errors)")
        #expect(!outcome.errors.contains("byte \(column)"), "\(outcome.errors)")
    }
}
