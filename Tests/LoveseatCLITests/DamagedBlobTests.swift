import Foundation
import GRDB
import Testing

/// Blobs whose file is damaged or gone.
struct DamagedBlobTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        for name in ["good", "bad", "gone"] {
            try folder.write(String(repeating: "\(name) ", count: 1_000), to: name)
            try folder.run("blob", "put", "db", name, "file", name)
        }
        try folder.run("put", "db", "last", "{}")
        let root = "\(folder.path)/db.loveseat/blobs"
        for file in try FileManager.default.contentsOfDirectory(atPath: root) {
            let content = try String(contentsOfFile: "\(root)/\(file)", encoding: .utf8)
            if content.hasPrefix("gone") { try FileManager.default.removeItem(atPath: "\(root)/\(file)") }
            if content.hasPrefix("bad") {
                try "bad".write(toFile: "\(root)/\(file)", atomically: false, encoding: .utf8)
            }
        }
    }

    @Test(arguments: [[], ["--revisions"]])
    func `an export writes what is whole, names the documents of other blobs, and ends with 65`(
        _ options: [String]
    ) throws {
        let outcome = try folder.run(["export", "db"] + options)
        #expect(outcome.status == 65)
        #expect(outcome.lines.count { $0.hasPrefix(#"{"_blob""#) } == 1)
        #expect(outcome.lines.count { $0.hasPrefix(#"{"_id""#) } == 4)
        #expect(outcome.errors.contains("_default._default/bad: the content of blob"), "\(outcome.errors)")
        #expect(outcome.errors.contains("_default._default/gone: blob"), "\(outcome.errors)")
        #expect(!outcome.errors.contains("_default/good"), "\(outcome.errors)")
        #expect(outcome.errors.contains("2 documents"), "\(outcome.errors)")
        try folder.write(outcome.output, to: "all.jsonl")
        #expect(try folder.run("import", "copy", "all.jsonl").status == 0)
        #expect(try folder.run("ls", "copy").lines == ["bad", "gone", "good", "last"])
        #expect(try folder.run(["export", "db", "--no-blobs"] + options).status == 0)
    }

    @Test func `a blob that is not whole is not read as if it were`() throws {
        for name in ["bad", "gone"] {
            let outcome = try folder.run("blob", "get", "db", name, "file", "copy")
            #expect(outcome.status == 65)
            #expect(outcome.errors.contains(#""file" of "\#(name)""#), "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/copy"))
            #expect(try folder.run("blob", "get", "db", name, "file").output.isEmpty)
        }
        #expect(try folder.run("blob", "get", "db", "good", "file", "copy").status == 0)
        #expect(try folder.run("blob", "get", "db", "good", "file").output.hasPrefix("good good"))
    }

    @Test func `a file that a blob cannot be written to has its exit code`() throws {
        #expect(try folder.run("blob", "get", "db", "good", "file", "none/file").status == 73)
        #expect(try folder.run("blob", "get", "db", "good", "file", ".").status == 73)
        #expect(try folder.run("blob", "get", "db", "good", "file", "/dev/full").status == 74)
    }

    @Test func `an export goes on after a document that cannot be read, and names it`() throws {
        try folder.run("rm", "db", "bad", "gone")
        for (name, body) in [("first", "{}"), ("second", "{\"n\": 1}"), ("third", "{}")] {
            try folder.run("put", "db", name, body)
        }
        let file = try DatabaseQueue(path: "\(folder.path)/db.loveseat/db.sqlite")
        try file.writeWithoutTransaction {
            try $0.execute(sql: "UPDATE \"_default._default\" SET body = '{\"n\":' WHERE doc_id = 'second'")
        }
        try file.close()
        let outcome = try folder.run("export", "db")
        #expect(outcome.status == 65)
        #expect(outcome.errors.contains("_default._default/second: "), "\(outcome.errors)")
        #expect(outcome.errors.contains("1 document cannot be read, and is left out"), "\(outcome.errors)")
        #expect(outcome.lines.count { $0.hasPrefix(#"{"_id""#) } == 4)
        try folder.write(outcome.output, to: "all.jsonl")
        #expect(try folder.run("import", "copy", "all.jsonl").status == 0)
        #expect(try folder.run("ls", "copy").lines == ["first", "good", "last", "third"])
    }
}
