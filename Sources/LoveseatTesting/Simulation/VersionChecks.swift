import LoveseatModel

/// Checks at any moment, and in the end: every version that a feed lists is served, and nobody loses the last one.
struct VersionChecks: HistoryPart {
    unowned let run: SimulationRun

    /// Checks that every way of fetching serves the leaves that a feed lists.
    func checkLists(_ unserved: (SimulatedPeer) throws -> [String]) {
        if !journal.report.problems.isEmpty, simulation.fault == nil { return }
        do { for peer in peers { journal.report.problems += try unserved(peer) } } catch {
            journal.add("the leaves of a database cannot be read: \(error)")
        }
    }

    /// Checks that a document which somebody made and nobody deleted is there, whatever was decided about it.
    func checkVersions() {
        if !journal.report.problems.isEmpty, simulation.fault == nil { return }
        for key in oracle.undeleted {
            guard let collection = Int(key.prefix(1)) else { continue }
            let id = String(key.dropFirst(2))
            let isThere = peers.contains { peer in
                guard let tree = peer.tree(id, in: collection) else { return false }
                return tree.current?.isDeleted == false || tree.pending.contains { !$0.isDeleted }
            }
            if !isThere {
                journal.add("NOBODY has a version of \(key), which nobody deleted")
                return
            }
        }
    }
}
