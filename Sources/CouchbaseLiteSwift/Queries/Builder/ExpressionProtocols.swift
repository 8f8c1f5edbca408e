public import LoveseatCore

// Couchbase Lite's functions return these protocols, and apps declare variables of them.

/// A property of a document, which can be taken from a joined collection.
public protocol PropertyExpressionProtocol: ExpressionProtocol {
    /// Takes the property from the collection with an alias. Nil is the first collection.
    func from(_ alias: String?) -> any ExpressionProtocol
}

extension LoveseatCore.PropertyExpression: PropertyExpressionProtocol {
    /// Takes the property from the collection with an alias. Nil is the first collection.
    @_disfavoredOverload
    public func from(_ alias: String?) -> any ExpressionProtocol { alias.map { from($0) } ?? expression }
}

/// A fact about a document, such as its ID, which can be that of a joined collection's document.
public protocol MetaExpressionProtocol: ExpressionProtocol {
    /// Takes the fact from the collection with an alias.
    func from(_ alias: String) -> any ExpressionProtocol
}

extension LoveseatCore.MetaExpression: MetaExpressionProtocol {
    /// Takes the fact from the collection with an alias.
    @_disfavoredOverload
    public func from(_ alias: String) -> any ExpressionProtocol {
        let taken: LoveseatCore.Expression = from(alias)
        return taken
    }
}

/// The item of an array in a condition on its items.
public protocol VariableExpressionProtocol: ExpressionProtocol {
    /// The variable for the engine. Apps have no use for it.
    var _variable: LoveseatCore.VariableExpression { get }
}

extension LoveseatCore.VariableExpression: VariableExpressionProtocol {
    /// The variable itself. Apps have no use for it.
    public var _variable: LoveseatCore.VariableExpression { self }
}

extension LoveseatCore.ArrayExpression {
    /// Whether a condition is true for at least one item.
    public static func any(_ variable: any VariableExpressionProtocol) -> LoveseatCore.ArrayExpressionIn {
        any(variable._variable)
    }

    /// Whether a condition is true for all items, which an empty array meets.
    public static func every(_ variable: any VariableExpressionProtocol) -> LoveseatCore.ArrayExpressionIn {
        every(variable._variable)
    }

    /// Whether there is an item, and a condition is true for all of them.
    public static func anyAndEvery(_ variable: any VariableExpressionProtocol)
        -> LoveseatCore.ArrayExpressionIn
    {
        anyAndEvery(variable._variable)
    }
}

/// An index that a function looks into.
public protocol IndexExpressionProtocol {
    /// The index for the engine. Apps have no use for it.
    var _index: LoveseatCore.FullTextIndexExpression { get }
}

/// A full-text index, which can be that of a joined collection.
public protocol FullTextIndexExpressionProtocol: IndexExpressionProtocol {
    /// Takes the index of the collection with an alias.
    func from(_ alias: String) -> any IndexExpressionProtocol
}

extension LoveseatCore.FullTextIndexExpression: FullTextIndexExpressionProtocol {
    /// The index itself. Apps have no use for it.
    public var _index: LoveseatCore.FullTextIndexExpression { self }

    /// Takes the index of the collection with an alias.
    @_disfavoredOverload
    public func from(_ alias: String) -> any IndexExpressionProtocol {
        let taken: LoveseatCore.FullTextIndexExpression = from(alias)
        return taken
    }
}

extension LoveseatCore.FullTextFunction {
    /// Whether a document has the words of a full-text query.
    public static func match(_ index: any IndexExpressionProtocol, query: String) -> LoveseatCore.Expression {
        match(index._index, query: query)
    }

    /// How well a document fits the `match` of the same index: greater is better.
    public static func rank(_ index: any IndexExpressionProtocol) -> LoveseatCore.Expression {
        rank(index._index)
    }
}
