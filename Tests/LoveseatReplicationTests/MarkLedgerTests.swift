import LoveseatModel
import LoveseatReplication
import Testing

/// Which marks count (docs/decisions/0006-lost-commits.md): a session that begins when the collection's last sequence is 10.
struct MarkLedgerTests {
    /// What the session has found out when it asks.
    struct Situation: CustomTestStringConvertible {
        /// Whether the checkpoints agree and cover the marks; nil while they are not compared.
        var isTrusted: Bool?
        var hasOlder = true
        /// Whether this session marked the document.
        var isMarkedNow = false
        /// Whether the mark is of the current revision.
        var isCurrent = true
        var sequence: UInt64 = 5
        let counts: Bool

        var testDescription: String {
            "trusted \(isTrusted.map { "\($0)" } ?? "unknown"), older \(hasOlder), now \(isMarkedNow), current \(isCurrent), at \(sequence)"
        }

        var ledger: MarkLedger {
            var ledger = MarkLedger()
            if hasOlder { ledger.foundOlder() }
            if let isTrusted {
                var trust = MarkTrust()
                trust.leavesOutMarked = isTrusted
                ledger.believe(trust, at: 10)
            }
            if isMarkedNow { ledger.mark(["a"]) }
            return ledger
        }
    }

    private static let situations: [Situation] = [
        // Nothing was compared yet, or the checkpoints agree: all count.
        Situation(counts: true), Situation(isMarkedNow: true, counts: true),
        Situation(isCurrent: false, counts: true), Situation(sequence: 11, counts: true),
        Situation(isTrusted: true, counts: true), Situation(isTrusted: true, isMarkedNow: true, counts: true),
        Situation(isTrusted: true, isCurrent: false, counts: true),
        Situation(isTrusted: true, isCurrent: false, sequence: 11, counts: true),
        Situation(isTrusted: true, hasOlder: false, counts: true),
        // In doubt, a mark of the current revision counts if this session made it, whenever the document changed.
        Situation(isTrusted: false, counts: false),
        Situation(isTrusted: false, isMarkedNow: true, counts: true),
        Situation(isTrusted: false, sequence: 10, counts: false),
        Situation(isTrusted: false, sequence: 11, counts: false),
        Situation(isTrusted: false, isMarkedNow: true, sequence: 11, counts: true),
        // Or if there are no older ones.
        Situation(isTrusted: false, hasOlder: false, counts: true),
        Situation(isTrusted: false, hasOlder: false, sequence: 11, counts: true),
        // A mark below an edit of this session counts, whoever made it; below an older edit it does not.
        Situation(isTrusted: false, isCurrent: false, sequence: 11, counts: true),
        Situation(isTrusted: false, isCurrent: false, sequence: 10, counts: false),
        Situation(isTrusted: false, isMarkedNow: true, isCurrent: false, counts: false),
        Situation(isTrusted: false, hasOlder: false, isCurrent: false, counts: false),
    ]

    @Test(arguments: situations)
    func `a mark counts if a checkpoint or this session vouches for it`(_ situation: Situation) {
        let ledger = situation.ledger
        let counts = ledger.counts(isCurrent: situation.isCurrent, of: "a", at: situation.sequence)
        #expect(counts == situation.counts)
        #expect(ledger.leavesOutMarked == (situation.isTrusted != false))
        #expect(
            ledger.isDoubted(situation.sequence) == (situation.isTrusted == false && situation.sequence <= 10)
        )
    }

    @Test func `another document's mark says nothing`() {
        let ledger = Situation(isTrusted: false, isMarkedNow: true, counts: true).ledger
        #expect(!ledger.counts(isCurrent: true, of: "b", at: 5))
        #expect(!ledger.counts(isCurrent: true, of: "A", at: 5))
    }

    @Test func `marks are covered from a checkpoint on until the next mark`() {
        var ledger = MarkLedger()
        #expect(!ledger.isCovered)
        ledger.checkpointBegan(removals: nil)
        #expect(ledger.isCovered)
        ledger.marksMade()
        #expect(!ledger.isCovered)
        ledger.checkpointBegan(removals: nil)
        ledger.marksMade()
        ledger.marksMade()
        #expect(!ledger.isCovered)
        ledger.checkpointBegan(removals: nil)
        #expect(ledger.isCovered)
    }

    @Test func `removals are covered by the checkpoint that was sent after them, once it is saved`() {
        var ledger = MarkLedger()
        #expect(!ledger.removals.hasAny)
        ledger.found(RemovalCount(counted: 3, covered: 2))
        #expect(ledger.removals.hasAny)
        #expect(ledger.removals.isUncovered)
        #expect(ledger.removals.unsaved == nil)
        ledger.checkpointBegan(removals: 3)
        #expect(ledger.removals.unsaved == 3)
        // A save that failed is made again.
        #expect(ledger.removals.unsaved == 3)
        ledger.checkpointSaved()
        #expect(ledger.removals.unsaved == nil)
        ledger.checkpointBegan(removals: 3)
        #expect(ledger.removals.unsaved == nil)
        ledger.checkpointBegan(removals: 4)
        #expect(ledger.removals.unsaved == 4)
    }

    @Test(
        arguments: [
            (nil, nil, false, false), (0, nil, true, false), (1, nil, true, true), (1, 1, true, false),
            (nil, 0, true, false),
        ] as [(Int?, Int?, Bool, Bool)]
    )
    func `a peer that took documents away is remembered`(
        _ counted: Int?,
        _ covered: Int?,
        _ hasAny: Bool,
        _ isUncovered: Bool
    ) {
        let removals = RemovalCount(counted: counted, covered: covered)
        #expect(removals.hasAny == hasAny)
        #expect(removals.isUncovered == isUncovered)
    }

    @Test func `what was in doubt is offered when everything of the beginning was`() {
        let doubted = Situation(isTrusted: false, counts: false).ledger
        #expect(!doubted.hasOfferedDoubted(upTo: nil))
        #expect(!doubted.hasOfferedDoubted(upTo: 9))
        #expect(doubted.hasOfferedDoubted(upTo: 10))
        #expect(Situation(isTrusted: true, counts: true).ledger.hasOfferedDoubted(upTo: nil))
    }

    @Test func `what changes in a session is followed, and of older documents what the checkpoint covers`() {
        var trust = MarkTrust()
        var ledger = MarkLedger()
        ledger.believe(trust, at: 10)
        #expect(ledger.followed == nil)
        trust.followed = SequenceSet()
        trust.followed?.insert(1...4)
        ledger.believe(trust, at: 10)
        for (sequence, isFollowed) in [(1, true), (4, true), (5, false), (10, false), (11, true)]
            as [(UInt64, Bool)]
        {
            #expect(ledger.followed?.contains(sequence) == isFollowed, "\(sequence)")
        }
        ledger.believe(trust, at: .max)
        #expect(ledger.followed?.contains(.max) == false)
    }
}
