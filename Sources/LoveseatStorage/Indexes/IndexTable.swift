import GRDB
import LoveseatModel
package import LoveseatQuery

/// The table of indexes, and the indexes themselves.
package struct IndexTable: WrittenTable {
    let transaction: StoreWriteTransaction

    static func load(_ db: Database, of collections: some Sequence<CollectionHandle>) throws -> [Int64:
        [StoredIndex]]
    {
        // A database that is open for reading only is not migrated.
        guard try Schema.hasTable("indexes", in: db) else { return [:] }
        let tables = Dictionary(collections.map { ($0.number, $0.table) }) { first, _ in first }
        var found: [Int64: [StoredIndex]] = [:]
        let sql = "SELECT collection, name, number, definition FROM indexes ORDER BY collection, name"
        for row in try Row.fetchAll(db, sql: sql) {
            let (collection, name): (Int64, String) = (try row.stored("collection"), try row.stored("name"))
            guard let table = tables[collection],
                let specification = IndexSpecification(text: try row.stored("definition"))
            else { throw LoveseatError(.corruptData, "the definition of index \"\(name)\" is damaged") }
            let index = StoredIndex(
                number: try row.stored("number"),
                name: name,
                specification: specification,
                of: table
            )
            found[collection, default: []].append(index)
        }
        return found
    }
}

extension StoreCatalog {
    /// A collection with its indexes, for the compiler of queries.
    func queryCollection(_ collection: CollectionHandle) -> QueryCollection {
        let indexes = indexes[collection.number] ?? []
        return QueryCollection(
            name: collection.name,
            table: collection.table,
            fullTextIndexes: indexes.filter { $0.specification.kind == .fullText }.map(\.fullTextDefinition),
            arrayIndexes: indexes.filter { $0.specification.kind == .array }.map(\.arrayDefinition)
        )
    }
}

extension StoreReadTransaction {
    /// The collections and indexes, for the compiler of queries.
    package func queryCatalog(of databaseName: String) -> QueryCatalog {
        QueryCatalog(
            databaseName: databaseName,
            collections: catalogView.collections.values.map { catalogView.queryCollection($0) }
        )
    }

    /// A number that changes when a collection or an index does.
    package var schemaVersion: Int32 { catalogView.schemaVersion }

    /// The indexes of a collection, in order of their names.
    package func indexes(of collection: CollectionHandle) -> [StoredIndex] {
        catalogView.indexes[collection.number] ?? []
    }
}

extension IndexTable {
    /// Creates an index, and fills it. Does nothing if it exists with the same definition, and replaces one with another definition.
    ///
    /// `progress` is called now and then with the share of the documents that are in the index.
    package func create(
        _ name: String,
        _ specification: IndexSpecification,
        in collection: CollectionHandle,
        progress: ((Double) -> Void)? = nil
    )
        throws
    {
        try transaction.requireOpen(collection)
        if let existing = transaction.indexes(of: collection).first(where: { $0.name.isExactly(name) }) {
            if existing.specification == specification { return }
            try delete(name, in: collection)
        }
        // Numbers are never used twice: a compiled query may still name a deleted index.
        let last = try Int64.fetchOne(database, sql: "SELECT value FROM info WHERE key = 'last_index'") ?? 0
        try database.execute(
            sql: "INSERT OR REPLACE INTO info (key, value) VALUES ('last_index', ?)",
            arguments: [last + 1]
        )
        let index = StoredIndex(
            number: last + 1,
            name: name,
            specification: specification,
            of: collection.table
        )
        let statements: IndexStatements
        do throws(QueryError) {
            statements = try index.statements(for: catalog.queryCollection(collection))
        } catch { throw LoveseatError(error) }
        try IndexBuilding(
            database: database,
            walks: transaction.options.walks,
            interruption: transaction.interruption
        )
        .run(statements, of: specification, over: collection, progress)
        try database.execute(
            sql: "INSERT INTO indexes (collection, name, number, definition) VALUES (?, ?, ?, ?)",
            arguments: [collection.number, name, index.number, specification.text]
        )
        try reload()
    }

    /// Deletes an index. Does nothing if there is none of this name.
    package func delete(_ name: String, in collection: CollectionHandle) throws {
        try transaction.requireOpen(collection)
        guard let index = transaction.indexes(of: collection).first(where: { $0.name.isExactly(name) }) else {
            return
        }
        try remove(index, of: collection)
        try database.execute(sql: "DELETE FROM indexes WHERE number = ?", arguments: [index.number])
        try reload()
    }

    /// Removes the parts of a collection's indexes that are not in its table.
    func removeAll(of collection: CollectionHandle) throws {
        for index in transaction.indexes(of: collection) { try remove(index, of: collection) }
        try database.execute(sql: "DELETE FROM indexes WHERE collection = ?", arguments: [collection.number])
    }

    /// Makes the full-text and array indexes anew; SQLite's REINDEX does it for the others.
    func rebuild() throws {
        for collection in transaction.collections {
            for index in transaction.indexes(of: collection) where index.specification.kind != .value {
                let statements = try statements(of: index, collection)
                for sql in statements.drop + statements.create { try database.execute(sql: sql) }
            }
        }
        try reload()
    }

    /// A sentence for each full-text index whose words do not fit its texts.
    func damagedTexts() throws -> [String] {
        var problems: [String] = []
        for collection in transaction.collections.sorted(by: { $0.number < $1.number }) {
            for index in transaction.indexes(of: collection) where index.specification.kind == .fullText {
                do {
                    try database.execute(
                        sql: "INSERT INTO \"\(index.table)\" (\"\(index.table)\") VALUES ('integrity-check')"
                    )
                } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
                    problems.append(
                        "\(collection.name), index \"\(index.name)\": its words are damaged: rebuild it with reindex"
                    )
                }
            }
        }
        return problems
    }

    private func statements(of index: StoredIndex, _ collection: CollectionHandle) throws -> IndexStatements {
        do throws(QueryError) {
            return try index.statements(for: catalog.queryCollection(collection))
        } catch { throw LoveseatError(error) }
    }

    private func remove(_ index: StoredIndex, of collection: CollectionHandle) throws {
        for sql in try statements(of: index, collection).drop { try database.execute(sql: sql) }
    }

    private func reload() throws {
        try transaction.replaceCatalog {
            $0.indexes = try IndexTable.load(database, of: $0.collections.values)
            $0.schemaVersion = try CollectionTable.schemaVersion(database)
        }
    }
}
