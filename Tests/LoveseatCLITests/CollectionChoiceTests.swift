import Foundation
import Testing

/// Which collections `sync`, `push` and `pull` replicate if none is named.
struct CollectionChoiceTests {
    private let folder: CommandLineFolder
    private let login = ["--user", "bob", "--password-file", "pw"]

    init() throws {
        folder = try CommandLineFolder()
        for collection in ["_default", "travel.notes", "travel.sights", "travel.hidden"] {
            try folder.run("put", "a", "d", "{}", "-c", collection)
        }
        try folder.write("pw", to: "pw")
    }

    /// Serves the database to Bob, who may write to some of its collections.
    private func serve(permitting collections: String...) throws -> CommandLineFolder.Server {
        let rights = collections.map { "\"\($0)\":\"write\"" }.joined(separator: ",")
        try folder.write("{\"bob\":{\(rights)}}", to: "rights")
        return try folder.serve("a", "--user", "bob", "--password-file", "pw", "--access", "rights")
    }

    /// The lines that say what was not replicated.
    private func remarks(_ outcome: CommandLineFolder.Outcome) -> [Substring] {
        outcome.errors.split(separator: "\n").filter { $0.contains("not replicated, because") }
    }

    @Test(arguments: ["", "travel.notes", "travel.notes,travel.sights"])
    func `a user whose rights name collections need not name them`(_ here: String) throws {
        let server = try serve(permitting: "travel.notes")
        defer { _ = server.interrupt() }
        try folder.run(["create", "copy"] + (here.isEmpty ? [] : ["--collections", here]))
        for _ in 0..<2 {
            let said = try folder.run(["sync", "copy", server.url] + login)
            #expect(said.status == 0, "\(said.errors)")
            let remarks = remarks(said)
            #expect(remarks.count == 1, "\(said.errors)")
            #expect(remarks.first?.contains("_default._default") == true, "\(said.errors)")
            #expect(remarks.first?.contains("travel.sights") == here.contains("travel.sights"))
        }
        #expect(try folder.run("ls", "copy", "-c", "travel.notes").lines == ["d"])
        #expect(try folder.run("ls", "copy").lines.isEmpty)
        // Those that are named are meant.
        let named = try folder.run(["sync", "copy", server.url, "--collections", "travel.sights"] + login)
        #expect(named.status == 66 || named.status == 77)
    }

    @Test(arguments: [["my.own"], ["travel.hidden"], ["my.own", "travel.hidden", "my.other"]])
    func `collections that the peer lacks, and others that it forbids, are left out`(_ here: [String]) throws
    {
        let server = try serve(permitting: "travel.notes", "travel.sights")
        defer { _ = server.interrupt() }
        for collection in here { try folder.run("put", "copy", "mine", "{}", "-c", collection) }
        for round in 0..<3 {
            let said = try folder.run(["sync", "copy", server.url, "--json"] + login)
            #expect(said.status == 0, "\(said.errors)")
            #expect(said.output.contains("\"pulled\":\(round == 0 ? 2 : 0),"), "\(said.output)")
            let remarks = remarks(said)
            #expect(remarks.count == 1, "\(said.errors)")
            for collection in here {
                #expect(remarks.first?.contains("\(collection) (1 document)") == true, "\(said.errors)")
                let left = "{\"collection\":\"\(collection)\",\"documents\":1}"
                #expect(said.output.contains(left), "\(said.output)")
            }
            #expect(said.output.contains("{\"collection\":\"_default._default\",\"documents\":0}"))
        }
        for collection in ["travel.notes", "travel.sights"] {
            #expect(try folder.run("ls", "copy", "-c", collection).lines == ["d"])
            #expect(try folder.run("put", "copy", "new", "{}", "-c", collection).status == 0)
        }
        let push = try folder.run(["push", "copy", server.url, "--quiet"] + login)
        #expect(push.status == 0, "\(push.errors)")
        // A warning, which --quiet does not suppress.
        #expect(remarks(push).count == 1, "\(push.errors)")
        let again = try folder.run(["push", "copy", server.url] + login)
        #expect(again.errors.contains("0 pushed, 0 pulled, 0 failed in "), "\(again.errors)")
        #expect(again.errors.contains("; not replicated: "), "\(again.errors)")
        for collection in ["travel.notes", "travel.sights"] {
            #expect(try folder.run("ls", "a", "-c", collection).lines == ["d", "new"])
        }
    }

    @Test func `a peer that has none of the collections is an error, which names them all`() throws {
        let server = try folder.serve("a", "--collections", "travel.notes")
        defer { _ = server.interrupt() }
        try folder.run("create", "copy", "--collections", "my.own")
        let said = try folder.run("sync", "copy", server.url, "--json")
        #expect(said.status == 66, "\(said.errors)")
        #expect(said.errors.contains("'_default', 'my.own'"), "\(said.errors)")
        #expect(said.errors.contains("name them with --collections"), "\(said.errors)")
        #expect(remarks(said).isEmpty)
        #expect(said.lines.count == 1)
    }

    @Test func `a collection that neither side has is not left behind, and one that the peer has is`() throws
    {
        let server = try folder.serve("a")
        defer { _ = server.interrupt() }
        for database in ["copy", "other"] { try folder.run("create", database) }
        let secure = "wss://127.0.0.1:1/a"
        for (arguments, status) in [
            ([server.url], 66), ([server.url, "--continuous"], 66), (["--local-db", "other"], 66),
            (["--local-db", "none"], 66), (["ws://127.0.0.1:1/a"], 69),
            (["http://127.0.0.1:1/a"], 69), ([secure, "--create-target"], 64),
            ([secure, "--selector", "{}"], 64), ([secure, "--header", "x"], 64),
            ([secure, "--pin", "x"], 64),
            ([secure, "--ca", "none.pem"], 66), (["nonsense"], 64),
        ] {
            let command = ["sync", "copy"] + arguments + ["--collections", "travle.sights"]
            let outcome = try folder.run(command)
            #expect(outcome.status == Int32(status), "\(arguments): \(outcome.errors)")
            #expect(!outcome.errors.contains("created the collection"), "\(arguments): \(outcome.errors)")
            #expect(try !folder.run("info", "copy", "--json").output.contains("travle"), "\(arguments)")
        }
        let right = try folder.run("sync", "copy", server.url, "--collections", "travel.sights")
        #expect(right.status == 0, "\(right.errors)")
        #expect(right.errors.contains("created the collection travel.sights in copy"), "\(right.errors)")
        #expect(try folder.run("ls", "copy", "-c", "travel.sights").lines == ["d"])
    }

    @Test(arguments: ["pending", "why"])
    func `the help of commands that do not connect does not say that they create collections`(
        _ command: String
    )
        throws
    {
        let words = try folder.run(command, "--help").output.split(whereSeparator: \.isWhitespace)
        let help = words.joined(separator: " ")
        #expect(help.contains("Pull and sync create those that only the peer has."), "\(help)")
        #expect(!help.contains("do not exist here are created"))
        try folder.run("create", "copy")
        let document = command == "why" ? ["d"] : []
        let typo = [command, "copy"] + document + ["ws://127.0.0.1:1/a", "--collections", "travle.sights"]
        #expect(try folder.run(typo).status == 66)
    }
}
