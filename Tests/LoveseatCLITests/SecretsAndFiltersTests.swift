import Foundation
import Testing

/// Secrets off the command line, filters, and deltas.
struct SecretsAndFiltersTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    /// The request that `sync` makes.
    private func request(_ arguments: [String], _ environment: [String: String]) throws -> String {
        let server = try SilentServer()
        let url = arguments.contains("--proxied") ? "ws://127.0.0.1:1/db" : "ws://127.0.0.1:\(server.port)/db"
        let replaced = environment.mapValues { $0.replacing("PORT", with: "\(server.port)") }
        let (process, _, _) = try folder.start(
            ["sync", "db", url] + arguments.filter { $0 != "--proxied" },
            environment: replaced
        )
        let (connection, head) = try server.hear()
        process.terminate()
        process.waitUntilExit()
        close(connection)
        return head
    }

    @Test func `sessions, headers and proxies come from files or the environment too`() throws {
        try folder.run("create", "db")
        try folder.write("0123abc\n", to: "session")
        try folder.write("X-One: 1\nX-Two: 2\n", to: "headers")
        let file = try request(["--session-file", "session", "--header-file", "headers"], [:])
        #expect(file.contains("SyncGatewaySession=0123abc"))
        #expect(file.contains("X-One: 1"))
        #expect(file.contains("X-Two: 2"))
        let variables = try request(
            ["--header", "X-Three: 3"],
            ["LOVESEAT_SESSION": "456def", "LOVESEAT_HEADERS": "X-Four: 4"]
        )
        #expect(variables.contains("SyncGatewaySession=456def"))
        #expect(variables.contains("X-Three: 3"))
        #expect(variables.contains("X-Four: 4"))
        let proxied = try request(["--proxied"], ["LOVESEAT_PROXY": "http://ana:s3cret@127.0.0.1:PORT"])
        #expect(proxied.hasPrefix("CONNECT 127.0.0.1:1 "))
        #expect(proxied.contains("Basic \(Data("ana:s3cret".utf8).base64EncodedString())"))
        #expect(try folder.run("sync", "db", "ws://127.0.0.1:1/db", "--session", "").status == 64)
    }

    @Test func `what a pull's filter leaves out is no failure`() throws {
        let lines = (0..<10).map { "{\"_id\":\"d\($0)\",\"n\":\($0)}" }
        try folder.write(lines.joined(separator: "\n"), to: "data.jsonl")
        try folder.run("import", "b", "data.jsonl")
        try folder.run("create", "a")
        let pull = try folder.run("pull", "a", "--local-db", "b", "--filter", "n >= 6", "--json")
        #expect(pull.status == 0, "\(pull.errors)")
        #expect(pull.output.contains("\"excluded\":6"))
        #expect(pull.output.contains("\"failed\":0"))
        #expect(pull.output.contains("\"pulled\":4"))
        #expect(!pull.errors.contains("cannot pull"))
    }

    @Test(arguments: [
        "a b", "type LIKE \"t%\"", "!a b", "'photo'", "\"photo\"", "exists(photo)", "!a = 1", "!!photo",
        "",
    ])
    func `a filter that is neither a property nor a comparison is refused`(_ filter: String) throws {
        try folder.run("put", "b", "d", "{}")
        try folder.run("create", "a")
        let push = try folder.run("push", "b", "--local-db", "a", "--filter", filter)
        #expect(push.status == 64)
        #expect(push.errors.contains("is not one condition"), "\(push.errors)")
        #expect(push.errors.contains("'!photo'"))
    }

    @Test func `a property of a comparison may have blanks in its name`() throws {
        try folder.run("put", "b", "d", #"{"first name":"Ana"}"#)
        try folder.run("create", "a")
        let push = try folder.run("push", "b", "--local-db", "a", "--filter", "first name = Ana")
        #expect(push.status == 0, "\(push.errors)")
        #expect(try folder.run("ls", "a").lines == ["d"])
    }

    @Test func `what a peer takes away is removed in spite of a filter, and counted apart`() throws {
        try folder.run("put", "b", "d", "{\"n\":7,\"public\":true}")
        try folder.run("create", "a")
        try folder.write("{\"*\":{\"*\":{\"access\":\"read\",\"if\":\"public = true\"}}}", to: "access.json")
        let environment = ["LOVESEAT_PASSWORD": "s3cret"]
        // The peer is known by its address.
        var port = "0"
        func pull() throws -> CommandLineFolder.Outcome {
            let server = try folder.serve(
                "b",
                "--port",
                port,
                "--user",
                "bob",
                "--password-file",
                "password",
                "--access",
                "access.json"
            )
            defer { _ = server.interrupt() }
            port = server.port
            return try folder.run(
                ["pull", "a", server.url, "--user", "bob", "--filter", "n >= 6", "--json"],
                environment: environment
            )
        }
        try folder.write("s3cret\n", to: "password")
        #expect(try pull().output.contains("\"pulled\":1"))
        #expect(try folder.run("ls", "a").lines == ["d"])
        try folder.run("set", "b", "d", "public=false")
        let second = try pull()
        #expect(second.status == 0, "\(second.errors)")
        #expect(second.output.contains("\"takenAway\":1"))
        #expect(second.output.contains("\"pulled\":0"))
        #expect(try folder.run("ls", "a").lines.isEmpty)
    }

    @Test func `a document that a filter leaves out and that cannot be pushed either is counted once`() throws
    {
        try folder.run("put", "b", "d", "{\"n\":1}")
        try folder.run("create", "a")
        let server = try folder.serve("b", "--open")
        defer { _ = server.interrupt() }
        func sync() throws -> CommandLineFolder.Outcome {
            try folder.run(["sync", "a", server.url, "--filter", "n > 2", "--json"])
        }
        let first = try sync()
        #expect(first.output.contains("\"excluded\":1"))
        #expect(first.output.contains("\"failed\":0"))
        // Both sides have a document of the name, and the peer's may not come in.
        try folder.run("put", "a", "d", "{\"n\":7}")
        for _ in 0..<3 {
            let done = try sync()
            let counts = try #require(
                try JSONSerialization.jsonObject(with: Data(done.output.utf8)) as? [String: Any]
            )
            let total = ["pushed", "pulled", "failed", "excluded"].reduce(0) {
                $0 + (counts[$1] as? Int ?? 0)
            }
            #expect(total <= 1, "\(done.output)")
        }
    }

    @Test func `delta bases are kept by other commands, and both sides tell of deltas`() throws {
        let text = String(repeating: "lorem ", count: 200)
        let first = try #require(try folder.run("put", "a", "d", "{\"n\":1,\"t\":\"\(text)\"}").lines.first)
        try folder.run("create", "b")
        #expect(try folder.serve("a", "--delta").interrupt() == 0)
        try folder.run("set", "a", "d", "n=2")
        #expect(try folder.run("get", "a", "d", "--rev", first).status == 0)
        let log = ["--delta", "--log", "replicator=debug"]
        let (server, said) = try folder.serve("b", ["--no-tls"] + log, environment: [:])
        #expect(try folder.run(["push", "a", server.url] + log).status == 0)
        try folder.run("set", "a", "d", "n=5")
        let pushed = try folder.run(["push", "a", server.url] + log)
        #expect(pushed.errors.contains("deltas on this connection: 1 sent"), "\(pushed.errors)")
        #expect(server.interrupt() == 0)
        let told = String(decoding: said.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(told.contains("0 sent, 1 received"))
    }
}
