import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// A simulated app that merges a conflict it finds.
struct ManualMerge {
    let peer: SimulatedPeer
    let collection: Int
    let documentID: String

    /// Returns whether there was one.
    func merge() throws -> Bool {
        let resolution = ConflictResolution(
            store: peer.store,
            collection: peer.collections[collection],
            documentID: documentID,
            peer: .loveseat
        )
        guard
            try peer.store.read({ try $0.record(documentID, in: peer.collections[collection]) })?.hasConflicts
                == true,
            let conflict = try resolution.next()
        else { return false }
        var merged = JSONElement(conflict.local.body).value
        for (key, value) in JSONElement(conflict.remote.body).members where merged[key] == nil {
            merged[key] = value.value
        }
        return try resolution.store(
            Resolution.merged(JSONText(canonical: merged)).verdict(on: conflict, with: .loveseat),
            of: conflict
        )
    }
}
