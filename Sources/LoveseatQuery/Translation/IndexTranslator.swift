import LoveseatModel

/// Translates the definitions of indexes.
package enum IndexTranslator {
    /// Checks an index's name.
    package static func checkName(_ name: String) throws(QueryError) {
        guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "\"")), !name.utf8.contains(0) else {
            throw QueryError(
                .invalidParameter,
                "\"\(name)\" is not a valid name of an index: it may not be empty or contain quotes"
            )
        }
    }

    private static func translator(_ collection: QueryCollection) -> ExpressionTranslator {
        var names = QueryNames(catalog: QueryCatalog(databaseName: "", collections: [collection]))
        names.sources = [
            BoundSource(
                alias: collection.name.fullName,
                hasExplicitAlias: false,
                title: "",
                collection: collection
            )
        ]
        var translator = ExpressionTranslator(names: names)
        translator.scope = .init(isIndex: true)
        return translator
    }

    private static func items(_ expressions: String, _ translator: inout ExpressionTranslator)
        throws(QueryError)
        -> String
    {
        var items: [String] = []
        for expression in try QueryParser.parseList(expressions) {
            items.append(try translator.sortKey(expression))
        }
        return items.joined(separator: ", ")
    }

    private static func condition(_ text: String?, _ translator: inout ExpressionTranslator)
        throws(QueryError)
        -> String?
    {
        guard let text, !text.allSatisfy({ $0.isWhitespace }) else { return nil }
        var terms: [String] = []
        func add(_ expression: QueryExpression) throws(QueryError) {
            if case .and(let items) = expression.kind {
                for item in items { try add(item) }
            } else {
                terms.append(try translator.sql(expression, .operand))
            }
        }
        try add(QueryParser.parseExpression(text))
        return terms.joined(separator: " AND ")
    }

    /// The statements of a value index, which SQLite knows by `sqlName`.
    package static func statements(
        _ definition: ValueIndexDefinition,
        collection: QueryCollection,
        sqlName: String
    ) throws(QueryError) -> IndexStatements {
        try checkName(definition.name)
        var translator = translator(collection)
        let items = try items(definition.expressions, &translator)
        let condition = try condition(definition.condition, &translator).map { " WHERE " + $0 } ?? ""
        return IndexStatements(
            finish: [
                "CREATE INDEX \(SQL.name(sqlName)) ON \(SQL.name(collection.table)) (\(items))\(condition)"
            ],
            drop: ["DROP INDEX IF EXISTS \(SQL.name(sqlName))"]
        )
    }

    /// The statements of a full-text index: a table of FTS5, filled, and triggers that keep it.
    package static func statements(
        _ definition: FullTextIndexDefinition,
        collection: QueryCollection
    ) throws(QueryError) -> IndexStatements {
        try checkName(definition.name)
        var paths: [String] = []
        for expression in try QueryParser.parseList(definition.expressions) {
            guard case .property(let steps) = expression.kind,
                case .path(_, let rest) = try translator(collection).names.resolve(
                    steps,
                    at: expression.position
                )
            else {
                throw QueryError(
                    .invalidQuery,
                    "A full-text index takes properties only",
                    at: expression.position
                )
            }
            paths.append(QueryPath(rest).text)
        }
        var translator = translator(collection)
        let condition = try condition(definition.condition, &translator)
        let (table, source) = (SQL.name(definition.table), SQL.name(collection.table))
        let columns = paths.indices.map { "c\($0)" }
        let live = "flags & 1 = 0" + (condition.map { " AND " + $0 } ?? "")
        // One view of the documents that are in the index: the triggers use it, so that the condition is written once.
        let view = SQL.name(definition.table + " rows")
        let names = columns.joined(separator: ", ")
        let fill = "SELECT row, \(names) FROM \(view)"
        let trigger = { (suffix: String) in SQL.name(definition.table + suffix) }
        let insert = "INSERT INTO \(table) (rowid, \(names)) \(fill) WHERE row = new.row;"
        return IndexStatements(
            prepare: [
                "CREATE VIEW \(view) AS SELECT row, \(zip(paths, columns).map { "ls_words(body, \(SQL.string($0))) AS \($1)" }.joined(separator: ", ")) FROM \(source) WHERE \(live)",
                "CREATE VIRTUAL TABLE \(table) USING fts5(\(names), tokenize = \(SQL.string(definition.tokenizer)))",
            ],
            fill: { rows in
                "INSERT INTO \(table) (rowid, \(names)) \(fill) WHERE row >= \(rows.lowerBound) AND row < \(rows.upperBound)"
            },
            finish: [
                "CREATE TRIGGER \(trigger(" insert")) AFTER INSERT ON \(source) BEGIN \(insert) END",
                "CREATE TRIGGER \(trigger(" delete")) AFTER DELETE ON \(source) BEGIN DELETE FROM \(table) WHERE rowid = old.row; END",
                "CREATE TRIGGER \(trigger(" update")) AFTER UPDATE OF body, flags ON \(source) BEGIN DELETE FROM \(table) WHERE rowid = old.row; \(insert) END",
            ],
            drop: [
                "DROP TRIGGER IF EXISTS \(trigger(" insert"))",
                "DROP TRIGGER IF EXISTS \(trigger(" delete"))",
                "DROP TRIGGER IF EXISTS \(trigger(" update"))", "DROP TABLE IF EXISTS \(table)",
                "DROP VIEW IF EXISTS \(view)",
            ]
        )
    }

    /// The statements of an array index: a table of items, filled, triggers that keep it, and an index of SQLite.
    package static func statements(
        _ definition: ArrayIndexDefinition,
        collection: QueryCollection,
        sqlName: String,
        sharesTable: Bool = false
    ) throws(QueryError) -> IndexStatements {
        try checkName(definition.name)
        let levels = try ArrayIndexDefinition.levels(of: definition.path)
        let (table, source) = (SQL.name(definition.table), SQL.name(collection.table))
        // An item is like a document whose text it is.
        var item = translator(collection)
        item.names.sources[0].collection = nil
        let isOfItems = definition.indexesItems
        let items = isOfItems ? "value" : try Self.items(definition.expressions ?? "", &item)
        // A table of one level has the column too.
        let parents = levels.count == 1 ? ["parent"] : definition.parentColumns
        let columns = ["doc"] + parents.reversed() + ["i"]
        let places = columns.joined(separator: ", ")
        @Sendable func fill(_ condition: String) -> String {
            var from = "\(source) AS d"
            for (level, path) in levels.enumerated() {
                from +=
                    " JOIN ls_each(\(level == 0 ? "d" : "a\(level - 1)").body, \(SQL.string(path))) AS a\(level)"
            }
            let outer = levels.count == 1 ? ["0"] : levels.indices.dropLast().map { "a\($0).i" }
            let last = "a\(levels.count - 1)"
            let value = isOfItems ? ["ls_value(\(last).body, '')"] : []
            let values = (["d.row"] + outer + ["\(last).i", "\(last).body"] + value).joined(separator: ", ")
            return
                "INSERT INTO \(table) (\(places), body\(isOfItems ? ", value" : "")) SELECT \(values) FROM \(from) WHERE d.flags & 1 = 0\(condition)"
        }
        let trigger = { (suffix: String) in SQL.name(definition.table + suffix) }
        let delete = "DELETE FROM \(table) WHERE doc = old.row;"
        let index = "CREATE INDEX \(SQL.name(sqlName)) ON \(table) (\(items))"
        let refill = fill(" AND d.row = new.row") + ";"
        let prepare = [
            "CREATE TABLE \(table) (\(columns.map { $0 + " INTEGER NOT NULL" }.joined(separator: ", ")), body TEXT NOT NULL\(isOfItems ? ", value" : ""), PRIMARY KEY (\(places))) WITHOUT ROWID"
        ]
        let triggers = [
            "CREATE TRIGGER \(trigger(" insert")) AFTER INSERT ON \(source) BEGIN \(refill) END",
            "CREATE TRIGGER \(trigger(" delete")) AFTER DELETE ON \(source) BEGIN \(delete) END",
            "CREATE TRIGGER \(trigger(" update")) AFTER UPDATE OF body, flags ON \(source) BEGIN \(delete) \(refill) END",
        ]
        let remove =
            [" insert", " delete", " update"].map { "DROP TRIGGER IF EXISTS \(trigger($0))" }
            + ["DROP TABLE IF EXISTS \(table)"]
        let dropIndex = "DROP INDEX IF EXISTS \(SQL.name(sqlName))"
        guard !sharesTable else { return IndexStatements(finish: [index], drop: [dropIndex]) }
        return IndexStatements(
            prepare: prepare,
            fill: { rows in fill(" AND d.row >= \(rows.lowerBound) AND d.row < \(rows.upperBound)") },
            finish: triggers + [index],
            drop: [dropIndex] + remove
        )
    }
}
