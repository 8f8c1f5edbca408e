import LoveseatModel
import LoveseatReplication
import Testing

/// Small values of a replication, at their edges. Each test names the changes that it notices.
struct ReplicationValueTests {
    /// `<=` with `<`, names that are charged twice, and a removal that gives nothing back.
    @Test func `a set of names takes as many bytes as it may, and says what it may have forgotten`() {
        var names = NameSet(bytes: 2 * 25)
        for name in ["a", "a", "b"] { names.insert(name) }
        #expect(names.contains("a"))
        #expect(names.contains("b"))
        #expect(!names.mayContain("c"))
        names.remove("b")
        names.remove("b")
        names.insert("c")
        #expect(names.contains("c"))
        #expect(!names.mayContain("b"))
        names.insert("d")
        #expect(!names.contains("d"))
        #expect(names.mayContain("d"))
        #expect(names.mayContain("anything"))
    }

    /// `>=` with `>` in `isGivenUp`.
    @Test func `resolvers that contradict each other are asked four times`() throws {
        let side = ConflictCase.Side(
            revision: RevisionID(generation: 1, digest: [1]),
            isDeleted: false,
            body: .emptyObject
        )
        for (rounds, isGivenUp) in [(0, false), (3, false), (4, true), (5, true)] {
            let conflict = ConflictCase(documentID: "d", rounds: rounds, local: side, remote: side, base: nil)
            #expect(conflict.isGivenUp == isGivenUp, "\(rounds)")
        }
    }

    /// The parent of a merge, and deletions on either side.
    @Test func `a merge goes on top of the peer's revision, and between two Loveseats on the higher one`() {
        func side(_ digest: UInt8, isDeleted: Bool = false) -> ConflictCase.Side {
            ConflictCase.Side(
                revision: RevisionID(generation: 2, digest: [digest]),
                isDeleted: isDeleted,
                body: .emptyObject
            )
        }
        let (low, high) = (side(1), side(2))
        let body = JSONText(canonical: ["n": 1])
        func verdict(
            _ resolution: Resolution,
            _ local: ConflictCase.Side,
            _ remote: ConflictCase.Side,
            _ peer: RevisionTree.PeerKind
        ) -> ConflictVerdict {
            resolution.verdict(
                on: ConflictCase(documentID: "d", local: local, remote: remote, base: nil),
                with: peer
            )
        }
        func merged(_ parent: ConflictCase.Side) -> ConflictVerdict {
            .merged(body: body, isDeleted: false, parent: parent.revision)
        }
        #expect(verdict(.merged(body), high, low, .hub) == merged(low))
        #expect(verdict(.merged(body), low, high, .hub) == merged(high))
        #expect(verdict(.merged(body), high, low, .loveseat) == merged(high))
        #expect(verdict(.merged(body), low, high, .loveseat) == merged(high))
        #expect(verdict(.local, low, high, .hub) == .local)
        #expect(verdict(.remote, high, low, .hub) == .remote)
        #expect(
            verdict(.deleted, low, high, .hub)
                == .merged(body: .emptyObject, isDeleted: true, parent: high.revision)
        )
        #expect(verdict(.deleted, side(1, isDeleted: true), high, .hub) == .local)
        #expect(verdict(.deleted, low, side(2, isDeleted: true), .hub) == .remote)
        #expect(verdict(.deleted, side(1, isDeleted: true), side(2, isDeleted: true), .hub) == .remote)
    }

    /// `isRemoval` with `>=`, or without the deletion with which a document leaves a channel; `mayBeOld` with `||`.
    @Test func `a peer takes a document away by every flag but its deletion`() {
        func change(_ flags: Int, isNews: Bool = false) -> AnnouncedChange {
            var change = AnnouncedChange(
                sequence: RemoteSequence(1),
                documentID: "d",
                revision: .revision(RevisionID(generation: 1, digest: [1])),
                flags: .init(rawValue: flags)
            )
            change.isNews = isNews
            return change
        }
        for (flags, isRemoval) in [
            (0, false), (1, false), (2, true), (3, true), (4, true), (5, false), (6, true), (7, true),
        ] {
            #expect(change(flags).isRemoval == isRemoval, "\(flags)")
            #expect(change(flags).mayBeOld == (flags & 4 != 0), "\(flags)")
            #expect(!change(flags, isNews: true).mayBeOld, "\(flags)")
        }
    }

    /// A sum that leaves out a part, or lets completed exceed the total.
    @Test func `progress is the sum of its parts, and never beyond the total`() {
        var part = DirectionProgress()
        (part.total, part.compared) = (10, 3)
        part.finish(4, isDocument: true)
        part.finish(0, isDocument: false)
        #expect(part.completed == 5)
        #expect(part.documents == 1)
        (part.deltas.sent, part.deltas.received, part.deltas.bytesSaved) = (1, 2, 3)
        var sum = ReplicationProgress()
        sum.add(part)
        part.finish(90, isDocument: true)
        sum.add(part)
        #expect(sum.completed == 15)
        #expect(sum.total == 20)
        #expect(sum.compared == 6)
        #expect(sum.documents == 3)
        #expect(sum.deltas.sent == 2)
        #expect(sum.deltas.received == 4)
        #expect(sum.deltas.bytesSaved == 6)
        sum.documentsPushed = 2
        // What one collection contributed is replaced by what it has now.
        var whole = sum
        whole.replace(sum, by: ReplicationProgress())
        #expect(whole == ReplicationProgress())
        whole.isTotalKnown = true
        whole.replace(ReplicationProgress(), by: sum)
        #expect(whole.isTotalKnown)
        whole.isTotalKnown = false
        #expect(whole == sum)
    }

    /// The generations that pruning left out are filled only below the limit, and never above the revision.
    @Test func `a history with gaps is filled up to the limit, and ends with what the peer knows`() throws {
        func id(_ generation: UInt32) -> RevisionID { RevisionID(generation: generation, digest: [9]) }
        func generations(_ ancestors: [UInt32], of revision: UInt32, known: [UInt32] = [], limit: Int)
            -> [UInt32]
        {
            RevisionHistory.toSend(ancestors.map(id), of: id(revision), known: known.map(id), limit: limit)
                .map(\.generation)
        }
        #expect(generations([1], of: 5, limit: 5) == [4, 3, 2, 1])
        #expect(generations([1], of: 5, limit: 6) == [4, 3, 2, 1])
        #expect(generations([1], of: 5, limit: 4) == [4, 3, 2])
        #expect(generations([1], of: 5, known: [1], limit: 4) == [4, 3, 1])
        #expect(generations([1], of: 5, known: [1], limit: 2) == [1])
        #expect(generations([1], of: 5, known: [1], limit: 1) == [])
        #expect(generations([1], of: 5, limit: 0) == [])
        #expect(generations([4, 2, 1], of: 5, known: [2], limit: 50) == [4, 3, 2])
        #expect(generations([4], of: 5, limit: 2) == [4])
    }
}
