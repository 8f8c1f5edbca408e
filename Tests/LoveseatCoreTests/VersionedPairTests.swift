import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Synchronization
import Testing

/// Documents with versions, between two Loveseats.
@Suite struct VersionedPairTests: PairSuite {
    let pair: DatabasePair

    init() throws { pair = try DatabasePair() }

    /// Stores a document there whose versions lie ten minutes ahead, as an export may bring it.
    private func receiveAhead(_ id: String) throws {
        let time = UInt64(Date().timeIntervalSince1970 + 600) * 1_000_000_000
        let line = (UInt64(0)..<2).map { edit in
            Collection.VersionedRevision(
                vector: "\(String(time + edit << 16, radix: 16))@VVebVXiW0M4XZMR/7WRPmw"
            )
        }
        _ = try there.receive(line, of: id, isExported: true)
    }

    @Test(arguments: [ReplicatorType.pull, .pushAndPull])
    func `a version too far ahead is refused with the reason, and does not hold up other documents`(
        _ type: ReplicatorType
    ) async throws {
        for id in ["ahead", "other"] { try receiveAhead(id) }
        // The peer's answer to its push contains the refused versions, too.
        try here.save(Document(id: "other", ["n": 1]))
        for number in 0..<10 { try there.save(Document(id: "d\(number)", ["n": 1])) }
        let replicator = replicator(type)
        let events = replicator.documentReplications
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        var reasons: [String: String] = [:]
        for await event in events where !event.isPush {
            for document in event.documents { reasons[document.id] = document.error?.message }
        }
        #expect(reasons.keys.sorted() == ["ahead", "other"])
        #expect(reasons.values.allSatisfy { $0.contains("a time more than 120 seconds ahead") })
        #expect(try here.document(id: "ahead") == nil)
        #expect(try here.document(id: "other")?["n"] == 1)
        #expect(here.count == 11)
    }

    @Test func `a resolver is shown the times of both versions`() async throws {
        for collection in [here, there] { try collection.openStore().beginVersions() }
        var (mine, theirs) = (Document(id: "d", ["n": 1]), Document(id: "d", ["n": 2]))
        try here.save(&mine)
        try there.save(&theirs)
        let shown = Mutex<[UInt64?]>([])
        let replicator = replicator { entry in
            entry.conflictResolver = ConflictResolver.custom { conflict in
                let times = [conflict.localDocument?.timestamp, conflict.remoteDocument?.timestamp]
                shown.withLock { $0 = times }
                return conflict.localDocument
            }
        }
        replicator.start()
        #expect(await replicator.waitUntilStopped().error == nil)
        #expect(shown.withLock { $0 } == [mine.timestamp, theirs.timestamp])
        // A time since 2020, in nanoseconds.
        #expect(mine.timestamp > 1_577_836_800_000_000_000)
    }
}
