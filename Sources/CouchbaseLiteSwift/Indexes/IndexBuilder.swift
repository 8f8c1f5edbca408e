public import LoveseatCore
import LoveseatModel

/// An index that ``IndexBuilder`` makes.
public protocol Index {}

/// An index of this module.
protocol BuiltIndex: Index {
    /// - Throws: `invalidQuery` for a property's path that is not one.
    func configuration() throws -> any IndexConfiguration
}

/// Makes indexes from Swift values instead of text.
public enum IndexBuilder {
    /// An index of values, the most important one first.
    public static func valueIndex(items: ValueIndexItem...) -> ValueIndex { valueIndex(items: items) }

    /// An index of values, the most important one first.
    public static func valueIndex(items: [ValueIndexItem]) -> ValueIndex { ValueIndex(items) }

    /// An index of the words in texts.
    public static func fullTextIndex(items: FullTextIndexItem...) -> FullTextIndex {
        fullTextIndex(items: items)
    }

    /// An index of the words in texts.
    public static func fullTextIndex(items: [FullTextIndexItem]) -> FullTextIndex { FullTextIndex(items) }
}

/// An index of values.
public final class ValueIndex: Index, BuiltIndex {
    private let items: [ValueIndexItem]

    init(_ items: [ValueIndexItem]) { self.items = items }

    func configuration() throws -> any IndexConfiguration {
        ValueIndexConfiguration(try items.map { try $0.expression.text() })
    }
}

/// A value of an index.
public struct ValueIndexItem {
    let expression: LoveseatCore.Expression

    /// A property, such as `address.city`.
    public static func property(_ property: String) -> ValueIndexItem {
        expression(LoveseatCore.Expression.property(property))
    }

    /// The value of an expression.
    public static func expression(_ expression: any ExpressionProtocol) -> ValueIndexItem {
        ValueIndexItem(expression: expression.expression)
    }
}

/// An index of the words in texts.
public final class FullTextIndex: Index, BuiltIndex {
    private let items: [FullTextIndexItem]
    private var ignoresAccents = FullTextIndexConfiguration.defaultIgnoreAccents
    private var languageCode: String?

    init(_ items: [FullTextIndexItem]) { self.items = items }

    /// Says whether letters are equal with and without accents. The default is false.
    @discardableResult
    public func ignoreAccents(_ ignoreAccents: Bool) -> Self {
        ignoresAccents = ignoreAccents
        return self
    }

    /// Sets the language of the texts; see ``FullTextIndexConfiguration/language``.
    @discardableResult
    public func language(_ language: String?) -> Self {
        languageCode = language
        return self
    }

    func configuration() throws -> any IndexConfiguration {
        FullTextIndexConfiguration(
            try items.map { try $0.expression.text() },
            ignoreAccents: ignoresAccents,
            language: languageCode
        )
    }
}

/// A text of a full-text index.
public struct FullTextIndexItem {
    let expression: LoveseatCore.Expression

    /// A property, such as `address.city`.
    public static func property(_ property: String) -> FullTextIndexItem {
        FullTextIndexItem(expression: LoveseatCore.Expression.property(property).expression)
    }
}
