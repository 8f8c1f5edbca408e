/// The settings of an active replication.
package struct LitePlan {
    /// A collection to replicate.
    package struct Binding {
        package let collection: String
        package let checkpointID: String
        /// The documents to pull; nil for all.
        package var documentIDs: [String]?
        /// The channels to pull; nil for all.
        package var channels: [String]?

        package init(
            _ collection: String = "_default",
            checkpointID: String,
            documentIDs: [String]? = nil,
            channels: [String]? = nil
        ) {
            (self.collection, self.checkpointID) = (collection, checkpointID)
            (self.documentIDs, self.channels) = (documentIDs, channels)
        }
    }

    package var bindings: [Binding]
    package var pushes = true
    package var pulls = true
    package var isContinuous = false
    /// Whether the own checkpoint is ignored.
    package var resetsCheckpoint = false
    /// Whether a document is pushed, by its ID.
    package var pushFilter: @Sendable (String) -> Bool = { _ in true }
    /// Resolves conflicts.
    package var resolver: (LiteConflict) -> LiteResolution = { $0.defaultResolution }

    package init(_ bindings: [Binding]) { self.bindings = bindings }

    /// The sub-protocols that a database offers for this plan, in their order (version-vectors.md §10).
    package func offeredProtocols(_ database: LiteDatabase) -> [String] {
        database.release == .release40 && !pushes
            ? [LiteDatabase.vectorProtocol, LiteDatabase.treeProtocol] : [LiteDatabase.vectorProtocol]
    }
}

extension LiteDatabase {
    static let vectorProtocol = "BLIP_3+CBMobile_4"
    static let treeProtocol = "BLIP_3+CBMobile_3"

    /// The sub-protocol that a passive database takes of those that are offered; nil to refuse the connection.
    package func acceptedProtocol(of offered: [String]) -> String? {
        let own = hasTrees ? Self.treeProtocol : Self.vectorProtocol
        return offered.contains(own) ? own : nil
    }
}
