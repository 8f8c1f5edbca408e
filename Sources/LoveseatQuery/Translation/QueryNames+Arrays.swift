import LoveseatModel

/// UNNEST, and the indexes that serve it.
extension QueryNames {
    /// Decides which arrays are read from indexes. Expressions then use the columns of the index.
    mutating func bindArrays(_ query: SelectQuery) throws(QueryError) {
        for (offset, join) in query.joins.enumerated() {
            guard case .unnest(let expression, _) = join else { continue }
            sources[offset + 1].items = try unnest(expression, offset + 1)
        }
    }

    private mutating func unnest(_ expression: QueryExpression, _ index: Int) throws(QueryError) -> String {
        guard case .property(let steps) = expression.kind else { return "" }
        let alias = SQL.name(sources[index].table ?? "")
        // Only names of earlier sources can be unnested.
        guard case .path(let body, let rest) = try resolve(steps, before: index, at: expression.position)
        else {
            throw QueryError(
                .invalidQuery,
                "UNNEST takes a property of a document or of an item",
                at: expression.position
            )
        }
        let path = QueryPath(rest).text
        // A name that the array itself has refers to the property of an earlier source.
        guard let parent = matchingSource(steps, before: index)?.index ?? (index == 1 ? 0 : nil) else {
            return "ls_each(\(body), \(SQL.string(path))) AS \(alias)"
        }
        sources[index].arrayPath = (parent, path)
        return indexedItems(index) ?? "ls_each(\(body), \(SQL.string(path))) AS \(alias)"
    }

    /// The table of an array index that has the items of an unnested array.
    private mutating func indexedItems(_ index: Int) -> String? {
        var paths: [String] = []
        var outer: [Int] = []
        var source = index
        while let (parent, path) = sources[source].arrayPath, parent < source {
            paths.insert(path, at: 0)
            outer.append(parent)
            source = parent
        }
        let arrays = sources[source].collection?.arrayIndexes ?? []
        guard let array = arrays.first(where: { $0.levels.elementsEqual(paths) { $0.isExactly($1) } }) else {
            return nil
        }
        sources[index].hasIndexedValue = array.indexesItems
        let alias = SQL.name(sources[index].table ?? "")
        var terms = ["\(alias).doc = \(sources[source].column("row"))"]
        for (column, parent) in zip(array.parentColumns, outer) {
            terms.append("\(alias).\(column) = \(sources[parent].column("i"))")
        }
        return "\(SQL.name(array.table)) AS \(alias) ON \(terms.joined(separator: " AND "))"
    }

    /// The column of an index that has the value of an item, if the path is the item itself: SQLite then need not read the item's row.
    func indexedValue(_ steps: [PathStep]) -> String? {
        guard let (index, length) = matchingSource(steps), length == steps.count,
            sources[index].hasIndexedValue,
            case .key(let first)? = steps.first,
            !variables.contains(where: { $0.name.isExactly(first) })
        else { return nil }
        return sources[index].column("value")
    }
}
