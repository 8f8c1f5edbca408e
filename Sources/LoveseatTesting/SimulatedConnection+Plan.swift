import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication

/// What a connection is to do.
extension SimulatedConnection {
    struct Plan: @unchecked Sendable {
        var pushes = true
        var pulls = true
        var isContinuous = false
        var reset = ActivePlan.Reset.none
        var link = SimulatedLink.Plan()
        /// How long a connection takes to be made, in milliseconds.
        var connectDelay = 0...0
        /// The number of attempts to connect; nil for no end.
        var attempts: UInt? = 1
        var storeDelay = 0...0
        var tuning = ReplicationTuning()
        /// How often a resolver throws and leaves the conflict for the next start.
        var resolverFailures = 0.0
        /// Conflicts are merged rather than decided.
        var merges = false
        /// What the resolver of the active side says; nil for the rule that all share.
        var verdict: SimulatedVerdict?
        var activeDeltas = false
        var passiveDeltas = false
        /// What is left of a document's number decides whether it is pushed or pulled; nil for all.
        var pushFilter: Int?
        var pullFilter: Int?
        var documentIDs: [String]?
        /// Decides over documents instead, both ways.
        var filter: CollectionRules.Filter?
        /// Tells one such filter from another one.
        var filterVersion: String?
        /// Under which address the other side is known; nil for the first one.
        var remoteName: String?
        /// A mistake: what the peer has as its copy of the checkpoint is not looked at.
        var trustsOwnCheckpoint = false
        /// Mistakes of the drivers.
        var omissions: ReplicationDriver.Omissions = []
        /// The documents that this connection pulls for another one.
        var fetch: FetchNotice?
    }
}

extension SimulatedConnection.Plan {
    /// The filters, as an app would write them.
    var rules: CollectionRules {
        func filter(_ rest: Int) -> CollectionRules.Filter {
            { candidate, _ in (Int(candidate.documentID.dropFirst(3)) ?? 0) % 3 == rest }
        }
        var rules = CollectionRules()
        rules.documentIDs = documentIDs.map { DocumentSet($0) }
        rules.pushFilter = pushFilter.map(filter)
        rules.pullFilter = pullFilter.map(filter)
        if let whole = self.filter { (rules.pushFilter, rules.pullFilter) = (whole, whole) }
        rules.asksResolver = merges || verdict != nil
        return rules
    }

    /// What tells configurations apart that must not share a checkpoint (replication.md §5.2). Filters of an app's do
    /// not; an app that changes one resets.
    var checkpointScope: String { "\(pushFilter ?? -1)/\(pullFilter ?? -1)" }
}
