import LoveseatModel
import LoveseatReplication

/// The documents that a session pushed: lists of the peer may be older than that.
struct PushedNames: Sendable {
    private static let bytes = 1_000_000

    private var documents = NameSet(bytes: bytes)
    /// Revisions that the peer announced in this session before it was known to have them; nil while there are none, so that no name is made
    /// for each pushed document.
    private var echoed: NameSet?

    func mayContain(_ documentID: String) -> Bool { documents.mayContain(documentID) }

    mutating func note(_ revisions: [SyncedRevision]) {
        for revision in revisions
        where !(echoed?.contains(Self.name(revision.documentID, .revision(revision.revision))) ?? false) {
            documents.insert(revision.documentID)
        }
    }

    /// Remembers that the peer announced the revision that is current here: its later announcements are newer.
    ///
    /// `isMarked`: whether the peer was known to have it. If not, its answer to the push may be on its way.
    mutating func noteEcho(of change: AnnouncedChange, isMarked: Bool) {
        noteNews(of: change.documentID)
        if isMarked { return }
        let echo = Self.name(change.documentID, change.revision)
        if echoed == nil { echoed = NameSet(bytes: Self.bytes) }
        echoed?.insert(echo)
    }

    /// Remembers that the peer sent a newer revision than the one that this session pushed.
    mutating func noteNews(of documentID: String) {
        // This is called for every document, of which most are not there: looking is quicker than removing.
        if documents.contains(documentID) { documents.remove(documentID) }
    }

    private static func name(_ documentID: String, _ revision: RevisionName) -> String {
        "\(revision.text) \(documentID)"
    }
}
