import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// What a pull makes of revisions that come late, or not at all.
struct PullOrderTests {
    /// What is stored, and whether it was announced before something newer was known.
    private final class Stored {
        var isOutdated: [String: Bool] = [:]
    }

    private final class WatchedReplica: ReplicaLayer {
        let inner: any Replica
        private let stored: Stored

        init(_ inner: any Replica, _ stored: Stored) { (self.inner, self.stored) = (inner, stored) }

        func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
            for revision in revisions { stored.isOutdated[revision.documentID] = revision.isOutdated }
            return try inner.insert(revisions)
        }
    }

    @Test(arguments: [false, true])
    func `a revision is outdated if the peer takes another one of its document after it was announced`(
        _ isTaken: Bool
    ) throws {
        let stored = Stored()
        let peer = try Conversation(
            active: { ($0.pushes, $0.pulls, $0.isContinuous) = (true, true, true) },
            documents: ["a"],
            wrap: { LayeredReplicas($0) { replica, _ in WatchedReplica(replica, stored) } }
        )
        try peer.begin()
        try peer.answer(try peer.take("subChanges"))
        let answer = try peer.say("changes", [:], #"[[1,"a","1-aa"],[2,"b","1-bb"]]"#)
        #expect(try JSONElement(parsing: #require(answer).get().body).count == 2)
        if isTaken {
            try peer.answer(try peer.take("proposeChanges"), [:], "[0]")
            try peer.answer(try peer.take("rev"))
        }
        try peer.say("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], #"{"a":2}"#)
        try peer.say("rev", ["id": "b", "rev": "1-bb", "sequence": "2"], #"{"b":1}"#)
        #expect(stored.isOutdated == ["a": isTaken, "b": false])
    }

    @Test func `a revision that the peer cannot send does not hold up the checkpoint, and is noted`() throws {
        let peer = try Conversation(active: { $0.pulls = true })
        try peer.begin()
        try peer.answer(try peer.take("subChanges"))
        try peer.say("changes", [:], #"[[1,"a","1-aa"],[2,"b","1-bb"]]"#)
        try peer.say("norev", ["id": "a", "rev": "1-aa", "sequence": "1", "error": "500"])
        try peer.say("rev", ["id": "b", "rev": "1-bb", "sequence": "2"], #"{"b":1}"#)
        try peer.say("changes", [:], "null")
        #expect(try peer.keepCheckpoints()?["remote"]?.int == 2)
        #expect(peer.documentErrors.mapValues(\.code) == ["a": .init(10_500)])
        #expect(peer.line.failure == nil)
    }
}
