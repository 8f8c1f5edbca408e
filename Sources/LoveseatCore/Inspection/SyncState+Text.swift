import LoveseatModel
package import LoveseatReplication

extension SyncState {
    /// The reason, as `loveseat why` and the inspector name it.
    package var name: String {
        switch self {
        case .notHere: "not-here"
        case .upToDate: "up-to-date"
        case .pending: "pending"
        case .inConflict: "in-conflict"
        case .notListed: "not-listed"
        case .filtered: "filtered"
        case .refused(let error): error.isStoredAtPeer ? "in-conflict" : "refused"
        case .notPulled: "not-pulled"
        case .notPushed: "not-pushed"
        case .expired: "expired"
        case .passedOver: "passed-over"
        }
    }

    /// The reason, as a sentence for people.
    package var sentence: String {
        switch self {
        case .notHere:
            "there is no such document here; `pull` fetches it if the peer has it"
        case .upToDate: "the peer is known to have the current revision"
        case .pending: "it has a change that was not pushed yet; `push` or `sync` sends it"
        case .inConflict: "it has a conflict; `sync` resolves it and sends the result"
        case .notListed: "it is not among the documents of --doc-ids"
        case .filtered: "the filter keeps it here"
        case .refused(let error) where error.isFinalRefusal:
            "the peer refused the current revision: \(error.message); it is sent again when it changes, or with --reset"
        case .refused(let error) where error.isStoredAtPeer: "\(error.message), with `pull` or `sync`"
        case .refused(let error):
            "the last attempt to push it failed: \(error.message); `push` or `sync` tries again"
        case .notPulled(let error):
            "the peer's revision did not get here: \(error.message); the next `pull` or `sync` asks for it again"
        case .notPushed: "the replication only pulls"
        case .expired: "it has expired and is about to be purged"
        case .passedOver: "an earlier run passed over it; change it, or use --reset"
        }
    }
}

extension PendingTransfer {
    /// The stage of the transfer, as a sentence for people.
    package var sentence: String {
        switch stage {
        case .waits: "it waits for its turn to be offered to the peer"
        case .offered: "it was offered, and the peer has not answered"
        case .wanted: "the peer wants it, and gets it as soon as it has taken what was sent before"
        case .sent: "it was sent, and the peer has not confirmed it"
        case .refusedOnce: "the peer refused it, and is asked once more when everything else is through"
        case .parked: "the peer has another revision, which has to come first"
        case .failed: "it could not be pushed over this connection; the next one tries again"
        case .announced: "the peer has announced it, and has not been answered"
        case .expected: "the peer was asked for it, and has not sent it"
        case .fetchingBlobs: "it has come, and its blobs are being fetched"
        case .received: "it has come, and is about to be stored"
        }
    }
}
