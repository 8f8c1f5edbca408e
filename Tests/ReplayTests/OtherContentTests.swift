import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// One revision ID stands for one content, whatever a peer of Couchbase's wire sends for it.
struct OtherContentTests {
    private static let bodies = [
        #"{"n":1}"#, #"{"n":2}"#, "{}", #"{"é":1}"#, #"{"e\#u{301}":1}"#, #"{"a":[1,{"b":null}]}"#,
    ]
    private let ours: ReplayedPeer
    private let line: ReplayedPeer.Line

    init() throws {
        ours = try ReplayedPeer()
        line = try ours.passiveLine()
    }

    /// Stores a revision as if another connection had brought it.
    private func store(_ id: String, _ body: String, isDeleted: Bool = false) throws {
        var properties: MessageProperties = ["id": id, "rev": "2-bb", "history": "1-aa"]
        if isDeleted { properties["deleted"] = "1" }
        try ours.seed(Message(properties, body: Array(body.utf8)), in: .default)
    }

    private func send(_ id: String, _ body: String, isDeleted: Bool = false) throws -> String {
        var properties: MessageProperties = ["id": id, "rev": "2-bb", "history": "1-aa", "sequence": "1"]
        if isDeleted { properties["deleted"] = "1" }
        return code(try line.ask("rev", properties, body))
    }

    @Test(arguments: [false, true])
    func `other content for a revision that is here is refused and reported, and replaces nothing`(
        _ isAsked: Bool
    ) throws {
        var random = SeededGenerator(seed: 1)
        var (contradicted, unheard): (Set<String>, Set<String>) = ([], [])
        for index in PropertySeeds.of("CONTENT", 60) {
            let id = "d\(index)"
            let (first, second) = (random.pick(Self.bodies), random.pick(Self.bodies))
            let (wasDeleted, isDeleted) = (random.chance(0.2), random.chance(0.2))
            if isAsked { _ = try line.ask("proposeChanges", [:], #"[["\#(id)","2-bb"]]"#).get() }
            try store(id, first, isDeleted: wasDeleted)
            // Many peers keep nothing of what a deletion says.
            let isSame =
                wasDeleted == isDeleted
                && (first.isExactly(second) || (isDeleted && [first, second].contains("{}")))
            // Of a deletion that was not asked for nothing is compared.
            let isHeard = isAsked || (!isDeleted && !wasDeleted)
            let answer = try send(id, second, isDeleted: isDeleted)
            if isHeard {
                #expect(answer == (isSame ? "ok" : "HTTP/409"), "\(first), \(second)")
                if !isSame { contradicted.insert(id) }
            } else {
                unheard.insert(id)
            }
            #expect(try ours.record(id)?.body.description.isExactly(first) == true)
            #expect(try ours.record(id)?.isDeleted == wasDeleted)
        }
        let reported = line.reports.compactMap { report -> String? in
            guard case .document(let event) = report, event.error?.code == .httpConflict else { return nil }
            return event.documentID
        }
        #expect(Set(reported).subtracting(unheard) == contradicted)
        #expect(!contradicted.isEmpty)
        #expect(line.failure == nil)
    }

    @Test func `the same content in another spelling is taken for what is here`() throws {
        try store("d", #"{"n":1,"m":100}"#)
        #expect(try send("d", #"{ "m" : 1e2, "n" : 1.0 }"#) == "ok")
        #expect(try ours.record("d")?.body.description == #"{"n":1,"m":100}"#)
    }

    @Test func `a tree that brings other content for a leaf that is here is refused, and replaces nothing`()
        throws
    {
        try store("d", #"{"n":1}"#)
        let before = try #require(try ours.record("d")).tree()
        for (known, isFine) in [
            (#"{"2-bb":{"n":1}}"#, true), (#"{"2-bb":{"n":2}}"#, false), ("{}", true),
        ] {
            let other = try ReplayedPeer()
            let line = try other.passiveLine()
            try other.seed(
                Message(["id": "d", "rev": "2-bb", "history": "1-aa"], body: Array(#"{"n":1}"#.utf8)),
                in: .default
            )
            _ = try line.ask("proposeChanges", ["loveseat": "trees-2"], #"[["d","2-cc"]]"#).get()
            let tree = #"{"current":"2-cc","lines":[["2-cc","1-aa"],["2-bb","1-aa"]],"bodies":\#(known)}"#
            let answer = try line.ask(
                "rev",
                [
                    "id": "d", "rev": "2-cc", "history": "1-aa", "sequence": "1", "noconflicts": "true",
                    "loveseat_tree": String(tree.utf8.count),
                ],
                "{}" + tree
            )
            #expect(code(answer) == (isFine ? "ok" : "HTTP/409"))
            let after = try #require(try other.record("d")).tree()
            #expect(isFine ? after.contains(try #require(RevisionID("2-cc"))) : after == before)
        }
    }

    @Test func `a deletion whose ID is known only as an ancestor is taken`() throws {
        try ours.seed(Message(["id": "d", "rev": "3-cc", "history": "2-bb,1-aa"]), in: .default)
        #expect(try send("d", "{}", isDeleted: true) == "ok")
        #expect(try ours.record("d")?.revision.text == "3-cc")
    }
}
