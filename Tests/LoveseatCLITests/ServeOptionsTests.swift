import Foundation
import Testing

/// What `serve` says and takes, and what other commands may do beside it.
struct ServeOptionsTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("put", "db", "d", "{\"n\":1}")
    }

    /// Starts `serve`, waits for its URLs, ends it, and returns what it said on standard error.
    private func remarks(_ arguments: String...) throws -> String { try remarks(arguments) }

    private func remarks(_ arguments: [String]) throws -> String {
        let (process, output, errors) = try folder.start(
            ["serve"] + arguments,
            environment: ["LOVESEAT_PASSWORD": "s3cret", "LOVESEAT_IDENTITIES": folder.path + "/identities"]
        )
        try #require(!output.fileHandleForReading.availableData.isEmpty)
        process.terminate()
        process.waitUntilExit()
        return String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    }

    @Test func `a listener that lets in everybody on the network warns of it`() throws {
        #expect(try remarks("db").contains("WARNING: everybody on the network"))
        #expect(try !remarks("db", "--open").contains("WARNING"))
        #expect(try !remarks("db", "--interface", "127.0.0.1").contains("WARNING"))
        #expect(try !remarks("db", "--user", "ana").contains("WARNING"))
        for wire in [[], ["--couchdb"]] {
            #expect(
                try remarks(["db", "--user", "ana", "--origin", "*"] + wire).contains(
                    "WARNING: every web page"
                )
            )
            #expect(
                try !remarks(["db", "--user", "ana", "--origin", "https://app.example"] + wire).contains(
                    "WARNING"
                )
            )
        }
        let clear = try remarks("db", "--user", "ana", "--no-tls", "--interface", "127.0.0.1")
        #expect(clear.contains("are sent without encryption"))
    }

    @Test(arguments: [["--collections", "nope"], ["--access", "none.json"], ["--tls", "nobody"]])
    func `a listener that cannot start says only why`(_ options: [String]) throws {
        let outcome = try folder.run(
            ["serve", "db"] + options,
            environment: ["LOVESEAT_IDENTITIES": folder.path + "/identities"]
        )
        #expect(outcome.status == 66)
        #expect(!outcome.errors.contains("WARNING"), "\(outcome.errors)")
        #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
    }

    @Test func `a sync over CouchDB's wire with a listener that does not speak it says what helps`() throws {
        let server = try folder.serve("db")
        defer { _ = server.interrupt() }
        try folder.run("create", "copy")
        let outcome = try folder.run("sync", "copy", "http://127.0.0.1:\(server.port)/db")
        #expect(outcome.status == 64, "\(outcome.errors)")
        #expect(outcome.errors.contains("use a ws:// or wss:// URL, or start it with `serve --couchdb`"))
        #expect(!outcome.errors.contains("JSON"), "\(outcome.errors)")
    }

    @Test func `a URL with a wrong database is answered with the right one`() throws {
        let server = try folder.serve("db")
        defer { _ = server.interrupt() }
        try folder.run("create", "copy")
        let outcome = try folder.run("sync", "copy", "\(server.url)/travel.sights")
        #expect(outcome.status == 66, "\(outcome.errors)")
        #expect(
            outcome.errors.contains("the peer's one is \(server.url); --collections names collections of it"),
            "\(outcome.errors)"
        )
    }

    @Test func `a user without any rights reads where rights are given`() throws {
        try folder.write("{\"bob\":\"write\",\"*\":\"none\"}", to: "access.json")
        try folder.run("create", "copy", "--collections", "travel.sights")
        let password = ["LOVESEAT_PASSWORD": "s3cret"]
        let (server, _) = try folder.serve(
            "db",
            ["--no-tls", "--user", "ana", "--access", "access.json"],
            environment: password
        )
        defer { _ = server.interrupt() }
        let outcome = try folder.run("sync", "copy", server.url, "--user", "ana", environment: password)
        #expect(outcome.status == 77, "\(outcome.errors)")
        #expect(
            outcome.errors.contains("`serve --access` there gives rights by that name"),
            "\(outcome.errors)"
        )
        #expect(!outcome.errors.contains("--collections"), "\(outcome.errors)")
    }

    @Test func `a sync with a peer that gives nothing pushes, and then says so`() throws {
        let server = try folder.serve("db", "--write-only")
        defer { _ = server.interrupt() }
        try folder.run("put", "copy", "mine", "{}")
        let outcome = try folder.run("sync", "copy", server.url)
        #expect(outcome.status == 77, "\(outcome.errors)")
        #expect(outcome.errors.contains("1 pushed, 0 pulled, 0 failed"), "\(outcome.errors)")
        #expect(outcome.errors.contains("use `loveseat push`"), "\(outcome.errors)")
        #expect(try folder.run("ls", "db").lines == ["d", "mine"])
    }

    @Test(arguments: [
        ["--read-only", "--write-only"], ["--couchdb", "--couchdb-min-tls", "9"], ["--couchdb-digest"],
        ["--couchdb-min-tls", "1.0"], ["--couchdb", "--couchdb-min-tls", "1.0"], ["--couchdb-port", "0"],
        ["--replicate-with", "a"], ["--couchdb", "--replicate-with", "a/b"],
        ["--password-file", "secret"], ["--couchdb", "--couchdb-create", "--name", "a"],
        ["--couchdb", "--couchdb-digest"], ["--couchdb", "--origin", "nonsense"], ["--origin", "nonsense"],
        ["--couchdb", "--replicate-with", "a:65536"],
        ["--couchdb", "--replicate-with", "a", "--replicate-pin", "00ff"],
    ]) func `options that contradict each other are refused`(_ options: [String]) throws {
        #expect(try folder.run(["serve", "db", "--interface", "127.0.0.1"] + options).status == 64)
    }

    @Test(arguments: [
        (["serve", "db", "--user", "ana", "--user=bob"], "--access with the rights of each"),
        (["serve", "db", "--access", "a.json", "--access", "b.json"], "one file"),
        (["serve", "db", "--collections", "_default", "--collections", "x.y"], "by commas"),
        (["push", "db", "--local-db", "b", "--doc-ids", "d", "--doc-ids", "e"], "by commas"),
    ]) func `an option of one value that is repeated is refused, and not ignored`(
        _ arguments: [String],
        _ advice: String
    ) throws {
        let outcome = try folder.run(arguments, environment: ["LOVESEAT_PASSWORD": "s3cret"])
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("can be given only once"), "\(outcome.errors)")
        #expect(outcome.errors.contains(advice), "\(outcome.errors)")
        // What follows "--" is not an option.
        let value = try folder.run("get", "db", "--", "d", "--user", "--user")
        #expect(!value.errors.contains("only once"), "\(value.errors)")
    }

    @Test func `both wires are served with the rights of one file`() throws {
        try folder.write("{\"ana\": \"write\", \"*\": \"none\"}", to: "access.json")
        let (server, _) = try folder.serve(
            "db",
            ["--no-tls", "--user", "ana", "--access", "access.json", "--couchdb", "--couchdb-digest"],
            environment: ["LOVESEAT_PASSWORD": "s3cret"]
        )
        #expect(try ports(server.url).count == 1)
        #expect(server.interrupt() == 0)
        let apart = try folder.serve("db", "--no-tls", "--couchdb", "--couchdb-port", "0")
        #expect(try ports(apart.url).count == 2)
        #expect(apart.interrupt() == 0)
    }

    @Test func `a database that a client of CouchDB's wire made is served under another name, too`() throws {
        #expect(try folder.run("create", "db", "--collections", "new%2Ex,_default.a%2Fb,plain").status == 0)
        let server = try folder.serve("db", "--no-tls", "--couchdb", "--name", "other")
        #expect(try ports(server.url).count == 1)
        #expect(server.interrupt() == 0)
    }

    /// The ports of the printed URLs, of which there must be some for each wire.
    private func ports(_ printed: String) throws -> Set<Int> {
        let urls = try printed.split(separator: "\n").map { try #require(URL(string: String($0))) }
        #expect(Set(urls.map(\.scheme)) == ["ws", "http"])
        return Set(urls.compactMap(\.port))
    }

    @Test func `a write-only database is pushed to and not pulled from`() throws {
        try folder.run("create", "drop")
        let server = try folder.serve("drop", "--write-only")
        #expect(try folder.run("push", "db", server.url).status == 0)
        let pull = try folder.run("pull", "db", server.url)
        #expect(pull.status != 0)
        #expect(pull.errors.contains("push-only"))
        #expect(pull.errors.contains("use `loveseat push`"))
        #expect(server.interrupt() == 0)
        #expect(try folder.run("ls", "drop").lines == ["d"])
    }

    @Test func `a sync with a read-only database pulls what is there, and then says to use pull`() throws {
        try folder.run("create", "source")
        try folder.run("put", "source", "theirs", "{}")
        let server = try folder.serve("source", "--read-only")
        let sync = try folder.run("sync", "db", server.url)
        #expect(sync.status == 77)
        #expect(sync.errors.contains("use `loveseat pull`"))
        #expect(try folder.run("ls", "db").lines == ["d", "theirs"])
        #expect(server.interrupt() == 0)
        #expect(try folder.run("ls", "source").lines == ["theirs"])
    }

    @Test func `a name that Couchbase Lite refuses has a proposal, and another name may be served`() throws {
        try folder.run("create", "My Trips é")
        #expect(try remarks("My Trips é", "--interface", "127.0.0.1").contains("--name 'my-trips--'"))
        let server = try folder.serve("My Trips é", "--name", "trips")
        #expect(server.url.hasSuffix("/trips"))
        #expect(try folder.run("push", "db", server.url).status == 0)
        #expect(server.interrupt() == 0)
        #expect(try folder.run("get", "My Trips é", "d").status == 0)
        #expect(try folder.run("serve", "db", "--name", "a/b", "--interface", "127.0.0.1").status == 64)
    }

    @Test(arguments: ["", "/", ".loveseat", "a/", "a/.loveseat"])
    func `a database needs a name`(_ name: String) throws {
        try FileManager.default.createDirectory(atPath: folder.path + "/a", withIntermediateDirectories: true)
        let outcome = try folder.run("create", name)
        // A slash at the end is the shell's completion of a folder's name.
        #expect(outcome.status == (name == "a/" ? 0 : 64), "\(outcome.errors)")
    }

    @Test func `lists may have blanks around their commas`() throws {
        #expect(try folder.run("create", "lists", "--collections", "a.b , c.d").status == 0)
        let info = try folder.run("info", "lists", "--json").output
        #expect(info.contains("\"a.b\""))
        #expect(info.contains("\"c.d\""))
        for id in ["x", "y", "z"] { try folder.run("put", "lists", id, "{}") }
        #expect(try folder.run("create", "copy").status == 0)
        let push = try folder.run(
            "push",
            "lists",
            "--local-db",
            "copy",
            "--collections",
            "_default",
            "--doc-ids",
            "x, y"
        )
        #expect(push.status == 0, "\(push.errors)")
        #expect(try folder.run("ls", "copy").lines == ["x", "y"])
    }

    @Test func `a database is checked while it is served`() throws {
        let server = try folder.serve("db")
        #expect(try folder.run("check", "db").status == 0)
        #expect(server.interrupt() == 0)
    }

    @Test func `a pairing that fails leaves no database behind, and keeps one that was there`() throws {
        let environment = ["LOVESEAT_IDENTITIES": folder.path + "/ids"]
        try folder.run("create", "known")
        for name in ["known", "typo"] {
            let use = try folder.run(
                "pair",
                "use",
                name,
                "123456",
                "wss://127.0.0.1:1/db",
                environment: environment
            )
            #expect(use.status == 69, "\(use.errors)")
            #expect(!use.errors.contains("created"), "\(use.errors)")
        }
        #expect(try folder.run("info", "known").status == 0)
        #expect(try folder.run("info", "typo").status == 66)
    }

    @Test func `peers are paired and forgotten while a database is served`() throws {
        let one = ["LOVESEAT_IDENTITIES": folder.path + "/one"]
        let other = ["LOVESEAT_IDENTITIES": folder.path + "/other"]
        let server = try folder.serveSecurely("db", ["--paired"], environment: one)
        let socket = "\(folder.path)/db.loveseat/control"
        let mode = try FileManager.default.attributesOfItem(atPath: socket)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        let (show, output, errors) = try folder.start(["pair", "show", "db"], environment: one)
        let said = try output.text { $0.split(separator: "\n").count >= 2 }
        let words = said.split { $0.isWhitespace }.map(String.init)
        #expect(words[2] == server.url)
        let used = try folder.run(
            ["pair", "use", "copy", "-", words[2]],
            environment: other.merging(["LOVESEAT_PAIRING_CODE": words[1]]) { $1 }
        )
        try #require(used.status == 0, "\(used.errors)")
        show.waitUntilExit()
        #expect(show.terminationStatus == 0)
        _ = errors.fileHandleForReading.readDataToEndOfFile()
        #expect(try folder.run("sync", "copy", "--paired", environment: other).status == 0)
        let listed = String(try folder.run("pair", "list", "db").output.prefix(64))
        #expect(try folder.run("pair", "forget", "db", listed).status == 0)
        #expect(try folder.run("pair", "forget", "db", listed).status == 66)
        #expect(try folder.run("sync", "copy", "--paired", environment: other).status == 77)
        #expect(server.interrupt() == 0)
        #expect(!FileManager.default.fileExists(atPath: socket))
        let open = try folder.serveSecurely("db", [], environment: one)
        #expect(try folder.run("pair", "show", "db", environment: one).status == 64)
        #expect(open.interrupt() == 0)
    }

    @Test func `control characters are escaped wherever they are printed`() throws {
        try folder.run("put", "db", "a\u{9B}31m", "{\"t\":\"\u{9B}31m\u{7F}\\u001b[2J\u{202E}\"}")
        for command in [["ls"], ["ls", "--long"], ["ls", "--json"], ["changes"], ["changes", "--json"]] {
            let output = try folder.run([command[0], "db"] + command.dropFirst()).output
            #expect(output.contains("a\\u009b31m"), "\(command)")
            #expect(!output.unicodeScalars.contains("\u{9B}"))
        }
        let shown = try folder.run("get", "db", "a\u{9B}31m").output
        #expect(shown.contains("\\u009b31m\\u007f\\u001b[2J\\u202e"))
        let failed = try folder.run("get", "db", "\u{1B}[2Jx\nloveseat: all is well")
        #expect(failed.errors.contains("\\u001b[2Jx\\u000aloveseat"))
        #expect(failed.errors.split(separator: "\n").count == 1)
    }
}
