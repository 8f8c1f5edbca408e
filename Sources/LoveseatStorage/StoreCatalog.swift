import LoveseatModel

/// The sequences and collections as of the last commit.
package struct StoreCatalog: Sendable {
    /// SQLite's count of created and dropped tables.
    var schemaVersion: Int32 = 0
    var collections: [CollectionName: CollectionHandle] = [:]
    var lastSequence: [Int64: UInt64] = [:]
    /// The highest sequence used in any collection.
    var highestSequence: UInt64 = 0
    /// The highest sequence that may have been used before the database was opened (``SequenceReserve``).
    var firstFree: UInt64 = 0
    /// The last sequence that may be used.
    var reserved: UInt64 = 0
    /// The database as an author of versions; nil if it makes none.
    var versions: StoreVersions?
    /// Whether this process has noted that vectors are in the file.
    var storesVectors = false
    /// Whether something purged is remembered (PurgeTable.swift).
    var remembersPurges = false
    /// How many revisions of a line are kept, if peers of CouchDB's wire are served (docs/decisions/0009).
    var revisionLimit: Int?
    /// The indexes of each collection, by its number, in order of their names.
    var indexes: [Int64: [StoredIndex]] = [:]
    /// The numbers of the collections that may have documents with rare properties; those of others have none.
    var having: [StoreReadTransaction.Rarity: Set<Int64>] = [:]
    /// The marks for the remotes in each collection, by its number (MarkTable.swift).
    var marks: [Int64: MarkRanges] = [:]

    /// Continues every collection after the sequences that may have been used.
    mutating func beginBehind(_ used: UInt64) {
        firstFree = max(firstFree, used)
        lastSequence = lastSequence.mapValues { max($0, firstFree) }
        highestSequence = max(firstFree, lastSequence.values.max() ?? 0)
    }
}
