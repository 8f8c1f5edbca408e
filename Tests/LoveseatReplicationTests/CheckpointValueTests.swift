import LoveseatModel
import LoveseatReplication
import Testing

/// `Checkpoint` as a value, at the edges of what it says (replication.md §5). Each test names the changes that it notices.
struct CheckpointValueTests {
    private func checkpoint(_ json: String) throws -> Checkpoint {
        Checkpoint(try JSONElement(parsing: Array(json.utf8)))
    }

    private func text(_ checkpoint: Checkpoint) -> String { checkpoint.json(time: 7).description }

    /// `local > 0` with `>=`, `ranges.count > 1` with `>=`, a length without its 1.
    @Test func `a checkpoint is written with what it needs, and reads as it was`() throws {
        #expect(text(Checkpoint()) == #"{"time":7}"#)
        let one = Checkpoint(completed: SequenceSet([0...1]), remote: RemoteSequence(3))
        #expect(text(one) == #"{"local":1,"remote":3,"time":7}"#)
        let gap = Checkpoint(completed: SequenceSet([0...0, 2...2, 5...9]))
        #expect(text(gap) == #"{"localCompleted":[0,1,2,1,5,5],"time":7}"#)
        let both = Checkpoint(completed: SequenceSet([0...4, 6...6]))
        #expect(text(both) == #"{"local":4,"localCompleted":[0,5,6,1],"time":7}"#)
        for value in [Checkpoint(), one, gap, both] {
            #expect(Checkpoint(JSONElement(value.json(time: 7))) == value)
        }
    }

    /// `flat.count % 2`, `!flat.isEmpty`, `length > 0`, and the null of `remote`.
    @Test(
        arguments: [
            (#"{"localCompleted":[0,3,4,2]}"#, [0...2, 4...5]), (#"{"localCompleted":[0,3,4]}"#, [0...0]),
            (#"{"localCompleted":[0,3,4],"local":8}"#, [0...8]),
            (#"{"localCompleted":[],"local":8}"#, [0...8]),
            (#"{"localCompleted":[4,0,6,1]}"#, [0...0, 6...6]),
            (#"{"localCompleted":[-1,3,6,-2,8,1]}"#, [0...0, 8...8]),
            (#"{"localCompleted":[0,1,3,1],"local":8}"#, [0...0, 3...3]), (#"{"local":-1}"#, [0...0]),
            (#"{"remote":null,"local":2}"#, [0...2]),
        ] as [(String, [ClosedRange<UInt64>])]
    )
    func `parts that cannot be read count as not done`(_ json: String, _ completed: [ClosedRange<UInt64>])
        throws
    {
        let checkpoint = try checkpoint(json)
        #expect(checkpoint.completed.ranges == completed)
        #expect(checkpoint.remote == nil)
    }

    /// `intersect` that forgets sequence 0, or takes the union.
    @Test func `what only one of two knows is not done, and 0 always is`() throws {
        var ours = Checkpoint(completed: SequenceSet([0...3, 7...9]))
        let theirs = Checkpoint(completed: SequenceSet([2...8]))
        let agrees = ours.intersect(theirs)
        #expect(!agrees)
        #expect(ours.completed.ranges == [0...0, 2...3, 7...8])
        #expect(ours.completed.completeUpTo == 0)
    }

    /// `wasTakenFrom` that is not looked at, or that is enough by itself.
    @Test(
        arguments: [
            // What the peer has; what is left of the remote sequence if the peer took documents away, and if it did not.
            (#"{"local":4,"remote":9}"#, 9, 9, true), (#"{"local":4,"remote":12}"#, 9, 9, true),
            (#"{"local":4,"remote":5}"#, nil, 5, false), (#"{"local":3,"remote":9}"#, nil, 9, false),
            (#"{"local":4}"#, nil, nil, false), (#"{"local":4,"remote":"odd"}"#, nil, nil, false),
            (#"{"local":5,"remote":9}"#, 9, 9, false),
        ] as [(String, UInt64?, UInt64?, Bool)]
    )
    func `a peer that took documents away and lost its commits is pulled from the beginning`(
        _ theirs: String,
        _ afterRemovals: UInt64?,
        _ otherwise: UInt64?,
        _ agrees: Bool
    ) throws {
        for (wasTakenFrom, left) in [(true, afterRemovals), (false, otherwise)] {
            var ours = try checkpoint(#"{"local":4,"remote":9}"#)
            let agreed = ours.intersect(try checkpoint(theirs), wasTakenFrom: wasTakenFrom)
            #expect(agreed == agrees)
            #expect(ours.remote == left.map { RemoteSequence($0) }, "\(wasTakenFrom)")
        }
    }

    /// `||` with `&&`, a flag or a length that is left out, or a filter's version that counts as a document's ID.
    @Test func `replications that choose other documents have other checkpoints`() throws {
        func input(_ change: (inout CheckpointID) -> Void) -> [UInt8] {
            var id = CheckpointID(
                privateUUID: [1, 2],
                collection: .default,
                pulls: true,
                pushes: false,
                remote: "ws://h/db"
            )
            change(&id)
            return id.hashInput
        }
        let all = [
            input { _ in }, input { $0.channels = ["a"] }, input { $0.documentIDs = ["a"] },
            input { ($0.channels, $0.documentIDs) = (["a"], ["b"]) }, input { $0.channels = ["a", "b"] },
            input { $0.documentIDs = ["a", "b"] }, input { $0.documentIDs = ["ab"] },
            input { $0.filterVersion = "a" }, input { $0.filterVersion = "" },
            input { ($0.documentIDs, $0.filterVersion) = (["a"], "a") },
        ]
        #expect(Set(all).count == all.count)
        // For the default collection, older peers' checkpoints stay valid whatever the direction.
        #expect(input { ($0.pulls, $0.pushes) = (false, true) } == input { _ in })
    }
}
