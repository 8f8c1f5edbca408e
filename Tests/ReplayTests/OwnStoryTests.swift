import LoveseatTesting
import Testing

/// Loveseats in the place of recorded peers (Tests/Fixtures/wire-v4): the contents that everybody has at the end.
struct OwnStoryTests {
    /// A reason why a story ends otherwise than with a peer of Couchbase Lite. The numbers are the corrections in version-vectors.md.
    enum Reason {
        /// Couchbase Lite gave up on a document that it was refused, or could not be told of any more (3, 5, 14).
        case goesOn
        /// Couchbase Lite took a newer state for a conflict, because of the revisions behind vectors (10, 11, 13).
        case isNewer
        /// Couchbase Lite deleted, or kept deleted, a document that was made anew (9).
        case staysAlive
        /// Couchbase Lite left a conflict that is never resolved, or two merges of the same versions (6, 7).
        case agrees
        /// A document from before the first version has no time, so a version wins over it (§12.1, R1).
        case hasNoTime
    }

    static let reasons: [String: [String: Reason]] = [
        "conflict-no-ancestor": ["a": .hasNoTime],
        "legacy-conflict-both-legacy-default": ["a": .goesOn, "p": .goesOn],
        "legacy-conflict-both-legacy-merge": ["a": .goesOn, "p": .goesOn],
        "legacy-conflict-legacy-here-local": ["a": .goesOn, "p": .goesOn],
        "legacy-conflict-vector-here-delete": ["a": .goesOn, "p": .goesOn],
        "legacy-deleted-then-recreated": ["a": .isNewer, "p": .isNewer],
        "legacy-late-joiner-pull": ["b": .isNewer, "p": .isNewer],
        "legacy-late-joiner-pull-41": ["b": .isNewer, "p": .isNewer],
        "legacy-newer-there-resolver": ["p": .isNewer],
        "legacy-pulled-then-changed": ["a": .goesOn, "p": .goesOn],
        "legacy-synced-then-conflict-merge": ["a": .goesOn, "p": .goesOn],
        "opposite-local-local": ["a": .agrees, "b": .agrees],
        "opposite-merge-same": ["a": .agrees, "b": .agrees],
        "purge-and-new": ["a": .goesOn, "p": .goesOn],
        "recreate-behind-pull": ["a": .staysAlive],
        "recreate-unaware-push": ["p": .staysAlive],
    ]

    @Test(arguments: LiteReplayTests.names)
    func `with a Loveseat in the place of a peer, all have what they had, or agree where they did not`(
        _ name: String
    ) throws {
        let recording = try LiteReplayTests.recording(name)
        for peer in OwnStory.peers(in: recording) {
            let outcome = try OwnStory.play(in: recording, own: peer)
            if Self.reasons[name]?[peer] == nil {
                #expect(outcome.differences.isEmpty, "\(name), \(peer)")
            } else {
                #expect(!outcome.differences.isEmpty, "\(name), \(peer): there is no difference any more")
                #expect(outcome.disagreements.isEmpty, "\(name), \(peer)")
            }
        }
    }

    @Test func `most recordings can be played with a Loveseat in the place of every peer`() throws {
        let counts = try LiteReplayTests.names.map {
            OwnStory.peers(in: try LiteReplayTests.recording($0)).count
        }
        #expect(counts.reduce(0, +) == 176)
    }
}
