import Foundation
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
        let compacted = try folder.run("compact", "a", "--tombstones", "0s", "--json")
        let report = try object(compacted.output)
        #expect(compacted.errors.isEmpty)
        #expect(report["tombstones"] as? Int == 1)
        #expect(report["notPushed"] as? [String] == [])
        for size in ["before", "after"] { #expect((report[size] as? [String: Any])?["blobs"] as? Int == 0) }
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
