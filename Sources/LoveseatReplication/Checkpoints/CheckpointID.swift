package import LoveseatModel

/// The parameters of a replication that name its checkpoint: replications with equal ones share it (replication.md §5.2).
package struct CheckpointID: Hashable, Sendable {
    package var privateUUID: [UInt8]
    package var collection: CollectionName
    package var pulls: Bool
    package var pushes: Bool
    package var remote: String
    package var channels: [String] = []
    package var documentIDs: [String] = []
    /// Tells the app's filters apart; nil without.
    package var filterVersion: String?

    /// A byte that does not occur in UTF-8.
    private static let filterMark: [UInt8] = [0xFF]

    package init(privateUUID: [UInt8], collection: CollectionName, pulls: Bool, pushes: Bool, remote: String)
    {
        self.privateUUID = privateUUID
        self.collection = collection
        self.pulls = pulls
        self.pushes = pushes
        self.remote = remote
    }

    /// The bytes to be hashed, with all the distinctions of the specification: SHA-1 for the default collection, SHA-256 for any other.
    /// They are not Fleece but our own format: no other database knows the UUID in them.
    package var hashInput: [UInt8] {
        var parts: [[UInt8]] = [privateUUID]
        if collection != .default {
            parts.append(Array(collection.name.utf8))
            parts.append(Array(collection.scope.utf8))
            parts.append([pulls ? 1 : 0, pushes ? 1 : 0])
        }
        parts.append(Array(remote.utf8))
        if !channels.isEmpty || !documentIDs.isEmpty {
            parts.append([UInt8(channels.isEmpty ? 0 : 1)])
            parts += channels.map { Array($0.utf8) }
            parts.append([UInt8(documentIDs.isEmpty ? 0 : 1)])
            parts += documentIDs.map { Array($0.utf8) }
        }
        if let filterVersion { parts += [Self.filterMark, Array(filterVersion.utf8)] }
        // Lengths in front, so that no two lists of parts give the same bytes.
        return parts.flatMap { part in
            (0..<4).map { UInt8(truncatingIfNeeded: part.count >> (24 - 8 * $0)) } + part
        }
    }
}
