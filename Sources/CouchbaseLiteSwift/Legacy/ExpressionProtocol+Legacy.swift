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

/// A full-text index, for a condition on its words.
@available(*, deprecated, message: "use `FullTextFunction` with `Expression.fullTextIndex(_:)`")
public enum FullTextExpression {
    /// The index of this name.
    public static func index(_ name: String) -> any FullTextExpressionProtocol { NamedIndex(name: name) }

    private struct NamedIndex: FullTextExpressionProtocol {
        let name: String

        func match(_ query: String) -> any ExpressionProtocol {
            LoveseatCore.FullTextFunction.match(LoveseatCore.Expression.fullTextIndex(name), query: query)
        }
    }
}

/// A full-text index, for a condition on its words.
@available(*, deprecated, message: "use `FullTextFunction` with `Expression.fullTextIndex(_:)`")
public protocol FullTextExpressionProtocol {
    /// Whether a document has the words of a full-text query.
    func match(_ query: String) -> any ExpressionProtocol
}
