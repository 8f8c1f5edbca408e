import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// What a peer says of a document's history beside a revision (docs/extensions.md, "Trees").
struct TreeTests {
    private let ours: ReplayedPeer
    private let line: ReplayedPeer.Line

    init() throws {
        ours = try ReplayedPeer()
        line = try ours.passiveLine()
        try ours.seed(Message(["id": "d", "rev": "2-bb", "history": "1-aa"]), in: .default)
    }

    private func propose(
        _ revision: String,
        over server: String = "",
        announces: Bool = true,
        known: String? = nil
    )
        throws -> Message
    {
        var properties: MessageProperties = announces ? ["loveseat": "trees-2"] : [:]
        properties["loveseat_known"] = known
        return try line.ask("proposeChanges", properties, "[[\"d\",\"\(revision)\",\"\(server)\"]]").get()
    }

    private func push(_ revision: String, history: String, _ tree: String) throws -> Result<
        Message, ReplyError
    > {
        let body = "{\"mine\":1}"
        let properties: MessageProperties = [
            "id": "d", "rev": revision, "history": history, "sequence": "1", "noconflicts": "true",
            "loveseat_tree": String(tree.utf8.count),
        ]
        return try line.ask("rev", properties, body + tree)
    }

    private func tree() throws -> RevisionTree {
        let handle = try ours.collection(.default)
        let record = try ours.store.readRows { try $0.record("d", in: handle) }
        return try #require(record).tree()
    }

    @Test func `a revision of another line is taken, and the answer says why another one is current`() throws
    {
        #expect(try propose("2-aa").body == Array("[]".utf8))
        let known = #"{"current":"2-aa","lines":[["2-aa","1-aa"]]}"#
        let answer = try push("2-aa", history: "1-aa", known).get()
        #expect(answer.properties["loveseat_tree"] == "true")
        let json = try JSONElement(parsing: answer.body)
        #expect(json["current"]?.string == "2-bb")
        #expect(
            json["lines"]?.items.map { $0.items.compactMap(\.string) } == [
                ["2-bb", "1-aa"], ["2-aa", "1-aa"],
            ]
        )
        #expect(json["bodies"]?.members.map(\.key) == ["2-bb"])
        #expect(try tree().contains(#require(RevisionID("2-aa"))))
    }

    @Test func `what the peer gave up is given up here`() throws {
        _ = try propose("2-aa")
        let known = #"{"current":"2-aa","lines":[["2-aa","1-aa"],["2-bb","1-aa"]],"closed":["2-bb"]}"#
        let answer = try push("2-aa", history: "1-aa", known).get()
        #expect(answer.properties["loveseat_tree"] == nil)
        #expect(try tree().current?.id.text == "2-aa")
    }

    @Test func `a peer that has the current revision and knows less is told the rest`() throws {
        _ = try propose("2-aa")
        let known = #"{"current":"2-aa","lines":[["2-aa","1-aa"]],"closed":["2-bb"]}"#
        let answer = try push("2-aa", history: "1-aa", known).get()
        let json = try JSONElement(parsing: answer.body)
        #expect(json["current"]?.string == "2-aa")
        #expect(json["lines"]?.items.map { $0[0]?.string } == ["2-bb", "2-aa"])
        // The digest of what both know now: docs/extensions.md has the text that it is taken of.
        let text = "2-aa,2-bb;2-bb;"
        let digest = Hashing.sha1(Array(text.utf8)).hexadecimalText
        let same = digest.prefix(16)
        #expect(try propose("2-aa", known: #"{"0":"\#(same)"}"#).body == Array("[304]".utf8))
        for other in [#"{"0":"0123456789abcdef"}"#, "{}", "[]", "nonsense", #"{"7":"\#(same)","x":1}"#] {
            #expect(try propose("2-aa", known: other).body == Array("[]".utf8), "\(other)")
        }
    }

    @Test(arguments: [
        #"{"current":"2-aa","lines":[["2-aa","3-cc"]]}"#, #"{"current":"2-aa","lines":[["2-aa","2-aa"]]}"#,
        #"{"current":"2-aa","lines":[["2-aa","1-aa"],["2-bb","1-ff"]]}"#,
        #"{"current":"2-aa","lines":[["2-aa","1-aa"]],"copies":["3-cc"]}"#,
        #"{"current":"9-aa","lines":[["2-aa","1-aa"]]}"#, #"{"lines":[]}"#, "[]", "x", "{}",
        #"{"current":"2-aa","lines":[["2-aa","1-aa"]],"bodies":{"2-bb":7}}"#,
        #"{"current":"2-aa","lines":[["2-aa","1-aa"]],"bodies":{"2-bb":{"_id":"x"}}}"#,
        #"{"current":"2-aa","lines":[["2-aa","1-aa"]],"closed":["nonsense"]}"#,
        #"{"current":"2-aa","lines":[["4294967295-aa","1-aa"],["2-aa","1-aa"]]}"#,
        #"{"current":"2-aa","lines":["# + (0..<1_100).map { "[\"2-\(1_000 + $0)\"]" }.joined(separator: ",")
            + #",["2-aa"]]}"#,
        #"{"current":"2-aa","lines":[["2-aa"]],"closed":["#
            + (0..<5_000).map { "\"2-\(10_000 + $0)0\"" }.joined(separator: ",") + "]}",
    ])
    func `a tree that cannot be is an error, and changes nothing`(_ bad: String) throws {
        let before = try tree()
        _ = try propose("2-aa")
        let answer = code(try push("2-aa", history: "1-aa", bad))
        #expect(["HTTP/400", "LiteCore/4"].contains(answer), "\(answer)")
        #expect(try tree() == before)
    }

    @Test func `a tree from a peer that did not announce trees is refused`() throws {
        let before = try tree()
        _ = try propose("3-cc", over: "2-bb", announces: false)
        let known = #"{"current":"3-cc","lines":[["3-cc","2-bb"]]}"#
        #expect(code(try push("3-cc", history: "2-bb", known)) == "HTTP/400")
        #expect(try tree() == before)
    }

    @Test func `random bytes for a tree never trap`() throws {
        var generator = SeededGenerator(seed: 7)
        let good =
            #"{"current":"2-aa","lines":[["2-aa","1-aa"]],"closed":["2-bb"],"copies":["3-00000002bb00000000aa00000123456789abcdef"]}"#
        for _ in 0..<60 {
            var bytes = Array(good.utf8)
            for _ in 0..<generator.int(1...4) {
                bytes[generator.int(0...bytes.count - 1)] = UInt8(generator.int(32...126))
            }
            _ = try propose("2-aa")
            _ = try push("2-aa", history: "1-aa", String(decoding: bytes, as: UTF8.self))
        }
        #expect(try tree().problems.isEmpty)
    }
}
