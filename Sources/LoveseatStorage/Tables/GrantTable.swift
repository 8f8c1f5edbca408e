import GRDB

/// The documents that peers were sent under an access policy, and those that they lost since.
extension StoreReadTransaction {
    package func isGranted(_ id: String, in collection: CollectionHandle, to peer: String) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: "SELECT 1 FROM grants WHERE peer = ? AND collection = ? AND doc_id = ? AND lost IS NULL"
            ),
            arguments: [peer, collection.number, id]
        ) ?? false
    }

    /// The documents that a peer was sent, and whether it lost them.
    package func grants(in collection: CollectionHandle, to peer: String) throws -> [(
        id: String, isLost: Bool
    )] {
        try Row.fetchAll(
            database.cachedStatement(
                sql:
                    "SELECT doc_id, lost IS NOT NULL AS is_lost FROM grants WHERE peer = ? AND collection = ? ORDER BY doc_id"
            ),
            arguments: [peer, collection.number]
        ).map { ($0["doc_id"], $0["is_lost"]) }
    }

    /// The documents that a peer lost after a sequence, up to another one, in order.
    package func losses(
        in collection: CollectionHandle,
        of peer: String,
        after since: UInt64,
        through: UInt64,
        limit: Int
    ) throws -> [(id: String, sequence: UInt64)] {
        try Row.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT doc_id, lost FROM grants
                    WHERE peer = ? AND collection = ? AND lost > ? AND lost <= ? ORDER BY lost LIMIT ?
                    """
            ),
            arguments: [
                peer, collection.number, Int64(clamping: since), Int64(clamping: through), limit,
            ]
        ).map { ($0["doc_id"], UInt64(clamping: $0["lost"] as Int64)) }
    }
}

package struct GrantTable: WrittenTable {
    let transaction: StoreWriteTransaction

    package func grant(_ ids: [String], in collection: CollectionHandle, to peer: String) throws {
        for id in ids {
            try database.cachedStatement(
                sql: """
                    INSERT INTO grants (peer, collection, doc_id) VALUES (?, ?, ?)
                    ON CONFLICT DO UPDATE SET lost = NULL WHERE lost IS NOT NULL
                    """
            ).execute(arguments: [peer, collection.number, id])
        }
    }

    /// Notes that a peer lost documents, each with a new sequence, after which no device of the peer need be told.
    package func noteLosses(_ ids: [String], in collection: CollectionHandle, of peer: String) throws {
        for id in ids {
            let sequence = Int64(clamping: try transaction.nextSequence(collection))
            try database.cachedStatement(
                sql: "UPDATE grants SET lost = ? WHERE peer = ? AND collection = ? AND doc_id = ?"
            ).execute(arguments: [sequence, peer, collection.number, id])
        }
        if !ids.isEmpty { try transaction.saveLastSequence(of: collection) }
    }
}
