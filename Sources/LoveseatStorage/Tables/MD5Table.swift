import GRDB
import LoveseatModel

/// The MD5s of blobs, by which peers of CouchDB's wire name contents. A row is right as long as it is whole: it depends on nothing but the
/// content that a SHA-1 names. A damaged row counts as none, and is replaced when the MD5 is computed again.
struct MD5Table: WrittenTable {
    let transaction: StoreWriteTransaction

    func add(_ found: [BlobDigest: MD5Digest]) throws {
        if found.isEmpty { return }
        let statement = try RawStatement(
            "INSERT OR REPLACE INTO md5s (blob, md5) VALUES (?1, ?2)",
            in: database
        )
        for (blob, md5) in found {
            statement.bind(1, blob: blob.bytes)
            statement.bind(2, blob: Self.row(md5.bytes, of: blob.bytes))
            try statement.run()
        }
    }

    /// Removes the rows of blobs, which their keys name.
    func forget(_ keys: [[UInt8]]) throws {
        let statement = try RawStatement("DELETE FROM md5s WHERE blob = ?1", in: database)
        for key in keys {
            statement.bind(1, blob: key)
            try statement.run()
        }
    }

    /// An MD5 as a row holds it, followed by a check.
    private static func row(_ md5: [UInt8], of blob: [UInt8]) -> [UInt8] {
        md5 + Hashing.sha1(blob + md5).prefix(4)
    }

    /// The MD5 in a row; nil if the row is damaged.
    fileprivate static func md5(in row: [UInt8], of blob: [UInt8]) -> MD5Digest? {
        let md5 = Array(row.dropLast(4))
        return row == Self.row(md5, of: blob) ? MD5Digest(bytes: md5) : nil
    }
}

extension StoreReadTransaction {
    /// The MD5 of a blob; nil if it is not known.
    func md5(of blob: BlobDigest) throws -> MD5Digest? {
        guard try hasMD5s else { return nil }
        let statement = try RawStatement("SELECT md5 FROM md5s WHERE blob = ?1", in: database)
        defer { statement.reset() }
        let key = blob.bytes
        statement.bind(1, blob: key)
        return try statement.step() ? MD5Table.md5(in: statement.bytes(0), of: key) : nil
    }

    /// The keys of the rows after one, in order.
    func md5Keys(after last: [UInt8]) throws -> [[UInt8]] {
        let statement = try RawStatement(
            "SELECT blob FROM md5s WHERE blob > ?1 ORDER BY blob LIMIT 10000",
            in: database
        )
        defer { statement.reset() }
        statement.bind(1, blob: last)
        var keys: [[UInt8]] = []
        while try statement.step() { keys.append(statement.bytes(0)) }
        return keys
    }

    /// Whether the table is there: a database that is opened for reading only may be older.
    private var hasMD5s: Bool { get throws { try Schema.hasTable("md5s", in: database) } }
}
