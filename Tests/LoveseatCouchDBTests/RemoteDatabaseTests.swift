import AsyncHTTPClient
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// A database of a remote, whose answers may have any form.
struct RemoteDatabaseTests {
    private static let leaf = DocumentLeaf(
        documentID: "x",
        revision: RevisionID(generation: 1, digest: Array("aa".utf8))
    )
    private static let row = #"{"seq":"1-x","id":"a","changes":[{"rev":"1-a"}]}"#

    /// Reads an answer to `_changes` that comes in pieces.
    private func changes(_ pieces: [String]) async throws -> ChangesPage {
        let remote = try ScriptedRemote { _, _ in .pieces(pieces) }
        return try await remote.run {
            try await $0.database.changes(ChangesQuery(.all, since: nil, limit: 10, heartbeat: 1_000))
        }
    }

    // MARK: The feed

    @Test func `heartbeats between rows, before them and behind them are passed over`() async throws {
        let beats = ["\n", "\r\n", "\n\n\n"]
        let page = try await changes(
            ["{\"results\":["] + beats + [Self.row] + beats + [","] + beats
                + [#"{"seq":2,"id":"b","changes":[{"rev":"1-b"}]}"#] + beats + ["],\"last_seq\":2}"] + beats
        )
        #expect(page.changes.map(\.documentID) == ["a", "b"])
        #expect(page.isWhole)
        #expect(page.next?.text == "2")
    }

    @Test(arguments: [
        ("5", "5"), ("\"5-x\"", "\"5-x\""), (#"[5,"x"]"#, #"[5,"x"]"#), ("\"\"", "\"\""), ("0", "0"),
        (#"{"a":1}"#, #"{"a":1}"#), ("18446744073709551616", "18446744073709551616"),
        // Without one, the last row says where to go on.
        ("null", "\"1-x\""),
    ])
    func `a feed goes on at the sequence of its end, whatever its form`(_ sequence: String, _ next: String)
        async throws
    {
        let page = try await changes(["{\"results\":[\(Self.row)],\"last_seq\":\(sequence)}"])
        #expect(page.next?.text == next)
        #expect(page.isWhole)
        // It may come first.
        let other = try await changes(["{\"last_seq\":\(sequence),\"pending\":3,\"results\":[\(Self.row)]}"])
        #expect(other.next?.text == next)
        #expect(other.end.pending == 3)
    }

    @Test func `of a feed that ends inside a row, the rows before it count`() async throws {
        let end = #"],"last_seq":9}"#
        let rows = "{\"results\":[\(Self.row),\(Self.row.replacing("1-x", with: "2-x"))"
        for length in [rows.count - 30, rows.count - 1] {
            let page = try await changes([String(rows.prefix(length))])
            #expect(page.changes.map(\.sequence.text) == ["\"1-x\""])
            #expect(page.next?.text == "\"1-x\"")
            #expect(!page.isWhole)
        }
        // All rows are there, and what follows is not known.
        for length in 0..<end.count {
            let page = try await changes([rows, String(end.prefix(length))])
            #expect(page.changes.count == 2)
            #expect(page.next?.text == "\"2-x\"")
            #expect(!page.isWhole)
        }
        #expect(try await changes([rows, end]).isWhole)
    }

    @Test func `a feed whose connection breaks is asked for again`() async throws {
        let remote = try ScriptedRemote { _, number in
            .pieces(["{\"results\":[\(Self.row)", "],\"last_seq\":1}"], isCut: number < 3)
        }
        let page = try await remote.run {
            try await $0.database.changes(ChangesQuery(.all, since: nil, limit: 10))
        }
        #expect(page.isWhole)
        #expect(page.changes.count == 1)
        #expect(remote.transport.requests.count == 4)
    }

    @Test(arguments: ["", "{", "{\"results\":[", "{\"results\":[{\"seq\":1,\"id\":\"a\""])
    func `a feed that ends before its first row is asked for again, and then an error`(_ text: String)
        async throws
    {
        let remote = try ScriptedRemote { _, _ in .json(200, text) }
        let error = await #expect(throws: LoveseatError.self) {
            try await remote.run { try await $0.database.changes(ChangesQuery(.all, since: nil, limit: 10)) }
        }
        #expect(error?.code == .webSocketAbnormalClose)
        #expect(remote.transport.requests.count == 5)
    }

    @Test func `a remote that takes no body is asked by the URL`() async throws {
        let remote = try ScriptedRemote { request, _ in
            request.method == "POST" ? .json(405) : .json(200, "{\"results\":[\(Self.row)],\"last_seq\":1}")
        }
        let found = try await remote.run { remote in
            _ = try await remote.database.changes(of: ["a"])
            return try await remote.database.changes(of: ["a"])
        }
        #expect(found.changes.map(\.documentID) == ["a"])
        #expect(remote.transport.requests.map(\.method).prefix(2) == ["POST", "GET"])
        #expect(remote.transport.requests.dropFirst().allSatisfy { $0.method == "GET" })
    }

    // MARK: Answers of another type or size

    @Test(arguments: ["", "<html>", "nul", "{", "[", "7 7"])
    func `an answer that is not JSON is an error of the remote`(_ text: String) async throws {
        let remote = try ScriptedRemote { _, _ in .json(200, text) }
        try await remote.run { (remote) async throws -> Void in
            let database = remote.database
            for request in [
                { _ = try await database.instance() }, { _ = try await database.answer(.copy, "c") },
                { _ = try await database.differences([("x", [Self.leaf.revision])]) },
                { _ = try await database.answer(.save(.emptyObject, replacing: nil), "c") },
            ] as [() async throws -> Void] {
                let error = await #expect(throws: LoveseatError.self) { try await request() }
                #expect(error?.code == .remoteError)
            }
        }
    }

    @Test(arguments: ["null", "7", "\"x\"", "true", "[]", "{}"])
    func `an answer of another type says nothing that was not said`(_ text: String) async throws {
        let remote = try ScriptedRemote { _, _ in .json(200, text) }
        try await remote.run { (remote) async throws -> Void in
            #expect(try await remote.database.instance() == nil)
            #expect(try await remote.database.bulkGet([Self.leaf]) == nil)
            // A list of refused documents, and an object of missing revisions.
            if text != "[]" {
                let error = await #expect(throws: LoveseatError.self) {
                    try await remote.database.write([Array("{}".utf8)], of: ["x"])
                }
                #expect(error?.code == .remoteError)
            }
            if text != "{}" {
                let error = await #expect(throws: LoveseatError.self) {
                    try await remote.database.differences([("x", [Self.leaf.revision])])
                }
                #expect(error?.code == .remoteError)
            }
        }
    }

    @Test func `an answer that is too long for what was asked is not held in memory`() async throws {
        let long = "{\"x\":\"\(String(repeating: "x", count: 1 << 20))\"}"
        let remote = try ScriptedRemote { _, _ in .json(200, long) }
        try await remote.run { (remote) async throws -> Void in
            let error = await #expect(throws: LoveseatError.self) { try await remote.database.instance() }
            #expect(error?.code == .remoteError)
            #expect(error?.message.contains("1048576") == true)
        }
    }

    @Test func `one damaged document of many costs only its own answer`() async throws {
        let remote = try ScriptedRemote { _, number in
            // The first half of the first half is damaged.
            [0, 1, 2].contains(number)
                ? .json(200, #"{"results":[{"id":"x""#)
                : .json(200, #"{"results":[{"id":"x","docs":[{"ok":{"_id":"x","_rev":"1-aa"}}]}]}"#)
        }
        let items = try await remote.run {
            try await $0.database.bulkGet([Self.leaf, Self.leaf, Self.leaf, Self.leaf])
        }
        #expect(items?.first?.documents.isEmpty == true)
        #expect(items?.dropFirst().contains { !$0.documents.isEmpty } == true)
    }

    // MARK: Writing

    @Test(arguments: [(403, true), (201, false), (400, false), (404, false), (500, false)])
    func `only a refusal of no documents at all is a refusal of all`(_ status: Int, _ isRefusal: Bool)
        async throws
    {
        let remote = try ScriptedRemote { _, _ in .json(status, status == 201 ? "[]" : #"{"reason":"no"}"#) }
        let refusal = try await remote.run { try await $0.database.refusalOfWrites() }
        #expect((refusal != nil) == isRefusal)
        #expect(refusal?.reason == (isRefusal ? "no" : nil))
    }
}
