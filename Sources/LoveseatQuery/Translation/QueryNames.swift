import LoveseatModel

/// A collection or an unnested array of a query.
struct BoundSource {
    /// The name that paths begin with.
    var alias: String
    /// Without an explicit alias the collection's own names count too.
    var hasExplicitAlias: Bool
    var title: String
    /// The name of the table in SQL; nil in the definition of an index.
    var table: String?
    /// Nil for an unnested array.
    var collection: QueryCollection?
    /// Whether the query refers to deletion, so that tombstones are seen.
    var seesTombstones = false
    /// The parent and the path of an unnested array: a property of a document, or of an item of an array that is unnested before.
    var arrayPath: (parent: Int, path: String)?
    /// The SQL expression from which an unnested array is read.
    var items = ""
    /// Whether an index of the items themselves is read instead of the array.
    var hasIndexedValue = false

    func column(_ name: String) -> String { table.map { SQL.name($0) + "." + name } ?? name }
}

/// The names of a query: binds them to the collections of the catalog, and finds the meaning of a path.
struct QueryNames {
    let catalog: QueryCatalog
    var sources: [BoundSource] = []
    /// The aliases of results, which are visible outside of the SELECT list.
    var aliases: [ExactText: QueryExpression] = [:]
    var seesAliases = false
    var variables: [Variable] = []
    /// The collections that the query reads, each once.
    var collections: [CollectionName] = []
    private var usedTables: Set<ExactText> = []

    /// A variable of ANY or EVERY.
    struct Variable {
        let name: String
        let table: String
    }

    init(catalog: QueryCatalog) { self.catalog = catalog }

    /// The meaning of the beginning of a path.
    enum Resolved {
        /// A path into JSON text.
        case path(body: String, [PathStep])
        /// A property of META, and a path into it.
        case meta(source: Int, name: String, [PathStep])
        /// An alias of a result, and a path into it.
        case alias(QueryExpression, [PathStep])
    }

    // MARK: FROM

    mutating func bind(_ query: SelectQuery) throws(QueryError) {
        try bind(query.source)
        for join in query.joins {
            switch join {
            case .collection(let kind, let source, let condition):
                if kind == .cross, condition != nil {
                    throw QueryError(.invalidQuery, "CROSS JOIN takes no ON: use JOIN", at: source.position)
                }
                if kind != .cross, condition == nil {
                    throw QueryError(
                        .invalidQuery,
                        "JOIN needs ON: write CROSS JOIN for all pairs",
                        at: source.position
                    )
                }
                try bind(source)
            case .unnest(let expression, let alias):
                guard case .property(let steps) = expression.kind else {
                    throw QueryError(
                        .invalidQuery,
                        "UNNEST takes a property, as in UNNEST h.reviews",
                        at: expression.position
                    )
                }
                var name = alias
                if name == nil, case .key(let last)? = steps.last { name = last }
                guard let name else {
                    throw QueryError(
                        .invalidQuery,
                        "UNNEST of an array's item needs AS and a name",
                        at: expression.position
                    )
                }
                try declare(name, at: expression.position)
                sources.append(
                    BoundSource(
                        alias: name,
                        hasExplicitAlias: true,
                        title: name,
                        table: tableAlias(name),
                        collection: nil
                    )
                )
            }
        }
        for result in query.results {
            if let alias = result.alias, sources.contains(where: { $0.alias.isExactly(alias) }) {
                throw QueryError(
                    .invalidQuery,
                    "The alias '\(alias)' is used for a collection too: choose another",
                    at: result.expression.position
                )
            }
        }
        retitle(query)
        markTombstones(query)
    }

    private func declare(_ alias: String, at position: Int?) throws(QueryError) {
        if alias.unicodeScalars.contains(where: { $0 == "'" || $0 == "\"" || $0 == ":" }) {
            throw QueryError(
                .invalidQuery,
                "The alias `\(alias)` may not contain quotes or a colon",
                at: position
            )
        }
        if sources.contains(where: { $0.alias.isExactly(alias) }) {
            throw QueryError(
                .invalidQuery,
                "The alias '\(alias)' is used twice: choose another",
                at: position
            )
        }
    }

    private mutating func bind(_ source: SelectQuery.Source) throws(QueryError) {
        let written = (source.scope.map { $0 + "." } ?? "") + source.name
        guard let name = collectionName(source), let collection = catalog.collections[name] else {
            throw QueryError(.invalidQuery, "No such collection: \"\(written)\"", at: source.position)
        }
        let alias = source.alias ?? written
        try declare(alias, at: source.position)
        let table = tableAlias(source.alias ?? collection.table)
        sources.append(
            BoundSource(
                alias: alias,
                hasExplicitAlias: source.alias != nil,
                title: source.alias ?? source.name,
                table: table,
                collection: collection
            )
        )
        if !collections.contains(name) { collections.append(name) }
    }

    private func collectionName(_ source: SelectQuery.Source) -> CollectionName? {
        if let scope = source.scope { return CollectionName(scope: scope, name: source.name) }
        if ["_", "_default"].contains(source.name) { return .default }
        if let name = CollectionName(scope: CollectionName.default.scope, name: source.name),
            catalog.collections[name] != nil
        {
            return name
        }
        return source.name.isExactly(catalog.databaseName) ? .default : nil
    }

    /// Makes the titles of two sources of the same last name different, by their scopes.
    private mutating func retitle(_ query: SelectQuery) {
        var titles: [ExactText: Int] = [:]
        for source in sources { titles[ExactText(source.title), default: 0] += 1 }
        for index in sources.indices
        where !sources[index].hasExplicitAlias && titles[ExactText(sources[index].title)] ?? 0 > 1 {
            sources[index].title = sources[index].alias
        }
    }

    /// Finds the sources whose deletion the query refers to.
    private mutating func markTombstones(_ query: SelectQuery) {
        var stack: [QueryExpression] =
            query.results.map(\.expression) + query.grouping + query.order.map(\.expression)
        stack += [query.condition, query.having, query.limit, query.offset].compactMap { $0 }
        for case .collection(_, _, let condition?) in query.joins { stack.append(condition) }
        while let expression = stack.popLast() {
            stack += expression.kind.children
            // A name without a meaning here may be a variable's. If it is not, it is refused when it is translated.
            switch expression.kind {
            case .meta(let source, "deleted"):
                if let index = try? metaSource(source, at: nil) { sources[index].seesTombstones = true }
            case .property(let steps):
                if case .meta(let source, "deleted", _)? = try? resolve(steps, at: nil) {
                    sources[source].seesTombstones = true
                }
            default: break
            }
        }
    }

    /// A collection and its alias, as FROM names them.
    func table(_ index: Int) throws(QueryError) -> String {
        guard let collection = sources[index].collection, let alias = sources[index].table else { return "" }
        return alias.isExactly(collection.table)
            ? SQL.name(collection.table) : SQL.name(collection.table) + " AS " + SQL.name(alias)
    }

    /// The condition that leaves out tombstones; nil where there are none, or the query sees them.
    func liveCondition(_ index: Int) -> String? {
        let source = sources[index]
        return source.collection == nil || source.seesTombstones ? nil : source.column("flags") + " & 1 = 0"
    }

    // MARK: Meanings

    /// The JSON text of a source. Tombstones have no properties.
    func body(of index: Int) -> String {
        let source = sources[index]
        guard source.seesTombstones else { return source.column("body") }
        return "CASE WHEN \(source.column("flags")) & 1 THEN '{}' ELSE \(source.column("body")) END"
    }

    /// The source that a path names, and how many steps the name takes.
    func matchingSource(_ steps: [PathStep], before limit: Int? = nil) -> (index: Int, length: Int)? {
        guard case .key(let first)? = steps.first else { return nil }
        let visible = sources.indices.prefix(limit ?? sources.count)
        for index in visible where sources[index].alias.isExactly(first) { return (index, 1) }
        for index in visible where !sources[index].hasExplicitAlias {
            guard let name = sources[index].collection?.name else { continue }
            if steps.count > 1, case .key(let second) = steps[1], first.isExactly(name.scope),
                second.isExactly(name.name)
            {
                return (index, 2)
            }
        }
        for index in visible where !sources[index].hasExplicitAlias {
            if sources[index].collection?.name.name.isExactly(first) ?? false,
                !sources[index].alias.isExactly(first),
                !isWrittenDefault(index)
            {
                return (index, 1)
            }
        }
        return nil
    }

    /// `_` and the database's name stand for the default collection, whose own name then is a property.
    private func isWrittenDefault(_ index: Int) -> Bool {
        sources[index].collection?.name == .default && !sources[index].alias.hasSuffix("_default")
    }

    static let metaNames: [ExactText: String] = [
        "_id": "id", "_sequence": "sequence", "_deleted": "deleted", "_expiration": "expiration",
        "_revisionID": "revisionID", "_rowid": "rowid",
    ]

    /// Finds the meaning of a path.
    func resolve(_ steps: [PathStep], before limit: Int? = nil, at position: Int?) throws(QueryError)
        -> Resolved
    {
        guard case .key(let first)? = steps.first else { return .path(body: body(of: 0), steps) }
        if let variable = variables.last(where: { $0.name.isExactly(first) }) {
            return .path(body: SQL.name(variable.table) + ".body", Array(steps.dropFirst()))
        }
        if let (index, length) = matchingSource(steps, before: limit) {
            return inside(index, Array(steps.dropFirst(length)))
        }
        if seesAliases, let aliased = aliases[ExactText(first)] {
            return .alias(aliased, Array(steps.dropFirst()))
        }
        guard sources.count == 1 || (limit == 1) else {
            let written = steps.compactMap { if case .key(let key) = $0 { key } else { nil } }.joined(
                separator: "."
            )
            throw QueryError(
                .invalidQuery,
                "The property '\(written)' does not begin with the alias of a collection, which is needed with several",
                at: position
            )
        }
        return inside(0, steps)
    }

    private func inside(_ index: Int, _ steps: [PathStep]) -> Resolved {
        if sources[index].collection != nil, case .key(let name)? = steps.first,
            let meta = Self.metaNames[ExactText(name)]
        {
            return .meta(source: index, name: meta, Array(steps.dropFirst()))
        }
        return .path(body: body(of: index), steps)
    }

    func wildcardSource(_ name: String?, at position: Int?) throws(QueryError) -> Int {
        guard let name else { return 0 }
        guard let (index, _) = matchingSource([.key(name)]) else {
            throw QueryError(.invalidQuery, "No collection has the alias '\(name)'", at: position)
        }
        return index
    }

    func metaSource(_ name: String?, at position: Int?) throws(QueryError) -> Int {
        guard let name else {
            guard sources.filter({ $0.collection != nil }).count == 1 || sources.count == 1 else {
                throw QueryError(
                    .invalidQuery,
                    "META() needs the alias of a collection, as there are several",
                    at: position
                )
            }
            return 0
        }
        if let index = sources.firstIndex(where: { $0.alias.isExactly(name) && $0.collection != nil }) {
            return index
        }
        let steps = name.split(separator: ".").map { PathStep.key(String($0)) }
        guard let (index, length) = matchingSource(steps), length == steps.count,
            sources[index].collection != nil
        else {
            throw QueryError(.invalidQuery, "No collection has the alias '\(name)'", at: position)
        }
        return index
    }

    /// A property of META.
    func meta(_ index: Int, _ name: String, _ context: ExpressionTranslator.Context, at position: Int?)
        throws(QueryError)
        -> String
    {
        let source = sources[index]
        switch name {
        case "id": return source.column("doc_id")
        case "sequence": return source.column("sequence")
        case "revisionID": return source.column("revision")
        case "expiration": return source.column("expires")
        case "rowid": return source.column("row")
        case "deleted":
            let value = "(\(source.column("flags")) & 1)"
            return context == .value ? "ls_mark\(value)" : value
        default:
            throw QueryError(
                .invalidQuery,
                "'\(name)' is not a property of META(): use id, sequence, deleted, expiration or revisionID",
                at: position
            )
        }
    }

    /// The full-text index that MATCH or RANK names.
    func fullTextIndex(_ reference: QueryExpression.IndexReference, at position: Int?) throws(QueryError)
        -> (source: Int, index: FullTextIndexDefinition)
    {
        var source = 0
        if let name = reference.source {
            guard let (index, _) = matchingSource([.key(name)]) else {
                throw QueryError(.invalidQuery, "No collection has the alias '\(name)'", at: position)
            }
            source = index
        } else if sources.filter({ $0.collection != nil }).count > 1 {
            throw QueryError(
                .invalidQuery,
                "Write the alias of its collection before the index '\(reference.name)', as there are several",
                at: position
            )
        }
        let indexes = sources[source].collection?.fullTextIndexes ?? []
        guard let found = indexes.first(where: { $0.name.isExactly(reference.name) }) else {
            throw QueryError(
                .missingIndex,
                "There is no full-text index '\(reference.name)': create it",
                at: position
            )
        }
        return (source, found)
    }

    /// An alias that no other table of the statement has. SQLite does not distinguish `A` from `a`, and ends its text at a NUL.
    mutating func tableAlias(_ name: String) -> String {
        let name = String(decoding: name.utf8.map { $0 == 0 ? UInt8(ascii: " ") : $0 }, as: UTF8.self)
        var unique = name
        var count = 2
        while !usedTables.insert(ExactText(unique.lowercased())).inserted {
            unique = "\(name) \(count)"
            count += 1
        }
        return unique
    }
}
