import LoveseatModel

/// The documents that could not be replicated over one connection, each once.
package struct FailedDocuments: Sendable {
    struct Failure: Sendable {
        /// The full name; empty if it is not known.
        let collection: String
        let id: String
        let isPush: Bool
        let why: PeerEvent.Reason
        let message: String
        /// In milliseconds since 1970.
        let time: Int64
    }

    /// How many are listed.
    private static let maximumListed = 200
    /// How many are told from others that come again.
    private static let maximumKnown = 20_000
    /// Text of peers is cut to this many characters. A valid ID has at most as many bytes.
    private static let maximumText = 240

    private(set) var count = 0
    /// The last ones, and some before them.
    private var last: [Failure] = []
    /// Hashes of the collections with the IDs.
    private var known: Set<Int> = []

    /// The last ones, the latest first.
    var listed: [Failure] { last.suffix(Self.maximumListed).reversed() }

    var latest: Failure? { last.last }

    /// Adds a failure, unless that document failed before.
    ///
    /// - Returns: whether it is new.
    mutating func insert(_ failure: Failure) -> Bool {
        let hash = [ExactText(failure.collection), ExactText(failure.id)].hashValue
        guard !known.contains(hash) else { return false }
        if known.count < Self.maximumKnown { known.insert(hash) }
        count += 1
        // Removing one at a time would move all others each time.
        if last.count >= 2 * Self.maximumListed { last.removeFirst(Self.maximumListed) }
        last.append(
            Failure(
                collection: failure.collection,
                id: String(failure.id.prefix(Self.maximumText)),
                isPush: failure.isPush,
                why: failure.why,
                message: String(failure.message.prefix(Self.maximumText)),
                time: failure.time
            )
        )
        return true
    }
}
