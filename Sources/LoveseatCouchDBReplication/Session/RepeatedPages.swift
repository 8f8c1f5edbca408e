package import LoveseatModel

/// Notices a remote that lists the same changes again and again under new sequences, which would be read for ever.
package struct RepeatedPages: Sendable {
    /// How many pages in succession may list nothing new. A CouchDB that lost one of its machines lists a part of its changes again.
    package static let maximum = 100
    /// How many rows are remembered. The repetition of a longer list is not noticed.
    package static let maximumRows = 100_000

    /// The hashes of the rows.
    private var rows: Set<Int> = []
    private var repeated = 0

    package init() {}

    /// Notes the next page.
    ///
    /// - Throws: `remoteError` if too many pages in succession list nothing new.
    package mutating func note(_ changes: [RemoteChange], _ unreadable: [UnreadableChange] = [])
        throws(LoveseatError)
    {
        var isNew = false
        for row in changes.map(Self.hash) + unreadable.map(Self.hash) {
            guard rows.insert(row).inserted else { continue }
            isNew = true
            if rows.count > Self.maximumRows { rows = [row] }
        }
        repeated = isNew ? 0 : repeated + 1
        guard repeated <= Self.maximum else {
            throw LoveseatError(
                .remoteError,
                "the peer lists the same changes again and again, with new sequences: its database, or a proxy before it, is damaged"
            )
        }
    }

    private static func hash(_ change: RemoteChange) -> Int {
        var hasher = Hasher()
        hasher.combine(ExactText(change.documentID))
        for revision in change.revisions { hasher.combine(ExactText(revision)) }
        hasher.combine(change.isDeleted)
        hasher.combine(change.isRevoked)
        return hasher.finalize()
    }

    private static func hash(_ row: UnreadableChange) -> Int {
        var hasher = Hasher()
        hasher.combine(ExactText(row.name))
        hasher.combine(row.reason)
        return hasher.finalize()
    }
}
