package import LoveseatModel
import Synchronization

/// A collection as the store knows it: its number, and the statements for its table.
///
/// It is a class, since it is passed along with each document, and copying so many strings would cost more than the work itself.
package final class CollectionHandle: Hashable, Sendable {
    package let number: Int64
    package let name: CollectionName
    package let table: String
    /// The last sequence before its first one. It is not 0 if sequences were used that peers may remember.
    package let firstSequence: UInt64

    /// The columns of a ``DocumentRecord``, in its order.
    static let columns = "row, doc_id, sequence, revision, flags, synced, expires, tree, body"

    private let madeStatements = AtomicLazyReference<CollectionStatements>()

    init(number: Int64, name: CollectionName, table: String, firstSequence: UInt64 = 0) {
        self.number = number
        self.name = name
        self.table = table
        self.firstSequence = firstSequence
    }

    /// The statements for its table. They are cached by their text, so the text is made once; of many collections few are used.
    var statements: CollectionStatements {
        madeStatements.load() ?? madeStatements.storeIfNil(CollectionStatements(table))
    }

    package static func == (lhs: CollectionHandle, rhs: CollectionHandle) -> Bool {
        lhs.number == rhs.number && lhs.name == rhs.name
    }
    package func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

/// The statements for the table of one collection.
final class CollectionStatements: Sendable {
    let fetch: String
    let size: String
    let insert: String
    let update: String
    let changes: String
    let synced: String
    let tree: String
    let sequences: String

    fileprivate init(_ table: String) {
        let columns = CollectionHandle.columns
        fetch = "SELECT \(columns) FROM \"\(table)\" WHERE doc_id = ?1"
        // The length of a BLOB is read without the BLOB.
        size = "SELECT length(tree), length(CAST(body AS BLOB)) FROM \"\(table)\" WHERE doc_id = ?1"
        insert = """
            INSERT INTO "\(table)" (doc_id, sequence, revision, flags, synced, tree, body)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (doc_id) DO NOTHING
            """
        update = """
            UPDATE "\(table)" SET sequence = ?2, revision = ?3, flags = ?4, synced = ?5, tree = ?6, body = ?7
            WHERE row = ?1
            """
        changes = """
            SELECT \(columns) FROM "\(table)" WHERE sequence > ?1 AND (synced <> ?2 OR flags & 64)
            ORDER BY sequence
            """
        sequences = "SELECT sequence FROM \"\(table)\" WHERE sequence BETWEEN ?1 AND ?2 ORDER BY sequence"
        tree = "UPDATE \"\(table)\" SET tree = ?2 WHERE row = ?1"
        synced = "UPDATE \"\(table)\" SET synced = ?3 WHERE doc_id = ?1 AND revision = ?2 AND synced = 0"
    }
}
