import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// A gateway accepts a revision that it has on a deleted branch, and changes nothing. That happens after a purge, when a client
/// deleted the document with a short history, and another one brought an older revision back.
struct DeletedBranchTests {
    private let ours: ReplayedPeer
    private let line: ReplayedPeer.Line
    private let first = "1-9580f4bb5ca0645109b20bd23c4ec182f2743cd0"

    init() throws {
        ours = try ReplayedPeer()
        line = try ours.activeLine { ($0.pushes, $0.isContinuous) = (true, true) }
        let row = #"[[1,"x","\#(first)"]]"#
        _ = try line.ask("changes", [:], row).get()
        try line.tell("rev", ["id": "x", "rev": first, "sequence": "1"], #"{"n":0}"#)
    }

    /// Saves the document here so many times, and tells the session afterwards.
    private func edit(times: Int) throws -> String {
        let handle = try ours.collection(.default)
        var last = ""
        for number in 1...times {
            let saved = try ours.store.write {
                try $0.save(
                    "x",
                    in: handle,
                    body: JSONText(Array(#"{"n":\#(number)}"#.utf8)),
                    isDeleted: false,
                    condition: .lastWriteWins
                )
            }
            last = saved?.revision.text ?? ""
        }
        try line.localChange()
        return last
    }

    private func proposals() -> [ReplayedPeer.Heard] {
        line.take("proposeChanges").filter { $0.message.body != Array("[]".utf8) }
    }

    /// Answers the only proposal that waits; returns the revision, and what it is to go on top of.
    private func answerProposal(_ answer: String) throws -> [String] {
        let waiting = proposals()
        let request = try #require(waiting.first)
        #expect(waiting.count == 1)
        let row = try JSONElement(parsing: request.message.body)[0]
        try line.puppet.reply(Message(body: Array(answer.utf8)), to: request.number)
        try line.runUntilQuiet()
        return [row?[1]?.string ?? "", row?[2]?.string ?? ""]
    }

    /// Accepts the only revision that waits.
    private func acceptRevision() throws -> MessageProperties {
        let revisions = line.take("rev")
        let request = try #require(revisions.first)
        #expect(revisions.count == 1)
        try line.puppet.reply(Message([:]), to: request.number)
        try line.runUntilQuiet()
        return request.message.properties
    }

    @Test func `content whose revision a gateway has on a deleted branch goes there under another name`()
        throws
    {
        let last = try edit(times: 2)
        #expect(try answerProposal("[]") == [last, first])
        #expect(try acceptRevision()["rev"] == last)
        // The gateway has something else all the same.
        #expect(try answerProposal(#"[{"status":409,"rev":"\#(first)"}]"#) == [last, last])
        #expect(try answerProposal("[]") == [last, first])
        let copy = try acceptRevision()
        #expect(copy["rev"] != last)
        #expect(copy["history"] == first)
        #expect(line.failure == nil)
    }

    @Test func `a gateway that took several edits at once is asked whether it has the last one`() throws {
        let last = try edit(times: 3)
        _ = try answerProposal("[]")
        #expect(try acceptRevision()["rev"] == last)
        #expect(try answerProposal("[304]") == [last, last])
        #expect(proposals().isEmpty)
        #expect(line.take("rev").isEmpty)
        #expect(line.failure == nil)
    }

    @Test func `one edit is not asked about`() throws {
        let last = try edit(times: 1)
        _ = try answerProposal("[]")
        #expect(try acceptRevision()["rev"] == last)
        #expect(proposals().isEmpty)
    }
}
