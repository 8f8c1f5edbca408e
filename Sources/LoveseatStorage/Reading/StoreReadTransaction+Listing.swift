/// Listings of documents, which leave out deleted ones unless they are asked for. IDs are compared by their bytes.
extension StoreReadTransaction {
    /// How a listing of documents goes.
    package struct Listing: Sendable {
        package enum Order: Sendable { case id, sequence }

        package var order = Order.id
        package var isDescending = false
        /// The first and the last ID, in the listing's direction.
        package var first: String?
        package var last: String?
        package var includesFirst = true
        package var includesLast = true
        /// The beginning of the IDs.
        package var prefix = ""
        /// Lists documents after this sequence, in the listing's direction.
        package var behind: UInt64?
        package var limit = Int.max
        package var skip = 0
        package var includesDeleted = false
        package init() {}
    }

    /// Reads documents until `visit` returns false.
    package func list(
        _ listing: Listing,
        in collection: CollectionHandle,
        visit: (DocumentRecord) throws -> Bool
    ) throws {
        let statement = try statement(listing, CollectionHandle.columns, collection)
        defer { statement.reset() }
        while try statement.step() {
            if try !visit(record(of: statement, in: collection)) { return }
        }
    }

    /// Reads IDs and sequences of documents, without their bodies, until `visit` returns false.
    package func listIDs(
        _ listing: Listing,
        in collection: CollectionHandle,
        visit: (_ id: String, _ sequence: UInt64) throws -> Bool
    ) throws {
        let statement = try statement(listing, "doc_id, sequence", collection)
        defer { statement.reset() }
        while try statement.step() {
            if try !visit(statement.string(0), UInt64(clamping: statement.int(1))) { return }
        }
    }

    /// Whether there is a document that is not deleted.
    package func exists(_ id: String, in collection: CollectionHandle) throws -> Bool {
        let statement = try RawStatement(
            "SELECT 1 FROM \"\(collection.table)\" WHERE doc_id = ?1 AND flags & 1 = 0",
            in: database
        )
        statement.bind(1, id)
        defer { statement.reset() }
        return try statement.step()
    }

    private func statement(_ listing: Listing, _ columns: String, _ collection: CollectionHandle) throws
        -> RawStatement
    {
        let bounds = listing.bounds
        // A listing by sequence walks along its own index, and only checks the IDs.
        let id = listing.order == .id ? "doc_id" : "+doc_id"
        var conditions = [listing.includesDeleted ? "1" : "flags & 1 = 0"]
        if let low = bounds.low { conditions.append("\(id) \(low.isIncluded ? ">=" : ">") ?1") }
        if let high = bounds.high { conditions.append("\(id) \(high.isIncluded ? "<=" : "<") ?2") }
        if listing.behind != nil { conditions.append("sequence \(listing.isDescending ? "<" : ">") ?5") }
        let statement = try RawStatement(
            """
            SELECT \(columns) FROM "\(collection.table)" WHERE \(conditions.joined(separator: " AND "))
            ORDER BY \(listing.order == .id ? "doc_id" : "sequence") \(listing.isDescending ? "DESC" : "ASC")
            LIMIT ?3 OFFSET ?4
            """,
            in: database
        )
        if let low = bounds.low { statement.bindText(1, low.id) }
        if let high = bounds.high { statement.bindText(2, high.id) }
        statement.bind(3, listing.limit == .max ? -1 : Int64(listing.limit))
        statement.bind(4, Int64(listing.skip))
        if let behind = listing.behind { statement.bind(5, Int64(clamping: behind)) }
        return statement
    }
}

extension StoreReadTransaction.Listing {
    /// An end of the range of IDs. The bytes need not be UTF-8.
    fileprivate struct Bound {
        var id: [UInt8]
        var isIncluded: Bool
    }

    /// The narrowest range that the ends and the prefix allow, so that SQLite seeks to it.
    fileprivate var bounds: (low: Bound?, high: Bound?) {
        let start = first.map { Bound(id: Array($0.utf8), isIncluded: includesFirst) }
        let end = last.map { Bound(id: Array($0.utf8), isIncluded: includesLast) }
        var (low, high) = isDescending ? (end, start) : (start, end)
        let prefix = Array(prefix.utf8)
        guard let last = prefix.last else { return (low, high) }
        if low?.id.lexicographicallyPrecedes(prefix) ?? true { low = Bound(id: prefix, isIncluded: true) }
        // The last byte of UTF-8 is never 0xFF.
        let beyond = prefix.dropLast() + [last &+ 1]
        if !(high?.id.lexicographicallyPrecedes(beyond) ?? false) {
            high = Bound(id: Array(beyond), isIncluded: false)
        }
        return (low, high)
    }
}
