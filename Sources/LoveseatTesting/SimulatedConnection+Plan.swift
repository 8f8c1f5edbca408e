import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication

/// The settings of a simulated connection.
extension SimulatedConnection {
    struct Plan: @unchecked Sendable {
        var pushes = true
        var pulls = true
        var isContinuous = false
        var reset = ActivePlan.Reset.none
        var link = SimulatedLink.Plan()
        /// To how many of the requests over another wire something happens.
        var httpFaults = 0.0
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
        /// The verdict of the active side's resolver; nil for the rule that all share.
        var verdict: SimulatedVerdict?
        var activeDeltas = false
        var passiveDeltas = false
        /// The remainder of a document's number, divided by 3, with which it is pushed or pulled; nil for all.
        var pushFilter: Int?
        var pullFilter: Int?
        var documentIDs: [String]?
        /// Decides over documents instead, both ways.
        var filter: CollectionRules.Filter?
        /// Distinguishes such filters from each other.
        var filterVersion: String?
        /// Under which address the other side is known; nil for the first one.
        var remoteName: String?
        /// A mistake: the peer's copy of the checkpoint is not looked at.
        var trustsOwnCheckpoint = false
        /// A mistake: the peer's copy of the checkpoint counts alone.
        var trustsPeersCheckpoint = false
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

    /// Distinguishes configurations that must not share a checkpoint (replication.md §5.2). An app's filter does not count: an app that
    /// changes it resets.
    var checkpointScope: String { "\(pushFilter ?? -1)/\(pullFilter ?? -1)" }
}
