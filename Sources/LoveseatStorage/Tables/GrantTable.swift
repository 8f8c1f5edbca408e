import GRDB

/// The documents that peers were sent under an access policy.
extension StoreReadTransaction {
    package func isGranted(_ id: String, in collection: CollectionHandle, to peer: String) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: "SELECT 1 FROM grants WHERE peer = ? AND collection = ? AND doc_id = ?"
            ),
            arguments: [peer, collection.number, id]
        ) ?? false
    }

    package func grants(in collection: CollectionHandle, to peer: String) throws -> [String] {
        try String.fetchAll(
            database.cachedStatement(
                sql: "SELECT doc_id FROM grants WHERE peer = ? AND collection = ? ORDER BY doc_id"
            ),
            arguments: [peer, collection.number]
        )
    }
}

extension StoreWriteTransaction {
    package func grant(_ ids: [String], in collection: CollectionHandle, to peer: String) throws {
        for id in ids {
            try database.cachedStatement(
                sql: "INSERT OR IGNORE INTO grants (peer, collection, doc_id) VALUES (?, ?, ?)"
            ).execute(arguments: [peer, collection.number, id])
        }
    }

    package func revoke(_ ids: [String], in collection: CollectionHandle, from peer: String) throws {
        for id in ids {
            try database.cachedStatement(
                sql: "DELETE FROM grants WHERE peer = ? AND collection = ? AND doc_id = ?"
            ).execute(arguments: [peer, collection.number, id])
        }
    }
}
