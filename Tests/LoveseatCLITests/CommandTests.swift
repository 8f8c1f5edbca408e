import Foundation
import Testing

// Group of this target in ./test: busy

/// The command line as a person uses it.
struct CommandTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    @Test func `documents are put, changed, read, listed, removed and purged`() throws {
        #expect(try folder.run("put", "db", "tower", "{\"likes\":3}").lines.first?.hasPrefix("1-") == true)
        try folder.run("set", "db", "tower", "likes=4", "address.city=Paris", "tags[0]=high", "old=true")
        try folder.run("set", "db", "tower", "old=", "tags[1]=\"iron\"")
        let tower = "{\"address\":{\"city\":\"Paris\"},\"likes\":4,\"tags\":[\"high\",\"iron\"]}"
        #expect(try folder.run("get", "db", "tower", "--raw").lines == [tower])
        let revisions = try folder.run("revs", "db", "tower").lines
        #expect(revisions.count == 3)
        #expect(revisions[0].hasPrefix("3-"))
        #expect(revisions[0].hasSuffix("current leaf"))
        try folder.run("put", "db", "bridge", "{}", "--collection", "travel.sights")
        #expect(try folder.run("ls", "db").lines == ["tower"])
        #expect(try folder.run("ls", "db", "-c", "travel.sights").lines == ["bridge"])
        #expect(try folder.run("info", "db", "--json").output.contains("\"travel.sights\":1"))
        #expect(try folder.run("rm", "db", "tower").status == 0)
        #expect(try folder.run("get", "db", "tower").status == 66)
        #expect(try folder.run("changes", "db").lines.last?.hasSuffix("deleted") == true)
        #expect(try folder.run("purge", "db", "tower").status == 0)
        #expect(try folder.run("changes", "db").lines.isEmpty)
        #expect(try folder.run("check", "db").status == 0)
    }

    @Test(arguments: [
        ("[{\"k\":\"a\",\"n\":1},{\"k\":\"b\"}]", ["--id-field", "k"]),
        ("{\"k\":\"a\",\"n\":1}\n\n{\"k\":\"b\"}\n", ["--id-field", "k"]),
        ("{\"rows\":[{\"k\":\"a\",\"n\":1},{\"k\":\"b\"}]}", ["--id-field", "k", "--array", "rows"]),
    ])
    func `each form of JSON is imported`(_ text: String, _ arguments: [String]) throws {
        try folder.write(text, to: "in.json")
        let (process, _, _) = try folder.start(["import", "db", "in.json"] + arguments)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        #expect(
            try folder.run("export", "db").lines == [
                "{\"_id\":\"a\",\"k\":\"a\",\"n\":1}", "{\"_id\":\"b\",\"k\":\"b\"}",
            ]
        )
    }

    @Test func `an export is imported as it was, collections included`() throws {
        try folder.run("put", "db", "a", "{\"n\":1}")
        try folder.run("put", "db", "b", "{}", "-c", "x.y")
        let export = try folder.run("export", "db").output
        try folder.write(export, to: "all.jsonl")
        try folder.run("import", "copy", "all.jsonl")
        #expect(try folder.run("export", "copy").output == export)
    }

    @Test func `mistakes end with their code and one line that says what to do`() throws {
        try folder.run("create", "db")
        try folder.write("{\"a\":1}\n{\"a\":", to: "cut.jsonl")
        try folder.write("{\"_x\":1}\n", to: "under.jsonl")
        try folder.write("{\"_id\":\"a\",\"_rev\":\"1-a\"}\n", to: "rev.jsonl")
        try folder.write("{\"_collection\":\"a.b.c\"}\n", to: "collection.jsonl")
        let cases: [(Int32, [String])] = [
            (73, ["create", "db"]), (66, ["get", "none", "a"]), (66, ["get", "db", "a"]),
            (65, ["put", "db", "a", "nope"]),
            (65, ["put", "db", "_a", "{}"]), (65, ["import", "db", "cut.jsonl"]),
            (66, ["import", "db", "none.json"]),
            (64, ["get", "db", "a", "--colour"]), (64, ["ls", "db", "-c", "a.b.c"]),
            (66, ["ls", "db", "-c", "a.b"]),
            (64, ["set", "db", "a", "x"]), (64, ["sync", "db", "ftp://127.0.0.1/db"]),
            (69, ["sync", "db", "ws://127.0.0.1:1/db"]), (69, ["sync", "db", "http://127.0.0.1:1/db"]),
            (64, ["sync", "db", "ws://127.0.0.1:1/db", "--user", "ana"]),
            (65, ["put", "db", "a", "{\"_x\":1}"]), (65, ["blob", "put", "db", "a", "_x", "cut.jsonl"]),
            (65, ["import", "db", "under.jsonl"]), (65, ["import", "db", "rev.jsonl"]),
            (65, ["import", "db", "under.jsonl", "--array", "none"]),
            (65, ["import", "db", "collection.jsonl"]),
            (66, ["import", "db", "."]), (66, ["blob", "put", "db", "a", "b", "none"]),
            (66, ["blob", "put", "db", "a", "b", "."]),
            (66, ["query", "db", "SELECT 1 FROM no.such"]),
        ]
        for (status, arguments) in cases {
            let (process, output, errors) = try folder.start(arguments)
            let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            _ = output.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            #expect(process.terminationStatus == status, "\(arguments) says \(text)")
            #expect(!text.isEmpty)
        }
        #expect(try folder.run("ls", "db").lines.isEmpty)
    }

    @Test(arguments: ["plain", "file/new"])
    func `a database is not created in the place of a file, which is named`(_ database: String) throws {
        try folder.write("", to: "plain.loveseat")
        try folder.write("", to: "file")
        let file = database == "plain" ? "plain.loveseat" : "file"
        for arguments in [["create", database], ["put", database, "a", "{}"]] {
            let outcome = try folder.run(arguments)
            #expect(outcome.status == 73, "\(arguments)")
            #expect(outcome.errors.contains("/\(file) is there already"), "\(outcome.errors)")
        }
    }

    @Test func `an address that is not one is a wrong option`() throws {
        let identities = ["LOVESEAT_IDENTITIES": "\(folder.path)/identities"]
        let outcome = try folder.run(
            "identity",
            "create",
            "kiosk",
            "--ip",
            "1.2.3.999",
            environment: identities
        )
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("\"1.2.3.999\" is not an IP address"))
    }

    @Test func `blobs go into documents and come out again`() throws {
        let content = String(repeating: "lorem ipsum ", count: 50_000)
        try folder.write(content, to: "text")
        #expect(try folder.run("blob", "put", "db", "d", "file", "text", "--type", "text/plain").status == 0)
        #expect(try folder.run("blob", "get", "db", "d", "file").output == content)
        try folder.run("blob", "get", "db", "d", "file", "out")
        #expect(try String(contentsOfFile: "\(folder.path)/out", encoding: .utf8) == content)
        #expect(try folder.run("blob", "get", "db", "d", "none").status == 66)
    }
}
