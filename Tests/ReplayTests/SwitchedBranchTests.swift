import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Gateways with `allow_conflicts`: when the winner is deleted, the other branch is announced again (gateway.md 56). The
/// messages have the form of recorded ones (`gateway-conflict-deleted`).
struct SwitchedBranchTests {
    private let ours: ReplayedPeer
    private let line: ReplayedPeer.Line

    init() throws {
        ours = try ReplayedPeer()
        line = try ours.activeLine { ($0.pushes, $0.isContinuous) = (true, true) }
    }

    /// Has the gateway announce its current revision, and send it if that is wanted; returns whether it was.
    @discardableResult
    private func announce(_ revision: String, _ sequence: Int, history: String? = nil, _ body: String) throws
        -> Bool
    {
        let row = #"[[\#(sequence),"x","\#(revision)"]]"#
        let answer = try JSONElement(parsing: try line.ask("changes", [:], row).get().body)
        guard answer[0]?.kind == .array else { return false }
        var properties: MessageProperties = ["id": "x", "rev": revision, "sequence": String(sequence)]
        properties["history"] = history
        try line.tell("rev", properties, body)
        return true
    }

    private func current() throws -> String? { try ours.record("x")?.revision.text }

    private let first = "1-9580f4bb5ca0645109b20bd23c4ec182f2743cd0"
    private let one = "2-1f53b30cc806f66863e08be4bcc60faf"
    private let other = "2-52ccfa34cf8dbccc1dd57c12ddd7d614"

    @Test(arguments: [true, false])
    func `a branch that is current again at a gateway comes back, and nothing is pushed`(_ isHigher: Bool)
        throws
    {
        let (loser, winner) = isHigher ? (other, one) : (one, other)
        try announce(first, 1, #"{"n":0}"#)
        try announce(loser, 2, history: first, #"{"n":1}"#)
        // The gateway says of each that it is the current one, whatever its rank is here.
        try announce(winner, 5, history: first, #"{"n":2}"#)
        #expect(try current() == winner)
        // Its tombstone is not announced: the gateway's current revision is the other branch.
        try announce(loser, 7, history: first, #"{"n":1}"#)
        #expect(try current() == loser)
        #expect(try ours.record("x")?.body.description == #"{"n":1}"#)
        #expect(line.take("proposeChanges").filter { $0.message.body != Array("[]".utf8) }.isEmpty)
        // And back once more.
        try announce(winner, 9, history: first, #"{"n":2}"#)
        #expect(try current() == winner)
        #expect(line.take("proposeChanges").filter { $0.message.body != Array("[]".utf8) }.isEmpty)
        #expect(line.failure == nil)
    }

    @Test func `a branch that an edit here had closed comes back too`() throws {
        try announce(first, 1, #"{"n":0}"#)
        try announce(one, 2, history: first, #"{"n":1}"#)
        try announce(other, 5, history: first, #"{"n":2}"#)
        let edited = try edit(#"{"n":3}"#)
        let proposals = try #require(line.take("proposeChanges").first)
        try line.puppet.reply(Message(body: Array("[]".utf8)), to: proposals.number)
        try line.runUntilQuiet()
        let revision = try #require(line.take("rev").first)
        #expect(
            revision.message.properties["history"] == "\(other),\(first)"
                || revision.message.properties["history"] == other
        )
        try line.puppet.reply(Message([:]), to: revision.number)
        try line.runUntilQuiet()
        #expect(try current() == edited)
        // Somebody deleted it there. A list that was made before stays without effect.
        try announce(other, 5, history: first, #"{"n":2}"#)
        #expect(try current() == edited)
        try announce(one, 9, history: first, #"{"n":1}"#)
        #expect(try current() == one)
        #expect(line.take("proposeChanges").filter { $0.message.body != Array("[]".utf8) }.isEmpty)
    }

    @Test func `an edit that the gateway has not got is no reason to lose it`() throws {
        try announce(first, 1, #"{"n":0}"#)
        try announce(one, 2, history: first, #"{"n":1}"#)
        try announce(other, 5, history: first, #"{"n":2}"#)
        let edited = try edit(#"{"n":3}"#)
        try announce(one, 9, history: first, #"{"n":1}"#)
        #expect(try current() == edited)
    }

    /// Edits the document here, as an app does.
    private func edit(_ body: String) throws -> String? {
        let handle = try ours.collection(.default)
        let saved = try ours.store.write {
            try $0.save(
                "x",
                in: handle,
                body: JSONText(Array(body.utf8)),
                isDeleted: false,
                condition: .lastWriteWins
            )
        }
        try line.localChange()
        return saved?.revision.text
    }
}
