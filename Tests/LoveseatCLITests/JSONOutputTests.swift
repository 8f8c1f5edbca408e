import Foundation
import LoveseatTesting
import Testing

/// What commands print with `--json`.
struct JSONOutputTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    @Test func `what a command has created or removed is printed as one JSON object`() throws {
        func object(_ text: String) throws -> [String: Any] {
            try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        }
        let created = try object(folder.run("create", "a", "--collections", "x.y", "--json").output)
        #expect(created["isNew"] as? Bool == true)
        #expect(created["collections"] as? [String] == ["x.y"])
        #expect((created["path"] as? String)?.hasSuffix("/a.loveseat") == true)
        let more = try object(folder.run("create", "a", "--collections", "x.y,x.z", "--json").output)
        #expect(more["isNew"] as? Bool == false)
        #expect(more["collections"] as? [String] == ["x.z"])
        for id in ["d", "e"] { try folder.run("put", "a", id, "{}") }
        try folder.run("rm", "a", "d")
        let export = try folder.run("export", "a", "--json")
        #expect(export.lines.first == "{\"_id\":\"e\"}")
        let numbers = try object(export.errors)
        #expect(["documents", "deleted", "conflicts"].map { numbers[$0] as? Int } == [1, 1, 0])
        let failed = try folder.run("export", "none", "--json")
        #expect(failed.status == 66)
        #expect(failed.output.isEmpty)
        let failure = try object(failed.errors.split(separator: "\n").first.map(String.init) ?? "")
        #expect(failure["documents"] as? Int == 0)
        #expect(failure["exitCode"] as? Int == 66)
        #expect((failure["error"] as? String)?.contains("there is no database none") == true)
        let compacted = try folder.run("compact", "a", "--tombstones", "0s", "--json")
        let report = try object(compacted.output)
        #expect(compacted.errors.isEmpty)
        #expect(report["tombstones"] as? Int == 1)
        #expect(report["notPushed"] as? [String] == [])
        for size in ["before", "after"] { #expect((report[size] as? [String: Any])?["blobs"] as? Int == 0) }
    }

    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
    func `an export that cannot be written does not print the object of one that succeeded`() throws {
        try folder.run("put", "a", "d", "{}")
        let process = Process()
        process.executableURL = try CommandLineFolder.program
        process.arguments = ["export", "\(folder.path)/a", "--json"]
        process.standardOutput = FileHandle(forWritingAtPath: "/dev/full")
        let errors = Pipe()
        process.standardError = errors
        try Lifeline.run(process)
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 74)
        let lines = text.split(separator: "\n").map { Data($0.utf8) }
        #expect(lines.count == 2, "\(text)")
        let object = try JSONSerialization.jsonObject(with: try #require(lines.first)) as? [String: Any]
        #expect(object?["exitCode"] as? Int == 74)
        #expect((object?["error"] as? String)?.hasPrefix("cannot write") == true)
    }

    @Test func `what exists already is not created again, and only what is missing is`() throws {
        #expect(try folder.run("create", "a", "--collections", "x.y").status == 0)
        let again = try folder.run("create", "a", "--collections", "x.y")
        #expect(again.status == 73)
        #expect(again.errors.contains("a exists already, with this collection"), "\(again.errors)")
        let more = try folder.run("create", "a", "--collections", "x.y,x.z")
        #expect(more.status == 0)
        #expect(more.errors.contains("created the collection x.z in a"), "\(more.errors)")
    }

    @Test func `a kind of index has one name, and exports of earlier versions are read`() throws {
        try folder.run("create", "a")
        try folder.run("index", "create", "a", "words", "text", "--full-text")
        let export = try folder.run("export", "a").output
        #expect(export.contains("\"kind\":\"full-text\""), "\(export)")
        #expect(try folder.run("index", "list", "a", "--json").output.contains("\"kind\":\"full-text\""))
        try folder.write(export.replacing("full-text", with: "fullText"), to: "earlier.jsonl")
        try folder.write(export, to: "export.jsonl")
        for (copy, file) in [("b", "earlier.jsonl"), ("c", "export.jsonl")] {
            #expect(try folder.run("import", copy, file).status == 0)
            #expect(try folder.run("export", copy).output == export)
        }
    }
}
