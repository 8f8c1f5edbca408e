import GRDB
import LoveseatModel

/// A note about all collections, made by a closing, so that the next opening does not have to look at the table of each.
///
/// The note takes the place of the reserved sequences, so the first write ends it. A version that does not know it reads the number 0 there,
/// and removes it.
struct ClosingNote {
    typealias Rarity = StoreReadTransaction.Rarity

    /// The numbers of the collections that have documents with rare properties.
    private(set) var having: [Rarity: Set<Int64>] = [:]

    /// Reads the note; nil if something was written since the last closing, or an earlier version closed the database.
    init?(_ db: Database) throws {
        let sql = "SELECT CAST(value AS TEXT) FROM info WHERE key = ?"
        let value = try String.fetchOne(db, sql: sql, arguments: [SequenceReserve.key])
        let parts = value?.split(separator: ";", omittingEmptySubsequences: false) ?? []
        guard parts.count == Rarity.allCases.count + 1, parts[0] == "0" else { return nil }
        for (rarity, part) in zip(Rarity.allCases, parts.dropFirst()) {
            having[rarity] = Set(part.split(separator: ",").compactMap { Int64($0) })
        }
    }

    /// Saves the note, and the last sequences of the collections, in the transaction of the caller.
    static func save(_ catalog: StoreCatalog, _ db: Database) throws {
        let last = try RawStatement("SELECT number, last_sequence FROM collections", in: db)
        defer { last.reset() }
        var changed: [(number: Int64, sequence: Int64)] = []
        while try last.step() {
            guard let sequence = catalog.lastSequence[last.int(0)].map({ Int64(clamping: $0) }) else {
                throw LoveseatError(
                    .assertionFailed,
                    "the collection with number \(last.int(0)) is not known"
                )
            }
            if sequence != last.int(1) { changed.append((last.int(0), sequence)) }
        }
        let update = try RawStatement("UPDATE collections SET last_sequence = ?2 WHERE number = ?1", in: db)
        for (number, sequence) in changed {
            update.bind(1, number)
            update.bind(2, sequence)
            try update.run()
        }
        let view = StoreReadTransaction(database: db, catalog: catalog)
        let having = try Rarity.allCases.map { rarity in
            let candidates = catalog.having[rarity] ?? []
            let found = try view.numbers(
                of: view.collections.filter { candidates.contains($0.number) },
                with: rarity
            )
            return found.sorted().map(String.init).joined(separator: ",")
        }
        try db.execute(
            sql: "INSERT OR REPLACE INTO info (key, value) VALUES (?, ?)",
            arguments: [SequenceReserve.key, (["0"] + having).joined(separator: ";")]
        )
    }
}
