import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The state that earlier sessions with a peer have left about one collection.
struct EarlierSessions {
    private(set) var marks: (checkpoint: String, isCovered: Bool)?
    private(set) var checkpoint: (body: JSONText, userChanges: Int)?
    private(set) var removals = RemovalCount()

    private static let removalsPrefix = "taken/"

    /// The key of the number of times that a peer took documents of a collection away. Only one replication is told of that, and the state
    /// of the others becomes outdated, too. The collection is identified by its name, as for the peer and for checkpoints, so the count
    /// continues if it is created anew.
    static func removalsKey(of name: CollectionName, remote: Int) -> String {
        "\(removalsPrefix)\(remote)/\(name.fullName)"
    }

    /// The key of the number of those that came before a checkpoint was sent to the peer.
    static func coveredKey(_ checkpointID: String) -> String { removalsPrefix + checkpointID }

    /// Reads the state of several collections. `checkpointIDs`: the IDs of the checkpoints of each.
    static func read(
        _ view: StoreReadTransaction,
        _ collections: [CollectionHandle],
        checkpointIDs: [String],
        remote: Int
    ) throws -> [EarlierSessions] {
        let marks = try view.marks(of: remote)
        // Most peers have never taken anything away.
        let removals = try view.localCheckpoints(prefix: removalsPrefix)
        func count(_ key: String) -> Int? { removals[ExactText(key.dropping(removalsPrefix))]?.number }
        return try zip(collections, checkpointIDs).map { collection, id in
            var earlier = EarlierSessions()
            earlier.marks = marks[collection.number]
            earlier.checkpoint = try view.localCheckpointAndUser(id)
            if removals.isEmpty { return earlier }
            earlier.removals = RemovalCount(
                counted: count(removalsKey(of: collection.name, remote: remote)),
                covered: count(coveredKey(id))
            )
            return earlier
        }
    }
}

/// Answers about each of many collections that are read at once when the first is asked for. Each is given once: later questions are
/// answered anew.
struct ReadAhead<Answer> {
    private var answers: [Int: Answer]?

    /// `reading`: reads the answers about the collections at some positions, in their order.
    mutating func answer(_ index: Int, of count: Int, reading: ([Int]) throws -> [Answer]) throws -> Answer? {
        if answers == nil {
            let all = Array(0..<count)
            answers = Dictionary(zip(all, try reading(all))) { first, _ in first }
        }
        return try answers?.removeValue(forKey: index) ?? reading([index]).first
    }
}
