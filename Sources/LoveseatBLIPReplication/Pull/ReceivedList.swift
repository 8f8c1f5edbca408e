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
