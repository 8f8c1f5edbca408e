import Foundation
import Testing

/// Two processes over TLS, as the README shows it.
struct SecureSyncTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    private var environment: [String: String] {
        ["LOVESEAT_IDENTITIES": folder.path + "/identities", "LOVESEAT_PASSWORD": "s3cret"]
    }

    private func run(_ arguments: String...) throws -> CommandLineFolder.Outcome {
        try folder.run(arguments, environment: environment)
    }

    @Test func `a listener's pin and a password are all that a second machine needs`() throws {
        try folder.run("put", "a", "d", "{\"n\":1}")
        try folder.run("create", "b")
        let server = try folder.serveSecurely("a", ["--user", "ana"], environment: environment)
        #expect(server.url.hasPrefix("wss://127.0.0.1:"))
        #expect(try run("pull", "b", server.url, "--user", "ana", "--pin", server.pin).status == 0)
        #expect(try folder.run("get", "b", "d").output.contains("\"n\": 1"))
        // Each mistake has its exit code and says what to do.
        let unpinned = try run("pull", "b", server.url, "--user", "ana")
        #expect(unpinned.status == 77)
        let advice = "pin it with --pin \(server.pin), or trust its authority with --ca"
        #expect(unpinned.errors.contains(advice), "\(unpinned.errors)")
        let wrongPin = try run("pull", "b", server.url, "--pin", String(repeating: "ab", count: 32))
        #expect(wrongPin.status == 77)
        #expect(wrongPin.errors.contains("pin that with --pin"), "\(wrongPin.errors)")
        #expect(try run("pull", "b", server.url, "--pin", "abc").status == 64)
        #expect(try run("pull", "b", server.url, "--pin", server.pin).status == 77)
        #expect(try run("pull", "b", server.url, "--self-signed", "--pin", server.pin).status == 64)
        let clear = server.url.replacing("wss:", with: "ws:")
        #expect(try run("pull", "b", clear).errors.contains("wss://"))
        #expect(server.interrupt() == 0)
    }

    @Test func `an own authority issues the identities of both sides`() throws {
        try folder.run("put", "a", "d", "{\"n\":1}")
        try folder.run("create", "b")
        #expect(try run("identity", "create", "ours", "--ca").status == 0)
        #expect(try run("identity", "create", "server", "--ip", "127.0.0.1", "--issuer", "ours").status == 0)
        #expect(try run("identity", "create", "kiosk", "--issuer", "ours").status == 0)
        #expect(try run("identity", "create", "kiosk", "--issuer", "ours").status == 73)
        #expect(try run("identity", "import", "kiosk", "none.pem").status == 73)
        try folder.write(try run("identity", "export", "ours").output, to: "ca.pem")
        #expect(try run("identity", "list").lines.count == 3)
        #expect(try run("identity", "show", "kiosk").lines.count == 2)
        // Through files too: the server's identity leaves the store and comes back as PEM.
        try folder.write(try run("identity", "export", "server", "--key").output, to: "server.pem")
        #expect(try run("identity", "delete", "server").status == 0)
        #expect(try run("identity", "delete", "server").status == 66)
        #expect(try run("identity", "show", "server").status == 66)
        let server = try folder.serveSecurely(
            "a",
            ["--tls", "server.pem", "--client-ca", "ca.pem"],
            environment: environment
        )
        #expect(try run("pull", "b", server.url, "--ca", "ca.pem", "--identity", "kiosk").status == 0)
        #expect(try folder.run("get", "b", "d").output.contains("\"n\": 1"))
        let unknown = try run("pull", "b", server.url, "--ca", "ca.pem", "--json")
        #expect(unknown.status == 77)
        #expect(
            unknown.errors.contains("a client certificate: show one with --identity"),
            "\(unknown.errors)"
        )
        #expect(unknown.output.contains("--identity"), "\(unknown.output)")
        let signed = try run("pull", "b", server.url, "--self-signed", "--identity", "kiosk")
        #expect(signed.status == 77)
        #expect(signed.errors.contains(": leave out --self-signed"), "\(signed.errors)")
        #expect(try run("identity", "import", "again", "server.pem").status == 0)
        #expect(server.interrupt() == 0)
    }

    @Test func `an access file says what a peer may do, and is read again at a hangup`() throws {
        try folder.run("put", "a", "mine", "{\"owner\":\"ana\"}")
        try folder.run("put", "a", "theirs", "{\"owner\":\"bob\"}")
        try folder.run("create", "b")
        try folder.write("{\"ana\":{\"*\":{\"access\":\"write\",\"if\":\"owner = ana\"}}}", to: "access.json")
        let server = try folder.serveSecurely(
            "a",
            ["--user", "ana", "--access", "access.json"],
            environment: environment
        )
        let arguments = ["sync", "b", server.url, "--user", "ana", "--pin", server.pin]
        #expect(try folder.run(arguments, environment: environment).status == 0)
        #expect(try folder.run("ls", "b").lines == ["mine"])
        try folder.write("{\"*\":{\"*\":{\"access\":\"read\",\"if\":\"public\"}}}", to: "access.json")
        kill(server.server.process.processIdentifier, SIGHUP)
        _ = try server.awaitLine { $0.contains("--access file was read again") }
        #expect(try folder.run(arguments, environment: environment).status == 0)
        #expect(try folder.run("ls", "b").lines == [])
        // A mistake changes nothing.
        try folder.write("{\n\"*\":\"everything\"}", to: "access.json")
        kill(server.server.process.processIdentifier, SIGHUP)
        let mistake = try server.awaitLine { $0.contains("the rules stay as they were") }
        #expect(mistake.contains("access.json, line 2, column 5: "), "\(mistake)")
        #expect(try folder.run(arguments, environment: environment).status == 0)
        #expect(try folder.run("ls", "b").lines == [])
        try folder.write("{\"ana\":\"everything\"}", to: "wrong.json")
        #expect(try run("serve", "b", "--access", "wrong.json").status == 65)
        try folder.write("{\"ana\":", to: "broken.json")
        let broken = try run("serve", "b", "--access", "broken.json")
        #expect(broken.status == 65, "\(broken)")
        #expect(broken.errors.contains("broken.json"), "\(broken)")
        #expect(server.interrupt() == 0)
    }

    @Test(arguments: [
        (#"{"ana": "read","#, 1, "invalid JSON"), ("[]", 1, "it must be a JSON object"),
        (#"{"a": "read",\n "a": "write"}"#, 2, "a key occurs twice"),
        (#"{"ana":\n "all"}"#, 2, #""none", "read" or "write""#),
        (#"{"ana": {\n"no such": "read"}}"#, 2, "use scope.collection"),
        (#"{"ana": {\n"a": "read",\n"_default.a": "read"}}"#, 3, "two rules"),
        (#"{"ana": {"access": "read", "if": "x"}}"#, 1, #"{"*": {"access""#),
        (#"{"ana": {\n"*": {"access": "read"}}}"#, 2, #"needs an "if""#),
        (#"{"ana": {"*": {\n"if": "x"}}}"#, 1, #"needs an "access""#),
        (#"{"ana": {"*": {"access": "read",\n\n"if": "a = 1 and b = 2"}}}"#, 3, "one condition"),
        (#"{"ana": {"*": {"access": "read",\n"if": "x",\n"else": "none"}}}"#, 3, #"not "else""#),
    ]) func `a mistake in an access file is named with its line and what to write`(
        _ text: String,
        _ line: Int,
        _ advice: String
    ) throws {
        try folder.run("create", "b")
        try folder.write(text.replacing("\\n", with: "\n"), to: "access.json")
        let outcome = try run("serve", "b", "--access", "access.json")
        #expect(outcome.status == 65, "\(outcome.errors)")
        #expect(
            outcome.errors.contains("the access file access.json, line \(line), column "),
            "\(outcome.errors)"
        )
        #expect(outcome.errors.contains(advice), "\(outcome.errors)")
    }

    @Test func `a rule for a collection that is not served is warned of, and others are not`() throws {
        try folder.run("create", "b", "--collections", "travel.notes,travel.sights")
        let rules =
            #"{"ana": {"travel.notes": "read", "travel.nots": "read", "_default": "read", "*": "none"}}"#
        try folder.write(rules, to: "access.json")
        let (server, errors) = try folder.serve(
            "b",
            ["--no-tls", "--access", "access.json"],
            environment: [:]
        )
        #expect(server.interrupt() == 0)
        let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(said.contains("name the collection travel.nots, which is not served"), "\(said)")
        #expect(said.components(separatedBy: "which is not served").count == 2, "\(said)")
    }

    @Test func `a fingerprint has one rule, however it is written`() throws {
        try folder.run("create", "b")
        let (lower, upper) = (String(repeating: "ab", count: 32), String(repeating: "AB:", count: 31) + "AB")
        try folder.write("{\"\(lower)\": \"read\",\n\"\(upper)\": \"write\"}", to: "access.json")
        let outcome = try run("serve", "b", "--access", "access.json")
        #expect(outcome.status == 65)
        #expect(outcome.errors.contains("line 2, "), "\(outcome.errors)")
        #expect(outcome.errors.contains("has two rules"), "\(outcome.errors)")
    }

    @Test func `the access file of the documentation works`() throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../docs/command-line.md"
        )
        let parts = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```")
        let example = try #require(parts.first { $0.hasPrefix("json\n") })
        try folder.run("create", "a", "--collections", "travel.sights,travel.notes")
        try folder.run("put", "a", "mine", #"{"owner":"bob"}"#, "-c", "travel.notes")
        try folder.run("put", "a", "private", "{}")
        try folder.write(String(example.dropFirst(5)), to: "access.json")
        let server = try folder.serveSecurely(
            "a",
            ["--user", "bob", "--access", "access.json"],
            environment: environment
        )
        try folder.run("create", "b", "--collections", "travel.sights,travel.notes")
        let options = ["--user", "bob", "--pin", server.pin, "--collections", "travel.sights,travel.notes"]
        let sync = try folder.run(["sync", "b", server.url] + options, environment: environment)
        #expect(sync.status == 0, "\(sync.errors)")
        #expect(try folder.run("ls", "b", "-c", "travel.notes").lines == ["mine"])
        #expect(try folder.run("ls", "b").lines.isEmpty)
        #expect(server.interrupt() == 0)
    }

    @Test func `lists that name nothing are wrong usage`() throws {
        try folder.run("create", "b")
        for option in ["--doc-ids", "--channels"] {
            #expect(try run("push", "b", "ws://127.0.0.1:1/b", option, ",,").status == 64)
        }
    }
}

/// Pairing on the command line, each machine with its own identities.
struct PairCommandTests {
    @Test func `a code that is shown on one machine pairs another`() throws {
        let folder = try CommandLineFolder()
        try folder.run("put", "a", "d", "{\"n\":1}")
        let one = ["LOVESEAT_IDENTITIES": folder.path + "/one"]
        let other = ["LOVESEAT_IDENTITIES": folder.path + "/other"]
        let (show, output, errors) = try folder.start(
            ["pair", "show", "a", "--interface", "127.0.0.1"],
            environment: one
        )
        var said = ""
        while said.split(separator: "\n").count < 2 {
            let piece = output.fileHandleForReading.availableData
            let why = { String(decoding: errors.fileHandleForReading.availableData, as: UTF8.self) }
            try #require(!piece.isEmpty, "pair show ended by itself: \(why())")
            said += String(decoding: piece, as: UTF8.self)
        }
        let words = said.split { $0.isWhitespace }.map(String.init)
        #expect(words[1].utf8.count == 6)
        let used = try folder.run("pair", "use", "b", words[1], words[2], environment: other)
        try #require(used.status == 0, "\(used.errors)")
        show.waitUntilExit()
        #expect(show.terminationStatus == 0)
        let drawn = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(drawn.contains("█▀"))
        #expect(drawn.contains("paired with \(ProcessInfo.processInfo.hostName)"))
        #expect(try folder.run("pair", "use", "b", words[0], environment: other).status != 0)
        let port = try #require(URL(string: words[2])?.port)
        let server = try folder.serveSecurely("a", ["--paired", "--port", "\(port)"], environment: one)
        #expect(try folder.run("sync", "b", "--paired", environment: other).status == 0)
        #expect(try folder.run("get", "b", "d").status == 0)
        #expect(try folder.run("sync", "b", "--paired", environment: one).status == 77)
        #expect(server.interrupt() == 0)
        let fields = try folder.run("pair", "list", "a").output.split(separator: "\t")
        #expect(
            fields.dropFirst().prefix(2).map { $0.trimmingPrefix(" ") } == [
                Substring(ProcessInfo.processInfo.hostName), "own\n",
            ]
        )
        let listed = try folder.run("pair", "list", "a").output.prefix(64)
        #expect(try folder.run("pair", "forget", "a", String(listed)).status == 0)
        #expect(try folder.run("pair", "list", "a").output.isEmpty)
        #expect(try folder.run("pair", "forget", "a", String(listed)).status == 66)
    }
}

/// A peer at the other end of a child process's standard input and output.
struct StandardStreamTests {
    @Test func `a child process carries the replication, and ends with it`() throws {
        let folder = try CommandLineFolder()
        let lines = (0..<500).map { "{\"_id\":\"a\($0)\",\"n\":\($0)}" }
        try folder.write(lines.joined(separator: "\n"), to: "a.jsonl")
        try folder.run("import", "a", "a.jsonl")
        try folder.run("put", "b", "d", "{\"n\":1}")
        let program = try CommandLineFolder.program.path
        let done = try folder.run("sync", "a", "exec:'\(program)' serve-stdio b", "--json")
        #expect(done.status == 0)
        #expect(done.output.contains("\"pushed\":500"))
        #expect(done.output.contains("\"pulled\":1"))
        #expect(try folder.run("export", "a").output == folder.run("export", "b").output)
        // A child that cannot serve, and one that is no peer.
        let missing = try folder.run("sync", "a", "exec:'\(program)' serve-stdio nowhere")
        #expect(missing.status == 69)
        #expect(missing.errors.contains("nowhere"))
        #expect(
            missing.errors.contains("the command of exec: ended with exit status 66"),
            "\(missing.errors)"
        )
        for (command, ending) in [
            ("nonexistentcmd x", "ended with exit status 127"), ("false", "ended with exit status 1"),
            ("kill -9 $$", "was ended by signal 9"), ("true", "ended with exit status 0"),
        ] {
            let outcome = try folder.run("sync", "a", "exec:\(command)")
            #expect(outcome.status == 69)
            #expect(outcome.errors.contains("the command of exec: \(ending)"), "\(outcome.errors)")
        }
        #expect(try folder.run("sync", "a", "exec:echo hello").status != 0)
        // Neither /dev/null nor a file connects it with a peer.
        #expect(try folder.run("serve-stdio", "b").status == 64)
        #expect(try folder.run(["serve-stdio", "b"], input: Data("hello".utf8)).status == 64)
    }

    /// The peer's database is open in the child that serves it: a second child could not open it meanwhile.
    @Test func `a document that the feed has passed is fetched by one child after the other`() throws {
        let folder = try CommandLineFolder()
        try folder.write("hello", to: "file")
        try folder.run("put", "b", "d", "{\"n\":1}")
        try folder.run("blob", "put", "b", "d", "file", "file")
        let program = try CommandLineFolder.program.path
        let script = """
            [ -e busy ] && echo two >> children
            touch busy; '\(program)' serve-stdio b; echo end >> children; rm busy
            """
        try folder.write(script, to: "serve.sh")
        func sync() throws -> CommandLineFolder.Outcome {
            try folder.run("sync", "a", "exec:sh serve.sh", "--json")
        }
        try folder.run("create", "a")
        // The document cannot be stored, because its blob is not there for a while.
        let (blobs, away) = ("\(folder.path)/b.loveseat/blobs", "\(folder.path)/away")
        try FileManager.default.moveItem(atPath: blobs, toPath: away)
        #expect(try sync().output.contains("\"failed\":1"))
        try? FileManager.default.removeItem(atPath: blobs)
        try FileManager.default.moveItem(atPath: away, toPath: blobs)
        let done = try sync()
        #expect(done.status == 0, "\(done.errors)")
        #expect(done.output.contains("\"pulled\":1"), "\(done.output)")
        #expect(try folder.run("export", "a").output == folder.run("export", "b").output)
        let children = try String(contentsOfFile: "\(folder.path)/children", encoding: .utf8)
        #expect(children.split(separator: "\n").allSatisfy { $0 == "end" }, "\(children)")
    }
}
