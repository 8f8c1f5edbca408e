import LoveseatModel
import LoveseatReplication

/// The revisions that were requested, or agreed to, and have not arrived.
struct Expectations: Sendable {
    struct Key: Hashable, Sendable {
        private let id: ExactText
        let sequence: RemoteSequence

        var documentID: String { id.text }

        init(documentID: String, sequence: RemoteSequence) {
            (id, self.sequence) = (ExactText(documentID), sequence)
        }
    }

    /// An announced revision that was asked for.
    struct Entry: Sendable {
        /// Its number in ``RemoteSequences``.
        let number: Int
        let place: Announcement
        let revision: RevisionName
        /// The announcement may be about an older state, and not about the peer's current one.
        let mayBeOld: Bool
        /// In bytes, as announced; 0 if the peer did not say.
        let bodySize: Int
        /// In bytes, as announced or as it is likely to be.
        let likelySize: Int
    }

    private var entries: [Key: Entry] = [:]
    /// The revisions that a passive side has agreed to.
    var agreed = OutstandingRequests()
    /// Why a part of a document was refused, of which other parts are to come.
    private var refusals: DocumentMap<LoveseatError> = [:]
    /// Bytes that are likely to come.
    private(set) var bytes = 0
    /// The likely size of a body whose size the peer did not announce, in bytes, by those that arrived lately.
    private(set) var usualSize = 0

    var count: Int { entries.count + agreed.total }
    var isEmpty: Bool { count == 0 }
    /// Whether every requested revision has arrived. Revisions that were only agreed to may never arrive.
    var isAnswered: Bool { entries.isEmpty }

    /// Whether all revisions that a list may ask for fit now. A peer may send them all at once.
    func hasRoom(for list: ReceivedList, of peer: RevisionTree.PeerKind, _ tuning: ReplicationTuning) -> Bool
    {
        guard !isEmpty else { return true }
        // A peer that proposes sends a few at a time (replication.md §9.1).
        guard case .changes = list.entries else { return count < tuning.proposalsAgreed }
        let most = peer == .loveseat ? tuning.revisionsRequestedOfLoveseat : tuning.revisionsRequested
        let bytes = bytes + list.announcedBytes + list.unsized * usualSize
        return count + list.count <= most && bytes <= tuning.requestedBytes
    }

    /// The documents, in the order of their announcement; then those that were agreed to.
    var documentIDs: [String] {
        let announced = entries.sorted { $0.value.place < $1.value.place }.map(\.key.documentID)
        return announced + agreed.documentIDs
    }

    func contains(_ documentID: String) -> Bool {
        entries.keys.contains { $0.documentID.isExactly(documentID) }
    }

    /// Whether ``bytes`` is the sum of the entries' likely sizes.
    var isSumRight: Bool { bytes == entries.values.reduce(0) { $0 + $1.likelySize } }

    /// Remembers that a revision was asked for; false if it was asked for before.
    mutating func expect(_ change: AnnouncedChange, _ number: Int, _ place: Announcement) -> Bool {
        let key = Key(documentID: change.documentID, sequence: change.sequence)
        guard entries[key] == nil else { return false }
        let entry = Entry(
            number: number,
            place: place,
            revision: change.revision,
            mayBeOld: change.mayBeOld,
            bodySize: change.bodySize,
            likelySize: likelySize(change.bodySize)
        )
        expectAgain(key, entry)
        return true
    }

    /// Remembers why a part of a document was refused; nil if none was.
    mutating func noteRefusal(_ error: LoveseatError?, of id: String) {
        // Hardly any document is refused in parts.
        if error == nil, refusals.isEmpty { return }
        refusals[ExactText(id)] = error
    }

    /// Forgets, and returns, why an earlier part of this revision's document was refused.
    mutating func removeRefusal(of revision: IncomingRevision) -> LoveseatError? {
        if refusals.isEmpty { return nil }
        let error = refusals.removeValue(forKey: ExactText(revision.documentID))
        return revision.restOf == nil ? nil : error
    }

    private mutating func expectAgain(_ key: Key, _ entry: Entry) {
        entries[key] = entry
        bytes += entry.likelySize
    }

    /// Expects a document again of which a part has arrived, or a delta that could not be used. `key`, `entry`: nil if it was not announced.
    mutating func expectAgain(_ id: String, _ key: Key?, _ entry: Entry?, isActive: Bool) {
        if let key, let entry { expectAgain(key, entry) }
        if !isActive { agreed.add(id) }
    }

    /// Removes and returns the entry of a revision that has arrived, or will not.
    mutating func remove(_ key: Key) -> Entry? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        bytes -= entry.likelySize
        return entry
    }

    /// Returns the key of the announcement of the revision that a message contains.
    func key(of message: RevisionMessage) -> Key? {
        let id = message.documentID
        let key = message.sequence.map { Key(documentID: id, sequence: $0) }
        if let key, entries[key] != nil || !message.isReplacement { return key }
        return entries.keys.first { $0.documentID.isExactly(id) } ?? key
    }

    /// Returns the key of the announcement of a revision that will not arrive. A peer that leaves out the sequence means the document's
    /// only announcement of that revision.
    func key(of message: NoRevisionMessage) -> Key? {
        let id = message.documentID
        if let sequence = message.sequence { return Key(documentID: id, sequence: sequence) }
        let found = entries.filter { key, entry in
            key.documentID.isExactly(id)
                && message.revision.map { $0.isEquivalent(to: entry.revision) } ?? false
        }
        return found.count == 1 ? found.first?.key : nil
    }

    /// The likely size of a body for which the peer announced this size, or nothing.
    private func likelySize(_ announced: Int) -> Int { announced > 1 ? announced : usualSize }

    /// Adjusts ``usualSize`` to a body that has arrived.
    mutating func recordSize(_ bytes: Int) { usualSize = max(bytes, usualSize - usualSize / 8) }
}

/// The place of an announcement: later lists, and later entries of one list, are about later states of the peer.
struct Announcement: Hashable, Comparable, Sendable {
    let list: Int
    let index: Int

    static func < (one: Self, other: Self) -> Bool { (one.list, one.index) < (other.list, other.index) }
}
