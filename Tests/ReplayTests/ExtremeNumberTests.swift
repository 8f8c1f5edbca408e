import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Testing

/// Numbers of a peer's at the ends of their ranges.
struct ExtremeNumberTests {
    private let ours: ReplayedPeer

    init() throws { ours = try ReplayedPeer() }

    private static let highest = "4294967295-aa"

    @Test func `a pushed revision of the highest generation is refused, and is not stored`() throws {
        let line = try ours.passiveLine()
        _ = try line.ask("proposeChanges", [:], #"[["d","1-aa"]]"#).get()
        let properties: MessageProperties = ["id": "d", "rev": "4294967295-aa", "sequence": "1"]
        #expect(code(try line.ask("rev", properties, "{}")) == "HTTP/400")
        #expect(try ours.count() == 0)
        #expect(line.failure == nil)
    }

    @Test
    func `an announced revision of the highest generation fails alone, and the rest of its list arrives`()
        throws
    {
        let line = try ours.activeLine()
        let list = #"[[1,"d","4294967295-aa"],[2,"e","1-bb"]]"#
        let answer = try line.ask("changes", [:], list).get()
        #expect(String(decoding: answer.body, as: UTF8.self) == "[0,[]]")
        try line.tell("rev", ["id": "e", "rev": "1-bb", "sequence": "2"], "{}")
        try line.tell("changes", [:], "null")
        try line.takeCheckpoints()
        #expect(try ours.count() == 1)
        #expect(try ours.record("e") != nil)
        #expect(line.failure == nil)
        #expect(line.isClosed)
    }

    @Test func `histories and delta bases of the highest generation are refused`() throws {
        let line = try ours.passiveLine { $0.usesDeltas = true }
        for (name, value) in [("history", Self.highest), ("deltaSrc", Self.highest)] {
            _ = try line.ask("proposeChanges", [:], #"[["d","2-bb"]]"#).get()
            var properties: MessageProperties = ["id": "d", "rev": "2-bb", "sequence": "1"]
            properties[name] = value
            #expect(code(try line.ask("rev", properties, "{}")) != "ok")
        }
        #expect(try ours.count() == 0)
        #expect(line.failure == nil)
    }

    @Test func `ancestors of the highest generation make no history`() {
        let top = RevisionID(generation: .max, digest: [1])
        let low = RevisionID(generation: 1, digest: [2])
        let history = RevisionHistory.toSend([top, low], of: top, known: [low], limit: 5)
        #expect(history.count <= 5)
    }

    @Test(arguments: ["18446744073709551615", "18446744073709551614", "9223372036854775807", "-1", "x"])
    func `a subscription may begin at any number`(_ since: String) throws {
        try ours.seed(Message(["id": "d", "rev": "1-aa"]), in: .default)
        let line = try ours.passiveLine()
        let answer = try line.ask("subChanges", ["since": since, "continuous": "true"], "")
        #expect(code(answer) == "ok")
        #expect(line.failure == nil)
    }

    @Test func `sizes that a peer announces add up without overflowing`() throws {
        let line = try ours.activeLine()
        let most = Int.max
        let list = #"[[1,"a","1-aa",0,\#(most)],[2,"b","1-aa",0,\#(most)],[3,"c","1-aa",0,\#(most)]]"#
        _ = try line.ask("changes", [:], list).get()
        for (index, id) in ["a", "b", "c"].enumerated() {
            try line.tell("rev", ["id": id, "rev": "1-aa", "sequence": "\(index + 1)"], "{}")
        }
        try line.tell("changes", [:], "null")
        try line.takeCheckpoints()
        #expect(try ours.count() == 3)
        #expect(line.failure == nil)
    }

    @Test(arguments: ["HTTP", "WebSocket", "Network", "LiteCore", "POSIX"], [Int.max, Int.min, -1])
    func `an error code of any size is an error like another`(_ domain: String, _ number: Int) throws {
        let line = try ours.activeLine()
        _ = try line.ask("changes", [:], #"[[1,"a","1-aa"]]"#).get()
        let digest = BlobDigest(sha1: [UInt8](repeating: 7, count: 20))
        let body = #"{"b":{"@type":"blob","digest":"\#(digest)","length":\#(Int.max)}}"#
        try line.tell("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], body)
        let request = try #require(line.take("getAttachment").first)
        try line.puppet.reply(ReplyError(domain, number, "no"), to: request.number)
        try line.runUntilQuiet()
        #expect(try ours.count() == 0)
        #expect(line.failure == nil)
    }

    @Test(arguments: [Int.max, Int.min, -1, 99_999])
    func `a proposal may be refused with any number`(_ status: Int) throws {
        try ours.seed(Message(["id": "d", "rev": "1-aa"]), in: .default)
        let line = try ours.activeLine { $0.pushes = true }
        let offer = try #require(line.take("proposeChanges").first { !$0.message.noReply })
        try line.puppet.reply(Message(body: Array("[\(status)]".utf8)), to: offer.number)
        try line.runUntilQuiet()
        #expect(line.failure == nil)
    }

    @Test func `lengths of history of any size are taken`() throws {
        try ours.seed(Message(["id": "d", "rev": "2-bb", "history": "1-aa"]), in: .default)
        for text in ["\(Int.max)", "\(Int.min)", "0", "x"] {
            let line = try ours.activeLine { $0.pushes = true }
            let offer = try #require(line.take("proposeChanges").first { !$0.message.noReply })
            try line.puppet.reply(Message(["maxHistory": text]), to: offer.number)
            try line.runUntilQuiet()
            #expect(line.take("rev").count == 1)
            #expect(line.failure == nil)
        }
    }

    @Test func `checkpoints with numbers of any size are read`() throws {
        for body in [
            #"{"local":18446744073709551615,"remote":18446744073709551615}"#,
            #"{"localCompleted":[18446744073709551615,18446744073709551615]}"#,
            #"{"localCompleted":[0,18446744073709551615,5,0,18446744073709551614,1]}"#,
        ] {
            var checkpoint = Checkpoint(try JSONElement(parsing: Array(body.utf8)))
            _ = checkpoint.intersect(Checkpoint())
            #expect(checkpoint.json(time: 0).bytes.count > 2)
            var other = Checkpoint(completed: SequenceSet([0...10]), remote: RemoteSequence(3))
            _ = other.intersect(Checkpoint(try JSONElement(parsing: Array(body.utf8))))
            #expect(other.completed.completeUpTo ?? 0 <= 10)
        }
    }

    @Test func `a document that has the highest generation already is not edited, and stays as it is`() throws
    {
        try ours.seed(Message(["id": "d", "rev": "4294967295-aa"]), in: .default)
        let handle = try ours.collection(.default)
        let body = JSONText(canonical: ["n": 1])
        let error = #expect(throws: LoveseatError.self) {
            try ours.store.write { transaction in
                try transaction.save("d", in: handle, body: body, isDeleted: false, condition: .lastWriteWins)
            }
        }
        #expect(error?.code == .badRevisionID)
        #expect(try ours.record("d")?.revision.generation == .max)
    }
}
