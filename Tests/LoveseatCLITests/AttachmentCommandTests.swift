import Foundation
import Testing

/// Attachments that REST clients and 1.x apps made, by the command line: `_attachments` beside the properties.
struct AttachmentCommandTests {
    private let folder: CommandLineFolder
    private let digest = "sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00="
    private var table: String { "{\"hello.txt\":{\"digest\":\"\(digest)\",\"length\":5,\"stub\":true}}" }

    init() throws { folder = try CommandLineFolder() }

    /// A database with such a document, as an import of another one's export makes it.
    private func make() throws {
        let lines = [
            "{\"_blob\":\"\(digest)\",\"content\":\"aGVsbG8=\"}",
            "{\"_id\":\"d\",\"_attachments\":\(table),\"n\":1}",
        ]
        try folder.write(lines.joined(separator: "\n"), to: "data.jsonl")
        let made = try folder.run("import", "db", "data.jsonl")
        #expect(made.status == 0, "\(made.errors)")
    }

    private func attachment(_ database: String) throws -> String {
        try folder.run("blob", "get", database, "d", "hello.txt").output
    }

    @Test func `an edit that does not name attachments keeps them`() throws {
        try make()
        for edit in [["set", "db", "d", "n=2"], ["put", "db", "d", "{\"n\":3}"]] {
            #expect(try folder.run(edit).status == 0)
            #expect(try attachment("db") == "hello")
        }
        let revision = try #require(try folder.run("put", "db", "d", "{\"n\":4}").lines.first)
        #expect(try folder.run("put", "db", "d", "{\"n\":5}", "--rev", revision).status == 0)
        #expect(try folder.run("compact", "db").status == 0)
        #expect(try attachment("db") == "hello")
        #expect(try folder.run("get", "db", "d", "--raw").output.contains("\"n\":5"))
        #expect(try folder.run("check", "db").status == 0)
    }

    @Test func `blob get replaces a file only if it is told to`() throws {
        try make()
        try folder.write("mine", to: "file")
        let refused = try folder.run("blob", "get", "db", "d", "hello.txt", "file")
        #expect(refused.status == 73)
        #expect(refused.errors.contains("file exists already: use --force"), "\(refused.errors)")
        func content(_ file: String) throws -> String {
            try String(contentsOfFile: "\(folder.path)/\(file)", encoding: .utf8)
        }
        #expect(try content("file") == "mine")
        #expect(try folder.run("blob", "get", "db", "d", "hello.txt", "file", "--force").status == 0)
        #expect(try content("file") == "hello")
        #expect(try folder.run("blob", "get", "db", "d", "hello.txt", "new").status == 0)
        #expect(try content("new") == "hello")
        #expect(try folder.run("blob", "get", "db", "d", "hello.txt", "/dev/null").status == 0)
    }

    @Test func `a media type that no client could read is refused before anything is created`() throws {
        try folder.write("hello", to: "hello.txt")
        let type = "text/" + String(repeating: "x", count: 252)
        let put = try folder.run("blob", "put", "new", "d", "photo", "hello.txt", "--type", type)
        #expect(put.status == 64)
        #expect(put.errors.contains("--type"), "\(put.errors)")
        #expect(try folder.run("info", "new").status == 66)
        #expect(
            try folder.run("blob", "put", "new", "d", "photo", "hello.txt", "--type", "text/plain").status
                == 0
        )
    }

    @Test func `attachments may be saved again as they are printed, or removed`() throws {
        try make()
        let text = try folder.run("get", "db", "d", "--raw").lines[0]
        #expect(text.contains("hello.txt"))
        #expect(try folder.run("put", "db", "d", text.replacing("\"n\":1", with: "\"n\":2")).status == 0)
        #expect(try attachment("db") == "hello")
        #expect(try folder.run("put", "db", "d", "{\"n\":3,\"_attachments\":{}}").status == 0)
        #expect(try folder.run("get", "db", "d", "--raw").lines == ["{\"n\":3}"])
        #expect(try folder.run("blob", "get", "db", "d", "hello.txt").status != 0)
        // Nothing brings them back, and they are collected.
        #expect(try folder.run("put", "db", "d", "{\"n\":4}").status == 0)
        #expect(try folder.run("get", "db", "d", "--raw").lines == ["{\"n\":4}"])
    }

    @Test func `another peer gets attachments, and export and import carry them`() throws {
        try make()
        for (name, arguments) in [("pushed", ["push", "db"]), ("pulled", ["pull", "pulled"])] {
            try folder.run("create", name)
            let server = try folder.serve(arguments[0] == "push" ? name : "db")
            let sync = try folder.run(arguments + [server.url])
            #expect(sync.status == 0, "\(sync.errors)")
            #expect(server.interrupt() == 0)
            #expect(try attachment(name) == "hello")
        }
        // Edited there, they come back with the edit.
        #expect(try folder.run("set", "pulled", "d", "n=7").status == 0)
        #expect(try folder.run("sync", "pulled", "--local-db", "db").status == 0)
        #expect(try folder.run("get", "db", "d", "--raw").output.contains("\"n\":7"))
        #expect(try attachment("db") == "hello")
        let text = try folder.run("export", "db").output
        try folder.write(text, to: "export.jsonl")
        #expect(try folder.run("import", "imported", "export.jsonl").status == 0)
        #expect(try attachment("imported") == "hello")
        #expect(try folder.run("export", "imported").output == text)
    }
}
