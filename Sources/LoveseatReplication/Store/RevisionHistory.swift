package import LoveseatModel

/// The history that goes with a revision (replication.md §9.1).
package enum RevisionHistory {
    /// The parents of a revision to send: newest first, up to one the peer knows, generations without gaps.
    package static func toSend(
        _ ancestors: [RevisionID],
        of revision: RevisionID,
        known: [RevisionID],
        limit: Int
    ) -> [RevisionID] {
        let known = Set(known)
        var history: [RevisionID] = []
        var next = revision.generation
        for ancestor in ancestors {
            // Pruned generations get names of their own, so that the receiver sees an unbroken chain.
            while next > ancestor.generation, next - ancestor.generation > 1, history.count + 1 < limit {
                next -= 1
                history.append(
                    RevisionID(generation: next, digest: fadedDigest(of: revision, generation: next))
                )
            }
            history.append(ancestor)
            next = ancestor.generation
            if known.contains(ancestor) { break }
        }
        guard history.count + 1 > limit else { return history }
        let common = history.last.flatMap { known.contains($0) ? $0 : nil }
        history = Array(history.prefix(max(0, limit - 1)))
        if let common, !history.isEmpty { history[history.count - 1] = common }
        return history
    }

    private static func fadedDigest(of revision: RevisionID, generation: UInt32) -> [UInt8] {
        let hash = revision.text.utf8.reduce(UInt64(generation) &+ 0xCBF2_9CE4_8422_2325) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01B3
        }
        return [0xFA, 0xDE, 0xD0, 0x00] + (0..<8).map { UInt8(truncatingIfNeeded: hash >> (8 * $0)) }
    }
}
