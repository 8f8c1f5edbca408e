public import LoveseatCore

/// Spellings of version 3.
extension ExpressionProtocol {
    /// Whether this is MISSING or null.
    @available(*, deprecated, message: "use `isNotValued()`")
    public func isNullOrMissing() -> LoveseatCore.Expression { isNotValued() }

    /// Whether this is neither MISSING nor null.
    @available(*, deprecated, message: "use `isValued()`")
    public func notNullOrMissing() -> LoveseatCore.Expression { isValued() }
}

extension LoveseatCore.FullTextFunction {
    /// Whether a document has the words of a full-text query.
    @available(*, deprecated, message: "use `match(_:query:)` with `Expression.fullTextIndex(_:)`")
    public static func match(indexName: String, query: String) -> LoveseatCore.Expression {
        match(LoveseatCore.Expression.fullTextIndex(indexName), query: query)
    }

    /// How well a document fits the `match` of the same index: greater is better.
    @available(*, deprecated, message: "use `rank(_:)` with `Expression.fullTextIndex(_:)`")
    public static func rank(_ indexName: String) -> LoveseatCore.Expression {
        rank(LoveseatCore.Expression.fullTextIndex(indexName))
    }
}
