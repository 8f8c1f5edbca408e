import LoveseatBLIP
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Testing

/// Revisions that come without having been asked for, or twice.
struct UnaskedRevisionTests {
    private let ours: ReplayedPeer

    init() throws { ours = try ReplayedPeer() }

    @Test func `a document that is announced twice in one list arrives once, and the pull goes on`() throws {
        let line = try ours.activeLine()
        let list = #"[[1,"a","1-aa"],[1,"a","1-aa"],[2,"b","1-bb"]]"#
        let answer = try line.ask("changes", [:], list).get()
        #expect(String(decoding: answer.body, as: UTF8.self) == "[[],0,[]]")
        // A gateway sends what it announced twice also twice.
        for _ in 0..<2 { try line.tell("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], "{}") }
        try line.tell("rev", ["id": "b", "rev": "1-bb", "sequence": "2"], "{}", wantsReply: true)
        try line.tell("changes", [:], "null")
        #expect(try line.takeCheckpoints()?["remote"]?.int == 2)
        #expect(line.failure == nil)
        #expect(line.isClosed)
        #expect(try ours.count() == 2)
    }

    @Test func `a document that is announced again while it is expected is asked for once`() throws {
        let line = try ours.activeLine()
        _ = try line.ask("changes", [:], #"[[1,"a","1-aa"]]"#).get()
        let again = try line.ask("changes", [:], #"[[1,"a","1-aa"]]"#).get()
        #expect(String(decoding: again.body, as: UTF8.self) == "[]")
        for _ in 0..<2 { try line.tell("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], "{}") }
        try line.tell("changes", [:], "null")
        try line.takeCheckpoints()
        #expect(line.failure == nil)
        #expect(line.isClosed)
    }

    @Test func `a revision that is here already is answered well though nobody asked for it`() throws {
        let line = try ours.activeLine()
        _ = try line.ask("changes", [:], #"[[1,"a","1-aa"]]"#).get()
        try line.tell("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], "{}")
        let answer = try line.ask("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], "{}")
        #expect(code(answer) == "ok")
        #expect(line.failure == nil)
    }

    @Test
    func `a continuous pull asks again in the same session for what the peer could not send, until it comes`()
        throws
    {
        let line = try ours.activeLine { $0.isContinuous = true }
        let collection = try ours.collection(.default)
        let store = ours.store
        let remote = try store.write { try $0.checkpointTables.remoteNumber("puppet") }
        var fetched: [[String]] = []
        line.onFetch = { notice in
            fetched.append(notice.documentIDs)
            guard fetched.count == 3 else { return true }
            // Now it came.
            let replicas = DatabaseReplicas(
                store: store,
                collections: [collection],
                checkpointIDs: ["cp-x"],
                remote: remote,
                nowMilliseconds: { 0 }
            )
            let replica = replicas.replica(of: 0)
            let failed = try? replica.failures()
            try? replica.forgetFailures(failed ?? [])
            return true
        }
        _ = try line.ask("changes", [:], #"[[1,"a","1-aa"],[2,"b","1-bb"]]"#).get()
        let missing: MessageProperties = ["id": "a", "rev": "1-aa", "sequence": "1", "error": "503"]
        try line.tell("norev", missing, "")
        try line.tell("rev", ["id": "b", "rev": "1-bb", "sequence": "2"], "{}")
        try line.tell("changes", [:], "null")
        try line.takeCheckpoints()
        #expect(fetched == [["a"], ["a"], ["a"]])
        #expect(line.failure == nil)
        #expect(!line.isClosed)
    }

    @Test(arguments: [true, false])
    func `what the peer could not send is asked for again, whether other collections are busy or do nothing`(
        _ isBusy: Bool
    ) throws {
        let names = try (1...3).map { try #require(CollectionName(path: "many.c\($0)")) }
        let line = try ours.activeLine(named: names) { $0.isContinuous = true }
        var fetched: [String] = []
        line.onFetch = { notice in
            fetched.append("\(notice.collection) \(notice.documentIDs)")
            return true
        }
        for index in 0...3 {
            let collection = "\(index)"
            if index == 2 {
                let list = #"[[1,"a","1-aa"]]"#
                _ = try line.ask("changes", ["collection": collection], list).get()
                try line.tell(
                    "norev",
                    ["collection": collection, "id": "a", "rev": "1-aa", "sequence": "1", "error": "503"],
                    ""
                )
            }
            if !isBusy || index == 2 { try line.tell("changes", ["collection": collection], "null") }
        }
        try line.takeCheckpoints()
        try line.runUntilQuiet()
        #expect(fetched.count >= 3, "\(fetched)")
        #expect(fetched.allSatisfy { $0 == #"2 ["a"]"# }, "\(fetched)")
        #expect(line.failure == nil)
        #expect(!line.isClosed)
    }

    @Test(arguments: [true, false])
    func `a revision that nobody asked for is refused and not stored, and the session goes on`(
        _ isActive: Bool
    ) throws {
        let line: ReplayedPeer.Line
        if isActive {
            line = try ours.activeLine { $0.isContinuous = true }
        } else {
            _ = try ours.collection(.default)
            line = try ours.passiveLine()
        }
        let answer = try line.ask("rev", ["id": "x", "rev": "1-aa", "sequence": "9"], "{}")
        #expect(code(answer) == "HTTP/403")
        try line.tell("rev", ["id": "y", "rev": "1-aa", "sequence": "9"], "{}")
        #expect(line.failure == nil)
        #expect(!line.isClosed)
        #expect(try ours.count() == 0)
        _ = try line.ask("changes", [:], #"[[10,"z","1-aa"]]"#).get()
        #expect(code(try line.ask("rev", ["id": "z", "rev": "1-aa", "sequence": "10"], "{}")) == "ok")
        #expect(try ours.count() == 1)
    }
}
