package import LoveseatModel

/// A revision of a document as Couchbase Lite 4 keeps it: a state without ancestors.
package struct LiteRevision: Hashable, Sendable {
    /// The name of a revision.
    package enum Identity: Hashable, Sendable {
        /// A vector of versions.
        case vector(VersionVector)
        /// The ID of a tree's revision that nobody has edited since the database has vectors.
        case legacy(RevisionID)
    }

    /// The vector or the ID.
    package var identity: Identity
    /// Whether it is a tombstone.
    package var isDeleted: Bool
    /// The properties; nil if they are not here, because a peer only named the revision.
    package var body: JSONObject?

    package init(_ identity: Identity, isDeleted: Bool = false, body: JSONObject?) {
        (self.identity, self.isDeleted, self.body) = (identity, isDeleted, body)
    }

    /// The vector; empty for a legacy revision.
    package var vector: VersionVector {
        if case .vector(let vector) = identity { vector } else { VersionVector() }
    }

    /// The ID of a legacy revision.
    package var legacyID: RevisionID? { if case .legacy(let id) = identity { id } else { nil } }

    /// The name by which messages mean this revision: the current version or the ID.
    package var name: RevisionName? {
        switch identity {
        case .vector(let vector): vector.current.map { .version($0) }
        case .legacy(let id): .revision(id)
        }
    }

    /// The name as text.
    package var shortText: String { name?.text ?? "" }

    /// The whole vector, or the ID.
    package var wholeText: String {
        switch identity {
        case .vector(let vector): vector.text
        case .legacy(let id): id.text
        }
    }

    /// Whether another text names this revision: the first versions are equal, or one is the encoding of the other
    /// (version-vectors.md §8, "Equivalence").
    package func isNamed(_ text: String) -> Bool {
        guard let name, let other = try? RevisionName(first: text) else { return false }
        return name.isEquivalent(to: other)
    }
}

/// A document of a ``LiteDatabase``.
package struct LiteDocument: Hashable, Sendable {
    /// The current revision of one remote database, as far as it is known here.
    package struct Remote: Hashable, Sendable {
        /// The revision that it has.
        package var revision: LiteRevision
        /// Whether it is in conflict with the document's current revision.
        package var isConflict = false
    }

    /// The current revision.
    package var current: LiteRevision
    /// The sequence at which the current revision was stored.
    package var sequence: UInt64
    /// The last revision of the tree before the first vector.
    package var lastLegacy: RevisionID?
    /// By the number of the remote database.
    package var remotes: [Int: Remote] = [:]
    /// Whether the record is still that of a database with trees.
    package var isTreeRecord = false
    /// The length that a live announcement names: a tombstone's is that of the content that it replaced.
    var liveSize: Int?

    package init(_ current: LiteRevision, sequence: UInt64) {
        (self.current, self.sequence) = (current, sequence)
    }

    /// The current state with the legacy revisions that an arriving one is compared with (version-vectors.md §11.5).
    var history: StateHistory {
        switch current.identity {
        case .vector(let vector): StateHistory(vector, revisions: lastLegacy.map { [$0] } ?? [])
        case .legacy(let id): StateHistory(VersionVector(), revisions: [id])
        }
    }

    /// Whether any remote's revision waits for a resolution.
    package var isConflicted: Bool { remotes.values.contains { $0.isConflict } }

    /// The legacy revisions that are known to be older than the current one, the newest first. A remote's is among them if its generation is lower.
    private var olderLegacy: [RevisionID] {
        guard let newest = current.legacyID ?? lastLegacy else { return [] }
        var known = Set(
            remotes.values.filter { !$0.isConflict }.compactMap(\.revision.legacyID)
                .filter { $0.generation < newest.generation }
        )
        if current.legacyID == nil { known.insert(newest) }
        return known.sorted { ($0.generation, $0.text) > ($1.generation, $1.text) }
    }

    /// The state as a `rev` message carries it, for a peer that named some ancestors (version-vectors.md §11.3).
    func sentHistory(ancestors: [String]) -> StateHistory {
        var tail = olderLegacy
        if ancestors.isEmpty, lastLegacy == nil { tail = [] }
        if let end = tail.firstIndex(where: { id in ancestors.contains(id.text) }) {
            tail = Array(tail[...end])
        }
        switch current.identity {
        case .vector(let vector): return StateHistory(vector, revisions: tail)
        case .legacy(let id): return StateHistory(VersionVector(), revisions: [id] + tail)
        }
    }

    /// The own revisions that the answer to an announcement lists, at most ten: the current one, and what is stored for remotes.
    var ancestorsForAnswer: [String] {
        let revisions = [current] + remotes.sorted { $0.key < $1.key }.map(\.value.revision)
        var texts: [String] = []
        for revision in revisions where revision.body != nil && !texts.contains(revision.shortText) {
            texts.append(revision.shortText)
        }
        return Array(texts.prefix(10))
    }
}
