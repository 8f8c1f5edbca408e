import Foundation
import LoveseatModel
import Testing

/// `import --from-couchdb` and `export --to-couchdb`.
struct CouchDBTransferTests {
    private let folder: CommandLineFolder
    private let document =
        #"{"_id":"photo","_rev":"2-p","n":1,"_attachments":{"hello.txt":{"content_type":"text/plain","data":"aGVsbG8="}}}"#

    init() throws { folder = try CommandLineFolder() }

    /// Serves a database over CouchDB's wire, and returns its URL when it accepts connections.
    private func serve(_ database: String, _ options: String...) throws -> (
        process: Process, url: String, errors: Pipe
    ) {
        let (process, output, errors) = try folder.start(
            ["serve", database, "--interface", "127.0.0.1", "--no-tls", "--couchdb"] + options
        )
        let text = try output.text { $0.contains("http://") && $0.hasSuffix("\n") }
        let url = try #require(text.split(separator: "\n").first { $0.hasPrefix("http://") })
        return (process, String(url), errors)
    }

    private func end(_ process: Process) {
        process.terminate()
        process.waitUntilExit()
    }

    @Test func `a dump is imported from a file and into a collection`() throws {
        try folder.write(
            "{\"docs\":[\n\(document),\n{\"_id\":\"gone\",\"_rev\":\"1-x\",\"_deleted\":true}\n]}",
            to: "dump"
        )
        let imported = try folder.run("import", "db", "--from-couchdb", "dump", "--json", "-c", "some.trips")
        #expect(
            imported.lines == [#"{"documents":2,"replaced":0,"unchanged":0}"#],
            "\(imported.errors)"
        )
        let again = try folder.run("import", "db", "--from-couchdb", "dump", "--json", "-c", "some.trips")
        #expect(again.lines == [#"{"documents":2,"replaced":0,"unchanged":2}"#], "\(again.errors)")
        #expect(try folder.run("ls", "db", "-c", "some.trips").lines.count == 1)
        let content = try folder.run("blob", "get", "db", "photo", "hello.txt", "-c", "some.trips")
        #expect(content.output == "hello")
        #expect(try folder.run("check", "db").status == 0)
        try folder.write("{\"error\":\"not_found\"}", to: "none")
        let refused = try folder.run("import", "db", "--from-couchdb", "none")
        #expect(refused.status == 65)
        #expect(refused.errors.contains("not a dump"))
        #expect(try folder.run("import", "db", "--from-couchdb", "missing").status == 66)
    }

    @Test func `an import that brings nothing leaves no database`() throws {
        try folder.write("{\"error\":\"not_found\"}", to: "none")
        for source in ["none", "missing", "http://127.0.0.1:1/db"] {
            #expect(try folder.run("import", "new", "--from-couchdb", source).status != 0)
            #expect(try folder.run("ls", "new").errors.contains("there is no database"), "\(source)")
        }
        try folder.run("create", "kept")
        #expect(try folder.run("import", "kept", "--from-couchdb", "none").status != 0)
        #expect(try folder.run("ls", "kept").status == 0)
    }

    @Test func `what a peer of this wire lacks is said with the options of the command line`() throws {
        try folder.run("create", "db")
        let absent = try folder.run("push", "db", "http://127.0.0.1:1/db")
        #expect(
            absent.errors.contains(
                "cannot connect to 127.0.0.1:1: connection refused: is the peer running, and is the port right?"
            )
        )
        let server = try serve("db")
        try folder.run("create", "copy")
        let url = server.url + "nothing"
        #expect(try folder.run("push", "copy", url).errors.contains("with --create-target"))
        let pull = try folder.run("pull", "copy", url)
        #expect(pull.errors.contains("check the URL"))
        #expect(!pull.errors.contains("--create-target"))
        // The listener tells its user who replicates.
        #expect(try folder.run("pull", "copy", server.url + "db").status == 0)
        _ = try server.errors.text { $0.contains("client-1 · db to Loveseat at 127.0.0.1") }
        end(server.process)
    }

    @Test func `another name is the one of both wires, and a pull creates nothing`() throws {
        try folder.run("create", "db", "--collections", "travel.trips")
        try folder.run("create", "copy")
        let (process, url, _) = try serve("db", "--name", "other")
        #expect(try folder.run("pull", "copy", url + "other").status == 0)
        #expect(try folder.run("pull", "copy", url + "other", "--collections", "travel.trips").status == 0)
        #expect(
            try folder.run("pull", "copy", url + "db", "--collections", "_default").errors.contains("404")
        )
        let created = try folder.run("pull", "copy", url + "more", "--create-target")
        #expect(created.status == 64)
        #expect(created.errors.contains("--create-target"))
        end(process)
    }

    @Test func `a push creates no collection, and a pull reports those that it creates`() throws {
        try folder.run("create", "db", "--collections", "travel.trips")
        try folder.run("create", "copy")
        let before = try folder.run("info", "copy", "--json").output
        let target = ["copy", "--local-db", "db", "--collections"]
        let typo = try folder.run(["push"] + target + ["travel.trisp"])
        #expect(typo.status == 66)
        #expect(typo.errors.contains("travel.trisp"), "\(typo.errors)")
        for (command, names) in [
            ("push", "_default=a,_default=b"), ("sync", "travel.trips=a,travel.trips=b"),
        ] {
            let twice = try folder.run([command] + target + [names, "--json"])
            #expect(twice.status == 64)
            #expect(twice.output.contains("\"exitCode\":64"), "\(twice.output)")
        }
        let after = try folder.run("info", "copy", "--json").output
        #expect(try JSONValue(parsing: after)["collections"] == JSONValue(parsing: before)["collections"])
        let pull = try folder.run(["pull"] + target + ["travel.trips"])
        #expect(pull.status == 0)
        #expect(pull.errors.contains("created the collection travel.trips"), "\(pull.errors)")
    }

    @Test func `a port that speaks TLS says so to a peer that does not`() throws {
        try folder.run("create", "db")
        try folder.run("create", "copy")
        let server = try folder.serveSecurely(
            "db",
            ["--couchdb"],
            environment: ["LOVESEAT_IDENTITIES": folder.path + "/ids"]
        )
        let port = try #require(URL(string: server.url)?.port)
        let pull = try folder.run("pull", "copy", "http://127.0.0.1:\(port)/db")
        #expect(pull.errors.contains("this port speaks TLS: use a wss:// or https:// URL"), "\(pull.errors)")
        #expect(server.interrupt() == 0)
    }

    @Test func `an export to a CouchDB and an import from it carry revisions and attachments`() throws {
        try folder.write("[\(document)]", to: "dump")
        #expect(try folder.run("import", "db", "--from-couchdb", "dump").status == 0)
        try folder.run("create", "server")
        let server = try serve("server", "--couchdb-create")
        defer { end(server.process) }
        let base = try #require(URL(string: server.url))
        let target = base.appending(path: "target").absoluteString
        #expect(try folder.run("export", "db", "--to-couchdb", target).status != 0)
        let exported = try folder.run("export", "db", "--to-couchdb", target, "--create-target")
        #expect(exported.status == 0, "\(exported.errors)")
        let imported = try folder.run("import", "copy", "--from-couchdb", target, "--json")
        #expect(imported.status == 0, "\(imported.errors)")
        #expect(imported.output.contains("\"pulled\":1"))
        #expect(try folder.run("export", "copy").output == folder.run("export", "db").output)
        #expect(try folder.run("blob", "get", "copy", "photo", "hello.txt").output == "hello")
        // The revision is the same one, so nothing is left to do.
        #expect(try folder.run("push", "copy", target, "--json").output.contains("\"pushed\":0"))
    }

    @Test(arguments: [
        ["import", "db"], ["import", "db", "a", "--from-couchdb", "b"],
        ["import", "db", "--from-couchdb", "b", "--atomic"],
        ["import", "db", "--from-couchdb", "b", "--user", "ana"],
        ["import", "db", "--from-couchdb", "http://127.0.0.1/b", "-c", "some.trips"],
        ["export", "db", "--to-couchdb", "dump"], ["export", "db", "--create-target"],
        ["export", "db", "--to-couchdb", "http://127.0.0.1/b", "--no-blobs"],
    ]) func `options that do not go together are refused`(_ arguments: [String]) throws {
        #expect(try folder.run(arguments).status == 64)
    }
}
