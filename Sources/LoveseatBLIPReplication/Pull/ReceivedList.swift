import LoveseatAssertions
import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

/// A received list of changes that has not been answered.
struct ReceivedList: Sendable {
    enum Entries: Sendable {
        case changes([AnnouncedChange])
        case proposals([ProposedChange], namesRevision: Bool)
    }

    let request: UInt64
    let isUrgent: Bool
    let entries: Entries
    /// The approximate memory that it takes, in bytes.
    let bytes: Int
    /// The sum of the body sizes that the peer announced, and the number of bodies whose size it did not.
    private(set) var (announcedBytes, unsized) = (0, 0)

    /// Bytes that a list takes besides its entries.
    private static let overhead = 500

    init(_ message: Message, _ request: UInt64, _ entries: Entries) {
        (self.request, self.entries) = (request, entries)
        isUrgent = message.isUrgent
        bytes = message.body.count + Self.overhead
        // Proposals are bounded by their number, not by the sizes that they announce.
        guard case .changes(let changes) = entries else { return }
        for change in changes {
            if change.bodySize > 1 { announcedBytes += change.bodySize } else { unsized += 1 }
        }
    }

    var count: Int {
        switch entries {
        case .changes(let changes): changes.count
        case .proposals(let proposals, _): proposals.count
        }
    }

    var documentIDs: [String] {
        switch entries {
        case .changes(let changes): changes.map(\.documentID)
        case .proposals(let proposals, _): proposals.map(\.documentID)
        }
    }

    func announces(_ documentID: String) -> Bool {
        guard case .changes(let changes) = entries else { return false }
        return changes.contains { $0.documentID.isExactly(documentID) }
    }
}

/// The received lists that are not answered, in order.
struct ReceivedLists: Sendable {
    private var lists: [Int: ReceivedList] = [:]
    private var waiting: [Int] = []
    /// The number of the last list that came.
    private(set) var last = 0
    private var bytes = 0

    var count: Int { lists.count }
    var isEmpty: Bool { lists.isEmpty }

    subscript(number: Int) -> ReceivedList? { lists[number] }

    /// Adds a list; false if it and those that wait are more than a peer may send.
    mutating func add(_ list: ReceivedList, _ tuning: ReplicationTuning) -> Bool {
        bytes += list.bytes
        guard bytes <= tuning.listBytesAccepted, list.count <= tuning.listEntriesAccepted else {
            return false
        }
        last += 1
        lists[last] = list
        waiting.append(last)
        return true
    }

    /// The list that is evaluated next.
    var next: (number: Int, list: ReceivedList)? {
        guard let number = waiting.first, let list = lists[number] else { return nil }
        return (number, list)
    }

    /// Takes the next list, which stays here until it is removed.
    mutating func dequeue() { waiting.removeFirst() }

    mutating func remove(_ number: Int) {
        if let list = lists.removeValue(forKey: number) { bytes -= list.bytes }
    }

    func announce(_ documentID: String) -> Bool { lists.values.contains { $0.announces(documentID) } }

    /// The announced documents, in order.
    var documentIDs: [String] { lists.sorted { $0.key < $1.key }.flatMap { $0.value.documentIDs } }

    func checkInvariants() {
        invariant(
            bytes == lists.values.reduce(0) { $0 + $1.bytes },
            "\(bytes) bytes are counted of \(lists.count) lists"
        )
        invariant(
            waiting.allSatisfy { lists[$0] != nil } && waiting.count == lists.count,
            "lists \(waiting) wait, and \(lists.keys.sorted()) are here"
        )
    }
}
