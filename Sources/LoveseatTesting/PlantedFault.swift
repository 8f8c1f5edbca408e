import LoveseatModel
import LoveseatReplication

/// A mistake that replication could make. The simulator must notice every one of them; if it does not, what it says
/// of the others is worth nothing.
public enum PlantedFault: String, CaseIterable, Sendable {
    /// A received document is answered as stored and is not.
    case dropReceivedDocument
    /// A byte of a received body changes.
    case flipByteOfReceivedBody
    /// A byte of a sent body changes.
    case flipByteOfSentBody
    /// A received deletion is stored as a living document.
    case loseTombstone
    /// A received document is stored as a deletion.
    case inventTombstone
    /// Of a batch, all but the last revision are stored.
    case dropEndOfBatch
    /// The change feed leaves a change out.
    case skipChangeInFeed
    /// The change feed claims to have read further than it did.
    case overstateFeedPosition
    /// Both copies of the checkpoint skip ahead by one.
    case skipCheckpoint
    /// Revisions are answered before they are stored, and then the storing is forgotten.
    case acknowledgeEarly
    /// A wanted change is answered as already here.
    case claimToHaveChange
    /// A proposal is answered as already here.
    case claimToHaveProposal
    /// The current and the conflicting revision change places when stored.
    case swapWinner
    /// A revision is marked as known to the remote before it was pushed.
    case markUnpushedAsSynced
    /// Marks that no checkpoint covers are believed.
    case believeUncoveredMarks
    /// A received blob is thrown away and counted as stored.
    case loseReceivedBlob
    /// A missing blob is claimed to be here.
    case claimToHaveBlob
    /// The history that comes with a revision is cut off.
    case loseHistory
    /// A revision is sent with the body of another document.
    case sendOtherBody
    /// A document comes under another ID.
    case misnameDocument
    /// A received revision is stored twice, once under an invented name.
    case inventDocument
    /// A received revision gets a name of our own making.
    case renameRevision
    /// A delta makes another body.
    case corruptDelta
    /// A delta is made against another body than the receiver has.
    case staleDeltaBase
    /// A local edit gives up none of the other candidates that its author knew.
    case leaveOthersOpen
    /// A copy for a hub counts more than its original.
    case rankCopiesHigher
    /// A deletion is taken for one of every document of that name.
    case forgetOrigins
    /// A hub's revision with our content is taken for somebody's edit.
    case recogniseNothing
    /// A copy is written down only after the hub's answer, which may be lost.
    case writeDownAfterwards
    /// The sequences of a collection that is made anew begin at 1.
    case restartSequences
    /// A loosened filter goes on from the checkpoint of the narrow one.
    case forgetFilterVersion
    /// The peer's copy of the checkpoint is not compared with ours.
    case trustOwnCheckpoint
    /// The access policy is not asked.
    case ignorePolicy
    /// A peer is not told of what it may not have any more.
    case forgetRevocations
    /// The driver does not look for what came up while it was sending.
    case loseWakeUp
    /// The driver reads nothing, acknowledgements included, while it waits for room to send.
    case leaveUnread
    /// The driver cancels no timer.
    case leaveTimers

    /// Where the mistake can show at all; nil for everywhere.
    var world: SimulatedWorld? {
        switch self {
        case .restartSequences: .collections
        case .forgetFilterVersion: .filters
        case .trustOwnCheckpoint: .addresses
        case .ignorePolicy, .forgetRevocations: .access
        default: nil
        }
    }

    /// The part of the rule for conflicts that is left out (docs/decisions/0001).
    var omissions: RevisionTree.Omissions {
        switch self {
        case .leaveOthersOpen: .closingAtEdit
        case .rankCopiesHigher: .rankOfCopy
        case .forgetOrigins: .origin
        case .recogniseNothing: .recognition
        case .writeDownAfterwards: .writingDownFirst
        default: []
        }
    }

    /// The part of the driver that is left out.
    var driverOmissions: ReplicationDriver.Omissions {
        switch self {
        case .loseWakeUp: .secondLook
        case .leaveUnread: .readingWhileSending
        case .leaveTimers: .cancelling
        default: []
        }
    }

    /// Whether the mistake can show only where there is a hub.
    public var needsHub: Bool { !omissions.isDisjoint(with: [.rankOfCopy, .recognition, .writingDownFirst]) }
}

/// A database that makes one of the mistakes from time to time.
final class FaultyReplica: ReplicaStore {
    private let inner: any ReplicaStore
    private let fault: PlantedFault
    private var generator: SeededGenerator
    private var lastBody: JSONText?

    init(_ inner: any ReplicaStore, fault: PlantedFault, seed: UInt64) {
        self.inner = inner
        self.fault = fault
        generator = SeededGenerator(seed: seed)
    }

    func perform(_ request: StoreRequest) -> StoreAnswer {
        guard fault == .believeUncoveredMarks || generator.chance(0.3), let answer = bend(request) else {
            return inner.perform(request)
        }
        return answer
    }

    /// The answer of a database that makes the mistake; nil where the mistake does not apply.
    private func bend(_ request: StoreRequest) -> StoreAnswer? {
        switch (fault, request) {
        case (.dropReceivedDocument, .insert(let collection, let revisions)),
            (.acknowledgeEarly, .insert(let collection, let revisions)):
            _ = inner.perform(.insert(collection: collection, Array(revisions.dropFirst())))
            return .inserted(revisions.map { _ in .inserted })
        case (.dropEndOfBatch, .insert(let collection, let revisions)) where revisions.count > 1:
            _ = inner.perform(.insert(collection: collection, revisions.dropLast()))
            return .inserted(revisions.map { _ in .inserted })
        case (.flipByteOfReceivedBody, .insert(let collection, let revisions)):
            return insert(collection, revisions) { change($0, body: Self.flipped($0.body)) }
        case (.loseTombstone, .insert(let collection, let revisions))
        where revisions.contains(where: \.isDeleted):
            return insert(collection, revisions) { change($0, isDeleted: false) }
        case (.inventTombstone, .insert(let collection, let revisions))
        where revisions.contains { !$0.isDeleted }:
            return insert(collection, revisions) { change($0, isDeleted: true) }
        case (.loseHistory, .insert(let collection, let revisions))
        where revisions.contains { $0.history.count > 1 }:
            return insert(collection, revisions) { change($0, history: [$0.history[0]]) }
        case (.misnameDocument, .insert(let collection, let revisions)):
            return insert(collection, revisions) { change($0, id: $0.documentID + "x") }
        case (.inventDocument, .insert(let collection, let revisions)):
            let copies = revisions.map { change($0, id: $0.documentID + "-copy") }
            _ = inner.perform(.insert(collection: collection, copies))
            return inner.perform(request)
        case (.renameRevision, .insert(let collection, let revisions)):
            return insert(collection, revisions) { revision in
                let renamed = RevisionID(generation: revision.history[0].generation, digest: [0xAB, 0xCD])
                return change(revision, history: [renamed] + revision.history.dropFirst())
            }
        case (.swapWinner, .insert(let collection, let revisions))
        where revisions.contains { $0.history.count > 1 }:
            return insert(collection, revisions) { change($0, history: Array($0.history.dropFirst())) }
        case (.flipByteOfSentBody, .readRevisions):
            return found(request) { (Self.flipped($0), $1) }
        case (.sendOtherBody, .readRevisions):
            return found(request) { body, isDeleted in
                defer { lastBody = body }
                return (lastBody ?? body, isDeleted)
            }
        case (.skipChangeInFeed, .readChanges):
            guard case .changes(let changes, let through, let hasMore) = inner.perform(request),
                !changes.isEmpty
            else {
                return nil
            }
            return .changes(Array(changes.dropFirst()), through: through, hasMore: hasMore)
        case (.overstateFeedPosition, .readChanges):
            guard case .changes(let changes, let through, let hasMore) = inner.perform(request), through > 0
            else {
                return nil
            }
            return .changes(changes, through: through + 2, hasMore: hasMore)
        case (.skipCheckpoint, .saveCheckpoint(let collection, let json, let coversMarks)):
            let json = Self.advanced(json)
            return inner.perform(.saveCheckpoint(collection: collection, json, coversMarks: coversMarks))
        case (.skipCheckpoint, .savePeerCheckpoint(let id, let revision, let json)):
            return inner.perform(.savePeerCheckpoint(id: id, replacing: revision, Self.advanced(json)))
        case (.claimToHaveChange, .judgeChanges(_, let changes, _)):
            return .changeVerdicts(changes.map { _ in .alreadyHere })
        case (.claimToHaveProposal, .judgeProposals(_, let proposals, _)):
            return .proposalVerdicts(proposals.map { _ in .alreadyHere })
        case (.markUnpushedAsSynced, .readChanges(let collection, _)):
            guard case .changes(let changes, let through, let hasMore) = inner.perform(request),
                !changes.isEmpty
            else {
                return nil
            }
            let marks = changes.map { DocumentRevision(documentID: $0.documentID, revision: $0.revision) }
            _ = inner.perform(.markSynced(collection: collection, marks))
            return .changes([], through: through, hasMore: hasMore)
        case (.believeUncoveredMarks, .saveCheckpoint(let collection, let json, _)):
            _ = inner.perform(.beginCheckpoint(collection: collection))
            return inner.perform(.saveCheckpoint(collection: collection, json, coversMarks: true))
        case (.believeUncoveredMarks, .loadCheckpoint):
            guard case .checkpoint(let body, _, let wasTakenFrom) = inner.perform(request) else { return nil }
            return .checkpoint(body, marks: .ours(isCovered: true), wasTakenFrom: wasTakenFrom)
        case (.corruptDelta, .expandDelta(let collection, let id, let base, let delta)):
            guard case .expanded(.body(let bytes)) = inner.perform(request), let body = try? JSONText(bytes)
            else {
                return inner.perform(
                    .expandDelta(collection: collection, documentID: id, base: base, delta: delta)
                )
            }
            return .expanded(.body(Self.flipped(body).bytes))
        case (.staleDeltaBase, .readRevisions):
            guard case .revisions(let revisions) = inner.perform(request) else { return nil }
            return .revisions(revisions.map(Self.stale))
        case (.loseReceivedBlob, .finishBlob(let handle, _)):
            _ = inner.perform(.cancelBlob(handle))
            return .done
        case (.claimToHaveBlob, .holdBlobs): return .missingBlobs([])
        case (.forgetRevocations, .readRevocations(let collection)):
            guard case .changes(let revoked, let through, let hasMore) = inner.perform(request) else {
                return nil
            }
            _ = inner.perform(.forgetGrants(collection: collection, revoked.map(\.documentID)))
            return .changes([], through: through, hasMore: hasMore)
        default: return nil
        }
    }

    private func insert(
        _ collection: Int,
        _ revisions: [IncomingRevision],
        _ change: (IncomingRevision) -> IncomingRevision
    ) -> StoreAnswer {
        inner.perform(.insert(collection: collection, revisions.map(change)))
    }

    private func change(
        _ revision: IncomingRevision,
        id: String? = nil,
        history: [RevisionID]? = nil,
        isDeleted: Bool? = nil,
        body: JSONText? = nil
    ) -> IncomingRevision {
        var changed = IncomingRevision(
            documentID: id ?? revision.documentID,
            history: history ?? revision.history,
            isDeleted: isDeleted ?? revision.isDeleted,
            body: body ?? revision.body,
            sender: revision.sender
        )
        (changed.origin, changed.knowledge) = (revision.origin, revision.knowledge)
        return changed
    }

    private func found(_ request: StoreRequest, _ change: (JSONText, Bool) -> (JSONText, Bool))
        -> StoreAnswer?
    {
        guard case .revisions(let revisions) = inner.perform(request) else { return nil }
        return .revisions(
            revisions.map { outgoing in
                guard case .found(var content) = outgoing else { return outgoing }
                (content.body, content.isDeleted) = change(content.body, content.isDeleted)
                return .found(content)
            }
        )
    }

    /// The text with one letter or digit changed, still JSON.
    private static func flipped(_ text: JSONText) -> JSONText {
        var bytes = text.bytes
        guard let index = bytes.lastIndex(where: { (0x31...0x38).contains($0) }) else { return text }
        bytes[index] ^= 1
        return (try? JSONText(bytes)) ?? text
    }

    /// With a delta against what the base never said.
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
