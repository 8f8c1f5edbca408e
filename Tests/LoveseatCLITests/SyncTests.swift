import Foundation
import Testing

/// Two real processes that replicate.
struct SyncTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    private func expectEqual(_ one: String, _ other: String) throws {
        let (left, right) = (try folder.run("export", one), try folder.run("export", other))
        #expect(left.status == 0)
        #expect(right.status == 0)
        #expect(left.output == right.output)
    }

    @Test(arguments: [1, 1_000])
    func `an imported database arrives whole, with deletions, conflicts and a blob`(_ count: Int) throws {
        let lines = (0..<count).map { "{\"_id\":\"doc\($0)\",\"n\":\($0)}" }
        try folder.write(lines.joined(separator: "\n"), to: "data.jsonl")
        try folder.run("import", "a", "data.jsonl")
        try folder.run("create", "b")
        try folder.write("s3cret\n", to: "password")
        let first = try folder.serve("a", "--user", "ana", "--password-file", "password")
        let refused = try folder.run(
            "sync",
            "b",
            first.url,
            "--user",
            "ana",
            environment: ["LOVESEAT_PASSWORD": "no"]
        )
        #expect(refused.status == 77)
        let pulled = try folder.run(
            "sync",
            "b",
            first.url,
            "--user",
            "ana",
            "--password-file",
            "password",
            "--json"
        )
        #expect(pulled.output.contains("\"pulled\":\(count),"))
        #expect(first.interrupt() == 0)
        try expectEqual("a", "b")

        try folder.write(String(repeating: "x", count: 1_000_000), to: "file")
        try folder.run("blob", "put", "a", "photo", "content", "file")
        try folder.run("set", "a", "doc0", "by=a")
        try folder.run("set", "b", "doc0", "by=b")
        try folder.run("put", "b", "both", "{\"by\":\"b\"}")
        try folder.run("put", "a", "both", "{\"by\":\"a\"}")
        if count > 1 {
            try folder.run("rm", "a", "doc1")
            try folder.run("rm", "b", "doc2")
        }
        let second = try folder.serve("a", "--port", first.port)
        let synced = try folder.run("sync", "b", second.url)
        #expect(synced.status == 0, "\(synced.errors)")
        #expect(second.interrupt() == 0)
        try expectEqual("a", "b")
        #expect(try folder.run("blob", "get", "b", "photo", "content").output.count == 1_000_000)
        #expect(try folder.run("check", "a").status == 0)
        #expect(try folder.run("check", "b").status == 0)
    }

    @Test func `a continuous sync survives the death of either side`() throws {
        for number in 0..<200 { try folder.write("{\"_id\":\"a\(number)\"}", to: "a.jsonl") }
        try folder.run("import", "a", "a.jsonl")
        try folder.run("put", "b", "b0", "{}")
        var server = try folder.serve("a")
        let port = server.port
        for round in 0..<4 {
            let (client, _, _) = try folder.start(["sync", "b", server.url, "--continuous"])
            // What was saved before the sync began arrives, whoever dies in the middle.
            try waitForDocument(round == 0 ? "b0" : "b\(round)", in: "a")
            if round % 2 == 0 {
                kill(server.process.processIdentifier, SIGKILL)
                server.process.waitUntilExit()
                try folder.run("put", "a", "more\(round)", "{}")
                server = try folder.serve("a", "--port", port)
                try waitForDocument("more\(round)", in: "b")
            }
            kill(client.processIdentifier, SIGKILL)
            client.waitUntilExit()
            try folder.run("put", "b", "b\(round + 1)", "{}")
        }
        #expect(try folder.run("sync", "b", server.url).status == 0)
        _ = server.interrupt()
        try expectEqual("a", "b")
        #expect(try folder.run("ls", "b").lines.count == 8)
    }

    /// Follows a database's changes, which another process makes, until a document is among them.
    private func waitForDocument(_ id: String, in database: String) throws {
        let (process, output, _) = try folder.start(["changes", database, "--follow"])
        defer {
            process.terminate()
            process.waitUntilExit()
        }
        _ = try output.text { $0.contains("\t\(id)\t") }
    }

    @Test func `the result of a replication has its error and its exit code`() throws {
        try folder.run("create", "db")
        let failed = try folder.run("sync", "db", "http://127.0.0.1:1/db", "--json")
        #expect(failed.status == 69)
        #expect(failed.output.contains("\"exitCode\":69"), "\(failed.output)")
        try folder.run("create", "copy")
        let done = try folder.run("sync", "db", "--local-db", "copy", "--json")
        #expect(done.output.contains("\"exitCode\":0"), "\(done.output)")
    }
}
