package import LoveseatModel

/// A conflict as the app's resolver is given it.
package struct LiteConflict: Hashable, Sendable {
    /// The document's ID.
    package let id: String
    /// The own revision.
    package let local: LiteRevision
    /// The peer's revision.
    package let remote: LiteRevision

    /// The result of Couchbase Lite 4's default resolver: a deletion wins, then the later time, then the remote revision.
    package var defaultResolution: LiteResolution {
        if local.isDeleted || remote.isDeleted { return .deleted }
        return time(local) > time(remote) ? .local : .remote
    }

    /// The time that the app sees: a legacy revision's is its generation.
    private func time(_ revision: LiteRevision) -> UInt64 {
        revision.vector.current?.time ?? revision.legacyID.map { UInt64($0.generation) } ?? 0
    }
}

/// The result of a resolver.
package enum LiteResolution: Hashable, Sendable {
    case local
    case remote
    /// New content.
    case merged(JSONObject)
    case deleted
}

extension LiteDatabase {
    /// Resolves the conflict of a document with a remote's revision (version-vectors.md §12).
    ///
    /// - Returns: Whether it is resolved now. Couchbase Lite looks for the first remote that has the conflicting version, and fails where that
    ///   one is not in conflict. Then the conflict stays.
    func resolve(
        _ id: String,
        in collection: String,
        remote: Int,
        by resolver: (LiteConflict) -> LiteResolution
    ) -> Bool {
        guard let document = collections[collection]?.documents[id],
            let mark = document.remotes[remote], mark.isConflict
        else { return true }
        let conflict = LiteConflict(id: id, local: document.current, remote: mark.revision)
        let areDeleted = conflict.local.isDeleted && conflict.remote.isDeleted
        let resolution = areDeleted ? .remote : simplified(resolver(conflict), of: conflict)
        let first = document.remotes.sorted { $0.key < $1.key }.first {
            $0.value.revision.name == mark.revision.name
        }
        guard first?.value.isConflict == true else { return false }
        guard let resolved = resolved(document, mark.revision, resolution, id) else { return false }
        var result = resolved
        result.isTreeRecord = false
        result.remotes[remote]?.isConflict = false
        if result.current == document.current {
            // Nothing is saved but the end of the conflict.
            result.isTreeRecord = document.isTreeRecord
            collections[collection]?.documents[id] = result
        } else {
            store(result, id, in: collection)
        }
        return true
    }

    /// A deleted side wins as it is, and so does a side whose content the resolver returns.
    private func simplified(_ resolution: LiteResolution, of conflict: LiteConflict) -> LiteResolution {
        switch resolution {
        case .local, .remote: resolution
        case .deleted: conflict.remote.isDeleted ? .remote : conflict.local.isDeleted ? .local : .deleted
        case .merged(let body):
            !conflict.remote.isDeleted && conflict.remote.body == body
                ? .remote : !conflict.local.isDeleted && conflict.local.body == body ? .local : resolution
        }
    }

    private func resolved(
        _ document: LiteDocument,
        _ remote: LiteRevision,
        _ resolution: LiteResolution,
        _ id: String
    ) -> LiteDocument? {
        var result = document
        let local = document.current
        let identity: LiteRevision.Identity?
        switch resolution {
        case .local: identity = localWins(local, remote, id)
        case .remote:
            identity = remoteWins(local, remote)
            result.current.isDeleted = remote.isDeleted
            result.current.body = remote.body
        case .merged, .deleted:
            identity = merged(local, remote, id)
            result.current.isDeleted = resolution == .deleted
            // A tombstone made here has no content at all, which no other one lacks.
            if case .merged(let body) = resolution {
                result.current.body = body
            } else {
                result.current.body = nil
            }
        }
        // The states cannot be merged, such as two versions by one author.
        guard let identity else { return nil }
        result.current.identity = identity
        if case .vector = identity {
            if let legacy = local.legacyID { result.lastLegacy = legacy }
            if resolution == .local, let legacy = remote.legacyID { result.lastLegacy = legacy }
        }
        return result
    }

    private func localWins(_ local: LiteRevision, _ remote: LiteRevision, _ id: String)
        -> LiteRevision.Identity?
    {
        switch (local.identity, remote.identity) {
        case (.vector(let own), .vector(let other)): return trivial(own, other)
        case (.legacy(let own), .legacy): return own.encodedVersion.map { .vector(VersionVector($0)) }
        case (.legacy(let own), .vector(let other)):
            if other.current?.source == .revisionTree {
                return other.current.flatMap { try? edited(VersionVector($0), id) }.map { .vector($0) }
            }
            return own.encodedVersion.flatMap { trivial(VersionVector($0), other) }
        case (.vector(let own), .legacy(let other)):
            guard let encoded = other.encodedVersion.map({ VersionVector($0) }) else { return nil }
            if own.current?.source == .revisionTree { return (try? edited(encoded, id)).map { .vector($0) } }
            return trivial(own, encoded)
        }
    }

    private func remoteWins(_ local: LiteRevision, _ remote: LiteRevision) -> LiteRevision.Identity? {
        switch (local.identity, remote.identity) {
        case (.vector(let own), .vector(let other)): trivial(other, own)
        case (.legacy, _): remote.identity
        case (.vector, .legacy(let other)): other.encodedVersion.map { .vector(VersionVector($0)) }
        }
    }

    private func merged(_ local: LiteRevision, _ remote: LiteRevision, _ id: String)
        -> LiteRevision.Identity?
    {
        let own = local.legacyID?.encodedVersion.map { VersionVector($0) } ?? local.vector
        let other = remote.legacyID?.encodedVersion.map { VersionVector($0) } ?? remote.vector
        let areBothOfTrees = [own, other].allSatisfy { $0.current?.source == .revisionTree }
        if areBothOfTrees, local.legacyID != nil || remote.legacyID != nil {
            return (try? edited(VersionVector(), id)).map { .vector($0) }
        }
        return merged(own, other, id).map { .vector($0) }
    }

    private func trivial(_ winner: VersionVector, _ loser: VersionVector) -> LiteRevision.Identity? {
        (try? winner.winning(over: loser)).map { .vector($0) }
    }
}
