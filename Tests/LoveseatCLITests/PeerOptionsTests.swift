import Foundation
import Testing

/// What can be said about a peer on the command line.
struct PeerOptionsTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    private func ids(_ database: String) throws -> [String] {
        try folder.run("ls", database).output.split(separator: "\n").map(String.init)
    }

    @Test func `filters and lists choose the documents, and why says what became of the others`() throws {
        let lines = (0..<10).map { "{\"_id\":\"d\($0)\",\"n\":\($0),\"at\":{\"city\":\"Oslo \($0 % 2)\"}}" }
        try folder.write(lines.joined(separator: "\n"), to: "data.jsonl")
        try folder.run("import", "a", "data.jsonl")
        try folder.run("create", "b")
        let filters = ["--local-db", "b", "--filter", "n >= 4", "--filter", "at.city = \"Oslo 1\""]
        #expect(try folder.run(["push", "a"] + filters).status == 0)
        #expect(try ids("b") == ["d5", "d7", "d9"])
        #expect(try folder.run(["pending", "a"] + filters).output.contains("d4") == false)
        // Without the filter the rest is to be pushed.
        #expect(try folder.run("pending", "a", "--local-db", "b").output.contains("d4"))
        let later = ["--local-db", "b", "--doc-ids", "d1,d2,d3"]
        #expect(try folder.run(["pending", "a"] + later).output.split(separator: "\n").count == 3)
        #expect(try folder.run(["push", "a"] + later + ["--filter", "!n"]).status == 0)
        func why(_ arguments: String...) throws -> String {
            try folder.run(["why", "a"] + arguments + ["--local-db", "b"]).output
        }
        #expect(try why("d5").hasPrefix("up-to-date:"))
        #expect(try why("d6").hasPrefix("pending:"))
        #expect(try why("d6", "--filter", "n < 2").hasPrefix("filtered:"))
        #expect(try why("none").hasPrefix("not-here:"))
        #expect(try why("d2", "--doc-ids", "d1").hasPrefix("not-listed:"))
        #expect(try why("d2", "--filter", "n < 2").hasPrefix("filtered:"))
        try folder.run("set", "a", "d2", "n=22")
        #expect(try why("d2").hasPrefix("pending:"))
        // Everything again, whatever was done before.
        #expect(try folder.run("push", "a", "--local-db", "b", "--reset").status == 0)
        #expect(try ids("b").count == 10)
        #expect(try why("d2").hasPrefix("up-to-date:"))
    }

    @Test func `what a user's peer refused is listed without a password`() throws {
        try folder.run("put", "a", "d", "{}")
        let arguments = ["a", "ws://127.0.0.1:1/trips", "--user", "ana"]
        let refused = try folder.run(["pending"] + arguments + ["--refused"])
        #expect(refused.status == 0, "\(refused.errors)")
        #expect(refused.output.isEmpty, "\(refused.errors)")
        #expect(try folder.run(["pending"] + arguments).output.contains("d"))
        // A connection needs it.
        #expect(try folder.run(["push"] + arguments).errors.contains("there is no password"))
    }

    @Test func `who asks for the paired peer without one reads how to pair`() throws {
        try folder.run("create", "a")
        let sync = try folder.run("sync", "a", "--paired")
        #expect(sync.status != 0)
        #expect(sync.errors.contains("`loveseat pair show`"))
    }

    @Test func `what is pending for a database of this machine is said while that one is being served`()
        throws
    {
        try folder.run("put", "a", "d", "{}")
        try folder.run("create", "b")
        let server = try folder.serve("b")
        let pending = try folder.run("pending", "a", "--local-db", "b")
        #expect(pending.status == 0, "\(pending.errors)")
        #expect(pending.output.contains("d"), "\(pending.errors)")
        let why = try folder.run("why", "a", "d", "--local-db", "b")
        #expect(why.status == 0, "\(why.errors)")
        #expect(why.output.hasPrefix("pending:"), "\(why.errors)")
        #expect(server.interrupt() == 0)
    }

    @Test func `a refused document has its error, and deltas are sent where asked for`() throws {
        try folder.run("create", "a")
        try folder.run("put", "a", "d", "{\"text\":\"\(String(repeating: "lorem ", count: 100))\",\"n\":1}")
        try folder.run("create", "b")
        let server = try folder.serve("b", "--delta")
        #expect(try folder.run("push", "a", server.url, "--delta").status == 0)
        try folder.run("set", "a", "d", "n=2")
        #expect(try folder.run("push", "a", server.url, "--delta", "--header", "X-Mine: 1").status == 0)
        #expect(try folder.run("push", "a", server.url, "--header", "nothing").status == 64)
        for mistake in ["= 3", "n > 2 and n < 4", "n = 2 || n = 3", "n = 'x'"] {
            #expect(try folder.run("push", "a", server.url, "--filter", mistake).status == 64, "\(mistake)")
        }
        #expect(try folder.run("push", "a", server.url, "--local-db", "b").status == 64)
        #expect(server.interrupt() == 0)
        #expect(try folder.run("get", "b", "d").output.contains("\"n\": 2"))
        try folder.run("set", "b", "d", "n=3")
        try folder.run("set", "a", "d", "n=4")
        let again = try folder.serve("b", "--port", server.port)
        let refused = try folder.run("push", "a", server.url, "--verbose")
        #expect(refused.status == 1)
        // The log names database and peer, collection, document and reason.
        let line = refused.errors.split(separator: "\n").first {
            $0.contains("cannot push") && $0.contains("warning")
        }
        let words = [
            "loveseat.replicator", "a with \(server.url)", "_default._default/d", "conflict", "10409",
        ]
        #expect(words.allSatisfy { line?.contains($0) == true }, "\(refused.errors)")
        #expect(refused.errors.contains("loveseat.network"))
        let quiet = try folder.run("push", "a", server.url, "--reset", "--log", "network=debug")
        #expect(quiet.errors.contains("loveseat.network"))
        #expect(!quiet.errors.contains("loveseat.replicator"))
        #expect(try folder.run("push", "a", server.url, "--log", "nothing=debug").status == 64)
        #expect(try folder.run("why", "a", "d", server.url).output.hasPrefix("in-conflict:"))
        #expect(try folder.run("conflicts", "a").output == "")
        #expect(try folder.run("sync", "a", server.url).status == 0)
        #expect(try folder.run("why", "a", "d", server.url).output.hasPrefix("up-to-date:"))
        #expect(again.interrupt() == 0)
    }
}
