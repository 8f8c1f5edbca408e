import LoveseatModel
import LoveseatReplication

/// The revisions that were asked for, or agreed to, and have not come.
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
        /// Its place among the peer's sequences.
        let number: Int
        let place: Announcement
        let revision: RevisionID
        /// It may have been announced for what it was, and not for what the peer has now.
        let mayBeOld: Bool
        /// In bytes, as announced; 0 if the peer did not say.
        let bodySize: Int
        /// In bytes, as announced or as it is likely to be.
        let likelySize: Int
    }

    private var entries: [Key: Entry] = [:]
    /// What a passive side has agreed to.
    var agreed = OutstandingRequests()
    /// Bytes that are likely to come.
    private(set) var bytes = 0
    /// How long bodies are that the peer did not announce the size of, in bytes, lately.
    private(set) var usualSize = 0

    var count: Int { entries.count + agreed.total }
    var isEmpty: Bool { count == 0 }
    /// Nothing that was asked for is still to come. What was agreed to may never come.
    var isAnswered: Bool { entries.isEmpty }

    /// The documents, in the order of their announcement; then those that were agreed to.
    var documentIDs: [String] {
        let announced = entries.sorted { $0.value.place < $1.value.place }.map(\.key.documentID)
        return announced + agreed.documentIDs
    }

    func contains(_ documentID: String) -> Bool {
        entries.keys.contains { $0.documentID.isExactly(documentID) }
    }

    /// Whether ``bytes`` is what it says.
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

    /// Expects a revision once more that has come.
    mutating func expectAgain(_ key: Key, _ entry: Entry) {
        entries[key] = entry
        bytes += entry.likelySize
    }

    /// A revision came, or will not.
    mutating func meet(_ key: Key) -> Entry? {
        guard let entry = entries.removeValue(forKey: key) else { return nil }
        bytes -= entry.likelySize
        return entry
    }

    /// What was announced of the revision that a message brings.
    func key(of message: RevisionMessage) -> Key? {
        let id = message.documentID
        let key = message.sequence.map { Key(documentID: id, sequence: $0) }
        if let key, entries[key] != nil || !message.isReplacement { return key }
        return entries.keys.first { $0.documentID.isExactly(id) } ?? key
    }

    /// What was announced of a revision that does not come. A peer that leaves out the sequence means the document's only announcement of
    /// that revision.
    func key(of message: NoRevisionMessage) -> Key? {
        let id = message.documentID
        if let sequence = message.sequence { return Key(documentID: id, sequence: sequence) }
        let found = entries.filter { key, entry in
            key.documentID.isExactly(id) && entry.revision == message.revision
        }
        return found.count == 1 ? found.first?.key : nil
    }

    /// How long a body is likely to be of which the peer announced this size, or nothing.
    private func likelySize(_ announced: Int) -> Int { announced > 1 ? announced : usualSize }

    /// Learns from a body that came.
    mutating func learnSize(_ bytes: Int) { usualSize = max(bytes, usualSize - usualSize / 8) }
}

/// Where something was announced: later lists, and later entries of one list, say what the peer had later.
struct Announcement: Hashable, Comparable, Sendable {
    let list: Int
    let index: Int

    static func < (one: Self, other: Self) -> Bool { (one.list, one.index) < (other.list, other.index) }
}
