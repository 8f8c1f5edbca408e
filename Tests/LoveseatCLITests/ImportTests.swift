import Foundation
import LoveseatModel
import LoveseatTesting
import Testing

/// `put`, `import` and `export` as a person uses them.
struct ImportTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    @Test func `documents without IDs get new ones, and replace nothing`() throws {
        try folder.run("put", "db", "1", "{\"old\":true}")
        try folder.write("{\"n\":1}\n{\"n\":2}\n", to: "in.jsonl")
        for _ in 0..<2 { #expect(try folder.run("import", "db", "in.jsonl").status == 0) }
        #expect(try folder.run("ls", "db").lines.count == 5)
        #expect(try folder.run("get", "db", "1", "--raw").lines == ["{\"old\":true}"])
    }

    @Test func `a document without the property that is to be its ID is named, with what it has instead`()
        throws
    {
        try folder.write(#"{"code":"a"}"# + "\n" + #"{"Code":"b","n":1}"#, to: "in")
        let lacking = try folder.run("import", "db", "in", "--id-field", "code")
        #expect(lacking.status == 65)
        for part in ["in, line 2, column 1: ", #"no property "code""#, #"it has "Code", "n""#] {
            #expect(lacking.errors.contains(part), "\(lacking.errors)")
        }
        try folder.write(#"[{"code":["a"]}]"#, to: "list")
        let other = try folder.run("import", "db", "list", "--id-field", "code")
        for part in ["list, line 1, column 2: ", #"its "code" is an array"#] {
            #expect(other.errors.contains(part), "\(other.errors)")
        }
    }

    @Test func `the ID field may be _id`() throws {
        try folder.write("{\"_id\":\"a\",\"n\":1}", to: "in.jsonl")
        #expect(try folder.run("import", "db", "in.jsonl", "--id-field", "_id").status == 0)
        #expect(try folder.run("get", "db", "a", "--raw").lines == ["{\"n\":1}"])
    }

    @Test func `a document names its collection, and keeps the property that is its ID`() throws {
        let lines = [
            #"{"_id":"a","_collection":"travel.trips","z":1.0,"b":[1, {"c":"é\n"}]}"#,
            #"{"id":"b","_collection":"other"}"#,
            #"{"_id":[1],"id":7,"n":18446744073709551616}"#, #"{"_collection":3,"_id":12}"#,
        ]
        try folder.write(lines.joined(separator: "\r\n"), to: "in.jsonl")
        #expect(try folder.run("import", "db", "in.jsonl").status == 0)
        let trip = try folder.run("get", "db", "a", "--raw", "--collection", "travel.trips")
        #expect(trip.lines == [#"{"b":[1,{"c":"é\n"}],"z":1.0}"#])
        #expect(try folder.run("get", "db", "b", "--raw", "--collection", "other").lines == [#"{"id":"b"}"#])
        #expect(try folder.run("get", "db", "7", "--raw").lines == [#"{"id":7,"n":18446744073709551616}"#])
        #expect(try folder.run("get", "db", "12", "--raw").lines == ["{}"])
    }

    @Test func `a collection that is not there is not exported in silence`() throws {
        try folder.run("put", "db", "d", "{}")
        #expect(try folder.run("export", "db", "-c", "no.such").status == 66)
        #expect(try folder.run("export", "db", "-c", "_default").lines == ["{\"_id\":\"d\"}"])
    }

    @Test func `an export carries the content of blobs`() throws {
        let content = String(repeating: "lorem ipsum ", count: 50_000)
        try folder.write(content, to: "text")
        try folder.write("", to: "empty")
        try folder.run("blob", "put", "db", "d", "file", "text", "--type", "text/plain")
        try folder.run("blob", "put", "db", "d", "none", "empty")
        try folder.run("blob", "put", "db", "e", "same", "text")
        let export = try folder.run("export", "db").output
        try folder.write(export, to: "all.jsonl")
        #expect(try folder.run("import", "copy", "all.jsonl").status == 0)
        #expect(try folder.run("export", "copy").output == export)
        #expect(try folder.run("blob", "get", "copy", "e", "same").output == content)
        #expect(try folder.run("blob", "get", "copy", "d", "none").output.isEmpty)
        #expect(try folder.run("check", "copy").status == 0)
        #expect(try folder.run("export", "db", "--no-blobs").lines.count == 2)
        try folder.write(try folder.run("export", "db", "--no-blobs").output, to: "none.jsonl")
        let refused = try folder.run("import", "third", "none.jsonl")
        #expect(refused.status == 65)
        #expect(refused.errors.contains("blob"))
    }

    @Test func `the deepest document that is saved survives an export and an import`() throws {
        let deep = "{\"a\":" + String(repeating: "[", count: 127) + String(repeating: "]", count: 127) + "}"
        #expect(try folder.run("put", "db", "d", deep).status == 0)
        let export = try folder.run("export", "db").output
        try folder.write("[" + export + "]", to: "all.json")
        #expect(try folder.run("import", "copy", "all.json").status == 0)
        #expect(try folder.run("export", "copy").output == export)
        #expect(try folder.run("check", "copy").status == 0)
        let deeper = "{\"a\":[" + deep.dropFirst(5).dropLast() + "]}"
        #expect(try folder.run("put", "db", "e", deeper).status == 65)
    }

    @Test func `bytes that are not UTF-8, repeated keys and infinite numbers are refused`() throws {
        let bad = Data("{\"_id\":\"d\",\"a\":\"".utf8) + [0xFF] + Data("\"}".utf8)
        try bad.write(to: URL(filePath: "\(folder.path)/bad.json"))
        #expect(try folder.run("import", "db", "bad.json").status == 65)
        let program = try CommandLineFolder.program.path
        let shell = Process()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.currentDirectoryURL = URL(filePath: folder.path)
        shell.arguments = [
            "-c",
            "'\(program)' put db d < bad.json; a=$?; '\(program)' put db d \"$(cat bad.json)\"; exit $((a * 100 + $?))",
        ]
        shell.standardError = FileHandle.nullDevice
        try Lifeline.run(shell)
        shell.waitUntilExit()
        #expect(shell.terminationStatus == Int32((65 * 100 + 65) & 255))
        #expect(try folder.run("put", "db", "d", "{\"a\":1,\"a\":2}").status == 65)
        try folder.write("[{\"_id\":\"d\",\"a\":1,\"a\":2}]", to: "twice.json")
        #expect(try folder.run("import", "db", "twice.json").status == 65)
        #expect(try folder.run("put", "db", "d", "{\"a\":1e400}").status == 65)
        #expect(try folder.run("ls", "db").lines.isEmpty)
    }

    @Test func `a document that is too large is refused with its size and the limit`() throws {
        try folder.write(
            "{\"_id\":\"big\",\"t\":\"\(String(repeating: "x", count: 20 << 20))\"}",
            to: "big.jsonl"
        )
        let outcome = try folder.run("import", "db", "big.jsonl")
        #expect(outcome.status == 65)
        #expect(outcome.errors.contains("at most 20971520"))
    }

    private func counts(_ documents: Int, unchanged: Int = 0) -> String {
        #"{"documents":\#(documents),"replaced":0,"unchanged":\#(unchanged)}"#
    }

    @Test func `documents that did not change get no revision, whatever their text`() throws {
        try folder.write(
            "{\"_id\":\"a\",\"n\":1,\"in\":{\"x\":1.5,\"y\":[1,2]}}\n{\"_id\":\"b\",\"n\":2}\n{\"_id\":\"c\",\"n\":3}\n",
            to: "first"
        )
        try folder.write(
            "{\"in\":{\"y\":[1,2],\"x\":1.50},\"n\":1,\"_id\":\"a\"}\n{\"n\":2,\"_id\":\"b\"}\n{\"_id\":\"c\",\"n\":4}\n",
            to: "second"
        )
        func generations() throws -> [String] {
            try folder.run("ls", "db", "-l").lines.map {
                String($0.split(separator: "\t")[1].prefix { $0 != "-" })
            }
        }
        #expect(try folder.run("import", "db", "first", "--json").lines == [counts(3)])
        let again = try folder.run("import", "db", "first")
        #expect(again.errors.contains("3 documents, 3 of them unchanged"))
        #expect(try generations() == ["1", "1", "1"])
        #expect(try folder.run("import", "db", "second", "--json").lines == [counts(3, unchanged: 2)])
        #expect(try generations() == ["1", "1", "2"])
        try folder.run("rm", "db", "b")
        #expect(try folder.run("import", "db", "first", "--atomic").status == 0)
        #expect(try folder.run("get", "db", "b", "--raw").lines == [#"{"n":2}"#])
    }

    @Test(arguments: [
        "\u{FEFF}{\"_id\":\"a\"}\r\n{\"_id\":\"b\"}\r\n", "\u{FEFF}[{\"_id\":\"a\"},{\"_id\":\"b\"}]",
        "{\n  \"_id\": \"a\"\n}\n{\n  \"_id\": \"b\"\n}\n", "{\"_id\":\"a\"}{\"_id\":\"b\"}",
        "\n\n {\"_id\":\"a\"\n} {\n\"_id\"\n:\"b\"}  \n\n",
        "{\"_id\":\"a\",\"s\":\"}{\\\"[\\\\\"}\r\n\r\n{\"_id\":\"b\",\"x\":[{\n},[]]}",
    ]) func `documents are read on lines, over lines, in arrays and after a byte order mark`(_ text: String)
        throws
    {
        try folder.write(text, to: "in")
        let outcome = try folder.run("import", "db", "in")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try folder.run("ls", "db").lines == ["a", "b"])
    }

    @Test(arguments: [
        ("{\"_id\":\"d\",\"a\":1,\"a\":2}\n{\"_id\":\"e\"}\n", "line 1, column", "at byte"),
        ("{\"_id\":\"d\",\"s\":\"\\ud83d\"}\n{\"_id\":\"e\"}\n", "line 1, column", "at byte"),
        ("{\"_id\":\"d\"}\n{\"_id\":\"e\",\n\"s\":\"\n\"}\n{\"_id\":\"f\"}", "line 3, column", "at byte"),
        ("{\"_id\":\"d\"}\n{\"_id\":\"e\",\n\"s\":tru}\n", "line 3, column", "at byte"),
        ("{\"_id\":\"d\"},\n{\"_id\":\"e\"}\n", "line 1, column", "at byte"),
        ("{\"_id\":\"d\"", "line 1, column", "at byte"),
        ("{\"list\": [\n{\"_id\":\"a\"}\n]}\n", "--array list", "--keyed"),
        ("{\"AK\":{\"name\":\"Alaska\"},\"AL\":{\"name\":\"Alabama\"}}", "--keyed", "--array"),
        (
            "{\"rows\":[{\"id\":\"a\",\"key\":\"a\",\"value\":{\"rev\":\"1-a\"}}]}", "--from-couchdb",
            "--array"
        ),
        ("{\"docs\":[{\"_id\":\"a\",\"_rev\":\"1-a\"}]}", "--from-couchdb", "--array"),
        ("[{\"_id\":\"a\",\"_rev\":\"1-a\"}]", "--from-couchdb", "--array"),
        // What couchbackup, `jq -c .rows[].doc` and feeds of changes print.
        (
            "[{\"_id\":\"a\",\"_rev\":\"1-a\"}]\n[{\"_id\":\"b\",\"_rev\":\"1-a\"}]\n", "--from-couchdb",
            "byte"
        ),
        ("{\"_id\":\"a\",\"_rev\":\"1-a\"}\n", "--from-couchdb", "byte"),
        ("{\"seq\":1,\"id\":\"a\",\"changes\":[{\"rev\":\"1-a\"}]}\n", "--from-couchdb", "byte"),
        (
            "{\"results\":[{\"seq\":1,\"id\":\"a\",\"changes\":[{\"rev\":\"1-a\"}]}],\"last_seq\":1}",
            "list of changes", "--array"
        ),
        ("code,name\nAK,Alaska\n", "CSV", "byte"), ("\"code\";\"name\"\n", "CSV", "byte"),
    ]) func `a file of another shape is refused with what helps`(
        _ text: String,
        _ wanted: String,
        _ unwanted: String
    )
        throws
    {
        try folder.write(text, to: "in")
        let outcome = try folder.run("import", "db", "in")
        #expect(outcome.status == 65 || outcome.status == 64, "\(outcome.status)")
        #expect(outcome.errors.contains(wanted), "\(outcome.errors)")
        #expect(!outcome.errors.contains(unwanted), "\(outcome.errors)")
    }

    @Test(arguments: [["--atomic"], []])
    func `documents that a later line replaces are counted, and are not an edit of somebody else's`(
        _ options: [String]
    )
        throws
    {
        try folder.run("put", "db", "old", "{}")
        let lines = (0..<2_500).map { #"{"_id":"d\#($0 % 1200)","n":\#($0)}"# } + [#"{"_id":"old","n":1}"#]
        try folder.write(lines.joined(separator: "\n"), to: "in")
        let made = try folder.run(["import", "db", "in"] + options)
        #expect(
            made.errors.hasSuffix("2501 documents, 1300 of them replaced by later ones with the same ID\n"),
            "\(made.errors)"
        )
        let again = try folder.run(["import", "db", "in", "--json"] + options)
        #expect(again.lines.first.map { $0.contains(#""documents":2501"#) } == true)
        #expect(try folder.run("get", "db", "d0", "--raw").lines == [#"{"n":2400}"#])
        #expect(try folder.run("ls", "db").lines.count == 1_201)
    }

    @Test func `an object of documents is imported by its keys`() throws {
        try folder.write(
            "{\"AK\":{\"name\":\"Alaska\",\"id\":7},\"AL\":{\"_id\":\"AL\",\"n\":1}}",
            to: "states"
        )
        #expect(try folder.run("import", "db", "states", "--keyed").status == 0)
        #expect(try folder.run("get", "db", "AK", "--raw").lines == [#"{"id":7,"name":"Alaska"}"#])
        #expect(try folder.run("get", "db", "AL", "--raw").lines == [#"{"n":1}"#])
        try folder.write("{\"states\":{\"AZ\":{}},\"x\":1}", to: "inner")
        #expect(try folder.run("import", "db", "inner", "--keyed", "--array", "states").status == 0)
        try folder.write("{\"AK\":{\"_id\":\"other\"}}", to: "wrong")
        #expect(try folder.run("import", "db", "wrong", "--keyed").errors.contains("_id"))
        #expect(try folder.run("import", "db", "states", "--keyed", "--id-field", "id").status == 64)
        #expect(try folder.run("ls", "db").lines == ["AK", "AL", "AZ"])
    }

    @Test func `folders of databases are named`() throws {
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/a.cblite2",
            withIntermediateDirectories: true
        )
        try folder.write("SQLite format 3", to: "a.cblite2/db.sqlite3")
        #expect(try folder.run("import", "db", "a.cblite2").errors.contains("Couchbase Lite"))
        #expect(try folder.run("import", "db", "a.cblite2/db.sqlite3").errors.contains("SQLite"))
        try folder.run("create", "own")
        #expect(try folder.run("import", "db", "own.loveseat").errors.contains("loveseat export"))
    }

    @Test(arguments: PropertySeeds.of("IMPORT", 6), [false, true])
    func `importing a file again makes no revision, also if IDs come several times in it`(
        _ seed: UInt64,
        _ isPiped: Bool
    ) throws {
        var random = SeededGenerator(seed: seed)
        let collections = ["", #","_collection":"a.b""#]
        let ids = random.pick([3, 700, 2_000])
        var last: [String: String] = [:]
        let lines = (0..<2_500).map { _ in
            let (collection, id) = (random.pick(collections), random.int(0...ids))
            let body = #""n":\#(random.int(0...2)),"é":[{}]"#
            last["\(collection)\(id)"] = body
            return #"{"_id":"d\#(id)"\#(collection),\#(body)}"#
        }
        try folder.write(lines.joined(separator: "\n"), to: "in")
        let options = random.pick([[], ["--atomic"]])
        func importAll() throws -> String {
            let outcome =
                isPiped
                ? try folder.run(
                    ["import", "db", "-", "--json"] + options,
                    input: Data(lines.joined(separator: "\n").utf8)
                )
                : try folder.run(["import", "db", "in", "--json"] + options)
            #expect(outcome.status == 0, "\(outcome.errors)")
            return outcome.lines.first ?? ""
        }
        let first = try importAll()
        #expect(first.contains(#""documents":2500"#), "\(first)")
        // A later one with the same properties is unchanged.
        let counts = try JSONDecoder().decode([String: Int].self, from: Data(first.utf8))
        #expect((counts["replaced"] ?? 0) + (counts["unchanged"] ?? 0) == 2_500 - last.count, "\(first)")
        func state() throws -> [[String]] {
            try [["ls", "db", "-l"], ["ls", "db", "-l", "-c", "a.b"], ["export", "db"]].map {
                try folder.run($0).lines
            }
        }
        let before = try state()
        for _ in 0..<2 {
            let again = try importAll()
            #expect(again.contains(#""documents":2500"#), "\(again)")
            #expect(again.contains(#""unchanged""#), "\(again)")
            #expect(try state() == before)
        }
        #expect(before[2].count == last.count)
        #expect(
            before[2].allSatisfy { line in
                last.contains { key, body in
                    let id = key.drop { !$0.isNumber }
                    return line.contains(#""_id":"d\#(id)""#) && line.contains(body.split(separator: ",")[0])
                }
            }
        )
    }

    @Test func `what was read before an error replaces others, too, unless all is undone`() throws {
        try folder.run("put", "db", "a", #"{"n":0}"#)
        let lines = (0..<1_000).map { $0 == 5 ? #"{"_id":"a","n":1}"# : #"{"_id":"d\#($0)","n":1}"# }
        try folder.write((lines + ["{"]).joined(separator: "\n"), to: "in")
        #expect(try folder.run("import", "db", "in", "--atomic").status != 0)
        #expect(try folder.run("get", "db", "a", "--raw").lines == [#"{"n":0}"#])
        let plain = try folder.run("import", "db", "in")
        #expect(plain.errors.contains("1000 documents before it were saved"), "\(plain.errors)")
        #expect(try folder.run("get", "db", "a", "--raw").lines == [#"{"n":1}"#])
    }

    @Test func `that there is no such array is said, however deep the file is`() throws {
        let deep = String(repeating: "[", count: 400) + String(repeating: "]", count: 400)
        for (text, options, wanted) in [
            (#"{"docs":[{"_id":"a"}]}"#, ["--array", "none"], #"no array "none""#),
            (#"{"docs":[{"_id":"a","x":\#(deep)}]}"#, ["--array", "none"], #"no array "none""#),
            (#"{"deep":\#(deep),"docs":[{"_id":"a"}]}"#, ["--array", "none"], #"no array "none""#),
            (#"{"docs":{"a":\#(deep)}}"#, ["--array", "none", "--keyed"], #"no object "none""#),
            (
                #"{"docs":[{"_id":"a"},{"_id":"b","x":\#(deep)}]}"#, ["--array", "docs"],
                "line 1, column 22: it has more than 128"
            ),
            ("{\"_id\":\"a\"}\n{\"_id\":\"b\"}", ["--array", "none"], #"array "none""#),
        ] {
            try folder.write(text, to: "in")
            let outcome = try folder.run(["import", "db", "in"] + options)
            #expect(outcome.status != 0, "\(outcome.errors)")
            #expect(outcome.errors.contains(wanted), "\(outcome.errors)")
        }
        try folder.write(#"{"deep":\#(deep),"docs":[{"_id":"a"}]}"#, to: "in")
        #expect(try folder.run("import", "db", "in", "--array", "docs").status == 0)
        #expect(try folder.run("ls", "db").lines == ["a"])
    }
}
