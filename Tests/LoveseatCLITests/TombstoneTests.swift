import Testing

/// Deletions that a fresh peer does not need, and those that are forgotten.
struct TombstoneTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    private func fill(_ database: String) throws {
        try folder.write((1...20).map { "{\"_id\":\"d\($0)\"}" }.joined(separator: "\n"), to: "in")
        #expect(try folder.run("import", database, "in").status == 0)
        #expect(try folder.run(["rm", database] + (4...20).map { "d\($0)" }).status == 0)
    }

    private func changes(_ database: String) throws -> Int {
        try folder.run("changes", database).output.split(separator: "\n").count
    }

    @Test(arguments: ["", "_default,a.b"])
    func `a fresh peer is sent no old deletions, and a later one arrives`(_ collections: String) throws {
        let options = collections.isEmpty ? [] : ["--collections", collections]
        for name in ["hub", "peer"] { try folder.run(["create", name] + options) }
        try fill("hub")
        func pull() throws {
            let server = try folder.serve("hub")
            #expect(try folder.run("pull", "peer", server.url).status == 0)
            #expect(server.interrupt() == 0)
        }
        try pull()
        #expect(try changes("peer") == 3)
        try folder.run("rm", "hub", "d1")
        try pull()
        #expect(try folder.run("ls", "peer").output == "d2\nd3\n")
    }

    @Test func `compact forgets deletions of an age, and nothing without it`() throws {
        try folder.run("create", "db")
        try fill("db")
        #expect(try folder.run("compact", "db").status == 0)
        #expect(try folder.run("compact", "db", "--tombstones", "1h").status == 0)
        #expect(try changes("db") == 20)
        for wrong in ["", "90", "d", "-1d", "1w", "99999999999999999999d"] {
            #expect(try folder.run("compact", "db", "--tombstones=\(wrong)").status == 64, "\(wrong)")
        }
        let done = try folder.run("compact", "db", "--tombstones", "0s")
        #expect(done.errors.contains("17 tombstones removed"))
        #expect(try changes("db") == 3)
        #expect(try folder.run("check", "db").status == 0)
    }

    @Test func `compact says how many forgotten deletions a known peer was not sent`() throws {
        for name in ["db", "peer"] { try folder.run("create", name) }
        try fill("db")
        let server = try folder.serve("peer")
        #expect(try folder.run("push", "db", server.url).status == 0)
        try folder.run("rm", "db", "d1")
        let lost = try folder.run("compact", "db", "--tombstones", "0s")
        #expect(lost.errors.contains("1 of them had not been pushed to ws://"), "\(lost.errors)")
        try folder.run("rm", "db", "d2")
        #expect(try folder.run("push", "db", server.url).status == 0)
        let sent = try folder.run("compact", "db", "--tombstones", "0s")
        #expect(sent.errors.contains("1 tombstone removed"), "\(sent.errors)")
        #expect(!sent.errors.contains("pushed"), "\(sent.errors)")
        #expect(server.interrupt() == 0)
    }
}
