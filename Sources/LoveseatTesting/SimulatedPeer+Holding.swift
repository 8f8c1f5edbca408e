/// Everything that a peer holds, to find out whether a round of syncs has changed anything.
extension SimulatedPeer {
    /// A peer's documents in one collection.
    struct Holding: Equatable {
        let states: [String: DocumentState]
        fileprivate(set) var leaves: [String: [String]] = [:]
    }

    /// `withLeaves`: whether leaves count, too. Over CouchDB's wire, a leaf is shown once its content has come, which may be rounds after
    /// its name.
    func holding(in collection: Int, withLeaves: Bool) throws -> Holding {
        var holding = Holding(states: try state(of: collection))
        if !withLeaves { return holding }
        for id in holding.states.keys { holding.leaves[id] = try leaves(id, in: collection).sorted() }
        return holding
    }
}
