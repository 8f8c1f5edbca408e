import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Nothing that a peer answers makes a push offer the same for ever.
struct DisagreementTests {
    private let ours: ReplayedPeer
    private let line: ReplayedPeer.Line

    init() throws {
        ours = try ReplayedPeer()
        line = try ours.activeLine { ($0.pushes, $0.isContinuous) = (true, true) }
        _ = try line.ask("changes", [:], #"[[1,"x","1-aa"]]"#).get()
        try line.tell("rev", ["id": "x", "rev": "1-aa", "sequence": "1"], #"{"n":0}"#)
    }

    private func save(_ body: String, isDeleted: Bool = false) throws {
        let handle = try ours.collection(.default)
        _ = try ours.store.write {
            try $0.save(
                "x",
                in: handle,
                body: JSONText(Array(body.utf8)),
                isDeleted: isDeleted,
                condition: .lastWriteWins
            )
        }
    }

    /// Answers every proposal with a conflict with this revision; returns how many there were.
    private func disagree(_ revision: String) throws -> Int {
        var count = 0
        while count < 100 {
            let proposals = line.take("proposeChanges").filter { $0.message.body != Array("[]".utf8) }
            guard !proposals.isEmpty else { break }
            count += proposals.count
            for proposal in proposals {
                let answer = #"[{"status":409,"rev":"\#(revision)"}]"#
                try line.puppet.reply(Message(body: Array(answer.utf8)), to: proposal.number)
            }
            try line.runUntilQuiet()
        }
        return count
    }

    @Test func `what a peer never takes is offered a few times, and fails`() throws {
        try save(#"{"n":1}"#)
        try line.localChange()
        #expect((1...10).contains(try disagree("1-aa")))
        let errors = line.reports.compactMap { report -> LoveseatError? in
            guard case .document(let event) = report, event.isPush else { return nil }
            return event.error
        }
        #expect(errors.map(\.code) == [.httpConflict])
        #expect(line.failure == nil)
        #expect(!line.isClosed)
    }

    /// Whether the peer refuses the proposal, or the revision that comes after it.
    @Test(arguments: [true, false])
    func `a document that both sides deleted is the same at both, and is not pushed`(_ refusesProposal: Bool)
        throws
    {
        try save("{}", isDeleted: true)
        // Lower than any digest that a deletion here is likely to have.
        _ = try line.ask("changes", [:], #"[[2,"x","2-00",1]]"#).get()
        let properties: MessageProperties = [
            "id": "x", "rev": "2-00", "sequence": "2", "history": "1-aa", "deleted": "1",
        ]
        try line.tell("rev", properties, "{}")
        try line.localChange()
        if refusesProposal {
            #expect(try disagree("2-00") <= 1)
        } else {
            for proposal in line.take("proposeChanges") {
                try line.puppet.reply(Message(body: Array("[]".utf8)), to: proposal.number)
            }
            try line.runUntilQuiet()
        }
        #expect(line.take("rev").isEmpty)
        #expect(line.failure == nil)
    }
}
