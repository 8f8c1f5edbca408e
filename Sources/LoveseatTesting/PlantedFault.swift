import LoveseatBLIPReplication

/// A mistake that replication could make. The simulator must notice every one of them; otherwise its findings about the others are worth
/// nothing.
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
    /// An edit of others on a hub's line is undone by the content that was here before.
    case overruleHub
    /// A received deletion is taken for one of every document of that name.
    case forgetOrigins
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
    /// A person who chooses one of several versions deletes that one, too.
    case deleteWhatIsKept
    /// The driver does not look for what came up while it was sending.
    case loseWakeUp
    /// The driver reads nothing, acknowledgements included, while it waits for room to send.
    case leaveUnread
    /// The driver cancels no timer.
    case leaveTimers
    /// The checkpoint of a peer that was put back to a backup counts as before.
    case forgetRestoration
    /// A copied folder keeps the identity of the original.
    case keepIdentityOfCopy
    /// The peer's copy of the checkpoint is believed, whatever is here.
    case trustPeersCheckpoint
    /// A session leaves to another one between the same peers what that one was given.
    case leaveToOtherSession
    /// A document that gives up a blob takes it away from others.
    case releaseSharedBlobs
    /// The change feed goes on from a time, and not from a sequence.
    case continueByTime
    /// A document that expires is deleted for everybody.
    case deleteWhatExpires
    /// A purge deletes the document for everybody.
    case deleteWhatIsPurged
    /// An import replaces documents, and does not merge them.
    case importOverCurrent
    /// A revision counts as here if another collection has it.
    case mixUpCollections
    /// A compaction removes blobs of documents that are about to be stored.
    case compactUnheldBlobs
    /// Of a large body that conflicts with the one here, a byte changes.
    case spoilLargeConflict

    /// The mistakes that only an untidy world can show.
    public static var untidy: [PlantedFault] {
        allCases.filter { !$0.worlds.isDisjoint(with: SimulatedWorld.untidy) }
    }

    /// The worlds without which the mistake cannot show.
    public var worlds: Set<SimulatedWorld> {
        switch self {
        case .restartSequences: [.collections]
        case .forgetFilterVersion: [.filters]
        case .trustOwnCheckpoint: [.addresses]
        case .ignorePolicy, .forgetRevocations: [.access]
        case .believeUncoveredMarks: [.power]
        case .deleteWhatIsKept: [.verdicts]
        case .forgetRestoration: [.backups]
        case .trustPeersCheckpoint: [.backups]
        case .keepIdentityOfCopy: [.twins]
        case .leaveToOtherSession: [.doubles]
        case .releaseSharedBlobs: [.sharedBlobs]
        case .continueByTime: [.clocks]
        case .deleteWhatExpires: [.expirations]
        case .deleteWhatIsPurged: [.purges]
        case .importOverCurrent: [.imports]
        case .mixUpCollections: [.namesakes]
        case .compactUnheldBlobs: [.compactions]
        case .spoilLargeConflict: [.largeConflicts]
        default: []
        }
    }

    /// How many hubs there must be for the mistake to show.
    var hubs: Int {
        switch self {
        case .overruleHub: 1
        default: 0
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
}
