import LoveseatModel
import LoveseatReplication

/// A replica that makes one of the mistakes from time to time.
final class FaultyReplica: ReplicaLayer {
    let inner: any Replica
    let collection: Int
    let shared: Shared
    var owner: SimulatedPeer { shared.owner }

    /// The state that the replicas of one connection share.
    final class Shared {
        let fault: PlantedFault
        let owner: SimulatedPeer
        let handedOut: HandedOut.Session
        fileprivate var generator: SeededGenerator
        fileprivate var lastBody: JSONText?

        init(_ fault: PlantedFault, seed: UInt64, owner: SimulatedPeer, _ handedOut: HandedOut.Session) {
            (self.fault, generator) = (fault, SeededGenerator(seed: seed))
            (self.owner, self.handedOut) = (owner, handedOut)
        }
    }

    private init(_ inner: any Replica, _ collection: Int, _ shared: Shared) {
        (self.inner, self.collection, self.shared) = (inner, collection, shared)
    }

    static func layers(
        over inner: any ReplicaSource,
        of owner: SimulatedPeer,
        fault: PlantedFault,
        seed: UInt64,
        _ handedOut: HandedOut.Session
    ) -> LayeredReplicas {
        let shared = Shared(fault, seed: seed, owner: owner, handedOut)
        return LayeredReplicas(inner) { replica, index in FaultyReplica(replica, index, shared) }
    }

    /// Whether to make one of these mistakes now.
    private func errs(_ mistakes: PlantedFault...) -> Bool {
        mistakes.contains(shared.fault)
            && (shared.fault == .believeUncoveredMarks || shared.generator.chance(0.3))
    }

    func insert(_ revisions: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
        func store(_ changed: [IncomingRevision]) throws(LoveseatError) -> [InsertResult] {
            try inner.insert(changed)
        }
        let hasHistory = revisions.contains { $0.line.count > 1 }
        if errs(.dropReceivedDocument, .acknowledgeEarly) {
            _ = try store(Array(revisions.dropFirst()))
            return revisions.map { _ in .inserted }
        } else if revisions.count > 1, errs(.dropEndOfBatch) {
            _ = try store(revisions.dropLast())
            return revisions.map { _ in .inserted }
        } else if errs(.flipByteOfReceivedBody) {
            return try store(revisions.map { change($0, body: Self.flipped($0.body)) })
        } else if revisions.contains(where: \.isDeleted), errs(.loseTombstone) {
            return try store(revisions.map { change($0, isDeleted: false) })
        } else if revisions.contains(where: { !$0.isDeleted }), errs(.inventTombstone) {
            return try store(revisions.map { change($0, isDeleted: true) })
        } else if hasHistory, errs(.loseHistory) {
            return try store(revisions.map { change($0, history: Array($0.line.prefix(1))) })
        } else if errs(.misnameDocument) {
            return try store(revisions.map { change($0, id: $0.documentID + "x") })
        } else if errs(.inventDocument) {
            _ = try store(revisions.map { change($0, id: $0.documentID + "-copy") })
        } else if errs(.renameRevision) {
            return try store(
                revisions.map { revision in
                    let renamed = revision.line.prefix(1).map {
                        RevisionID(generation: $0.generation, digest: [0xAB, 0xCD])
                    }
                    return change(revision, history: renamed + revision.line.dropFirst())
                }
            )
        } else if hasHistory, errs(.swapWinner) {
            return try store(
                revisions.map {
                    change($0, history: $0.line.count > 1 ? Array($0.line.dropFirst()) : $0.line)
                }
            )
        }
        if let spoiled = withSpoiledConflicts(revisions) { return try store(spoiled) }
        let before =
            errs(.overruleHub) ? revisions.map { owner.tree($0.documentID, in: collection)?.current } : []
        let results = try releasingBlobs(of: revisions.map(\.documentID)) { () throws(LoveseatError) in
            try store(revisions)
        }
        for (revision, before) in zip(revisions, before) {
            try owner.undo(revision, by: before, in: collection)
        }
        if shared.fault == .forgetOrigins {
            for revision in revisions { try owner.deleteOthers(like: revision, in: collection) }
        }
        return results
    }

    func revisions(_ requests: [RevisionRequest]) throws(LoveseatError) -> [OutgoingRevision] {
        let found = try inner.revisions(requests)
        if errs(.flipByteOfSentBody) {
            return changing(found) { (Self.flipped($0), $1) }
        } else if errs(.sendOtherBody) {
            return changing(found) { body, isDeleted in
                defer { shared.lastBody = body }
                return (shared.lastBody ?? body, isDeleted)
            }
        } else if errs(.staleDeltaBase) {
            return found.map(Self.stale)
        }
        return found
    }

    func changes(_ query: ChangeQuery) throws(LoveseatError) -> ChangePage {
        var page = try inner.changes(query)
        if shared.fault == .forgetRevocations {
            page.changes.removeAll(where: \.takesAway)
        } else if !page.changes.isEmpty, errs(.skipChangeInFeed) {
            page.changes.removeFirst()
        } else if page.through > 0, errs(.overstateFeedPosition) {
            page.through += 2
        } else if !page.changes.isEmpty, errs(.markUnpushedAsSynced) {
            let marks = page.changes.map {
                SyncedRevision(documentID: $0.documentID, revision: $0.revision, sequence: $0.sequence)
            }
            try inner.markSynced(marks)
            page.changes = []
        }
        leaveOut(of: &page)
        return page
    }

    func checkpoint() throws(LoveseatError) -> StoredCheckpoint {
        var stored = try inner.checkpoint()
        if errs(.believeUncoveredMarks) { stored.marks = .ours(isCovered: true) }
        return stored
    }

    func saveCheckpoint(_ body: JSONText, coversMarks: Bool) throws(LoveseatError) {
        if errs(.believeUncoveredMarks) {
            try inner.beginCheckpoint()
            return try inner.saveCheckpoint(body, coversMarks: true)
        }
        let body = errs(.skipCheckpoint) ? Self.advanced(body) : body
        try inner.saveCheckpoint(body, coversMarks: coversMarks)
    }

    func savePeerCheckpoint(_ body: JSONText, as id: String, replacing revision: Int) throws(LoveseatError)
        -> Int?
    {
        let body = errs(.skipCheckpoint) ? Self.advanced(body) : body
        return try inner.savePeerCheckpoint(body, as: id, replacing: revision)
    }

    func evaluate(_ changes: [AnnouncedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ChangeVerdict]
    {
        if errs(.claimToHaveChange) { return changes.map { _ in .alreadyHere } }
        let verdicts = try inner.evaluate(changes, from: peer)
        if shared.fault != .mixUpCollections { return verdicts }
        return zip(changes, verdicts).map { change, verdict in
            isInOtherCollection(change.documentID, change.revision) ? .alreadyHere : verdict
        }
    }

    func evaluate(_ proposals: [ProposedChange], from peer: RevisionTree.PeerKind)
        throws(LoveseatError) -> [ProposalVerdict]
    {
        if errs(.claimToHaveProposal) { return proposals.map { _ in .alreadyHere } }
        let verdicts = try inner.evaluate(proposals, from: peer)
        if shared.fault != .mixUpCollections { return verdicts }
        return zip(proposals, verdicts).map { proposal, verdict in
            isInOtherCollection(proposal.documentID, proposal.revision) ? .alreadyHere : verdict
        }
    }

    func body(of revision: RevisionName, _ id: String) throws(LoveseatError) -> JSONText? {
        let body = try inner.body(of: revision, id)
        return errs(.corruptDelta) ? body.map(Self.flipped) : body
    }

    func finishBlob(_ handle: BlobHandle, expected: BlobDigest) throws(LoveseatError) {
        if errs(.loseReceivedBlob) { return inner.cancelBlob(handle) }
        try inner.finishBlob(handle, expected: expected)
    }

    func holdBlobs(_ digests: [BlobDigest], of id: String) throws(LoveseatError) -> [BlobDigest] {
        let missing = try inner.holdBlobs(digests, of: id)
        return errs(.claimToHaveBlob) ? [] : missing
    }

    func change(
        _ revision: IncomingRevision,
        id: String? = nil,
        history: [RevisionID]? = nil,
        isDeleted: Bool? = nil,
        body: JSONText? = nil
    ) -> IncomingRevision {
        var changed = IncomingRevision(
            documentID: id ?? revision.documentID,
            history: history.map { .line($0) } ?? revision.history,
            isDeleted: isDeleted ?? revision.isDeleted,
            body: body ?? revision.body,
            sender: revision.sender
        )
        (changed.origin, changed.knowledge) = (revision.origin, revision.knowledge)
        (changed.restOf, changed.isIncomplete) = (revision.restOf, revision.isIncomplete)
        return changed
    }

    private func changing(_ found: [OutgoingRevision], _ change: (JSONText, Bool) -> (JSONText, Bool))
        -> [OutgoingRevision]
    {
        found.map { outgoing in
            guard case .found(var content) = outgoing else { return outgoing }
            (content.body, content.isDeleted) = change(content.body, content.isDeleted)
            return .found(content)
        }
    }

    /// The text with one letter or digit changed, still JSON.
    static func flipped(_ text: JSONText) -> JSONText {
        var bytes = text.bytes
        guard let index = bytes.lastIndex(where: { (0x31...0x38).contains($0) }) else { return text }
        bytes[index] ^= 1
        // A 1 before other digits becomes a leading 0, which is not JSON.
        return (try? JSONText(bytes)) ?? text
    }

    /// The revision with a delta against a body that the base never had.
    private static func stale(_ outgoing: OutgoingRevision) -> OutgoingRevision {
        guard case .found(var content) = outgoing, let base = content.deltaBase else { return outgoing }
        var value = JSONElement(base.body).value
        value["by"] = JSONElement(content.body).value["by"]
        value["n"] = JSONElement(content.body).value["n"]
        content.deltaBase = .init(revision: base.revision, body: JSONText(canonical: value))
        return .found(content)
    }

    private static func advanced(_ json: JSONText) -> JSONText {
        var value = JSONElement(json).value
        for key in ["local", "remote"] { value[key] = JSONValue((value[key]?.int ?? 0) + 3) }
        value["localCompleted"] = nil
        return JSONText(canonical: value)
    }
}
