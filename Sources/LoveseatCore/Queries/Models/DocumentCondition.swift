import LoveseatModel
import LoveseatQuery

/// A condition on the properties of a ``DocumentModel``, such as `\.city == "Paris" && \.likes > 3`.
///
/// ```swift
/// let liked: [Place] = try places.documents(where: \.city == "Paris" && \.likes > 3, orderBy: [.descending(\.likes)])
/// ```
///
/// Conditions mean what they mean in a query (see <doc:Queries>): texts are compared by their bytes, and a property that a document lacks
/// meets no comparison, also if the model has a default for it. Nil stands for a property that is missing or null. A value becomes a parameter
/// of the query, and never a part of its text.
///
/// The model's ``DocumentModel/propertyNames`` name the properties. A query with one that they do not name throws `invalidQuery`.
public struct DocumentCondition<Model: DocumentModel>: Sendable {
    let tree: ConditionTree

    fileprivate init(_ tree: ConditionTree) { self.tree = tree }

    fileprivate init(
        _ keyPath: PartialKeyPath<Model>,
        _ comparison: ConditionTree.Comparison,
        _ value: some Encodable
    ) {
        let property = ModelProperty(keyPath)
        tree = .comparison(property, comparison, property.json(of: value))
    }

    /// Creates the condition that a property has one of some values.
    public init<Value: Encodable>(_ keyPath: KeyPath<Model, Value>, in values: [Value]) {
        let property = ModelProperty(keyPath)
        tree = .contained(property, values.map { property.json(of: $0) })
    }

    /// Whether both conditions are true.
    public static func && (lhs: Self, rhs: Self) -> Self { Self(.and(lhs.tree, rhs.tree)) }

    /// Whether at least one of the conditions is true.
    public static func || (lhs: Self, rhs: Self) -> Self { Self(.or(lhs.tree, rhs.tree)) }

    /// The negation. A condition on something missing is neither true nor false.
    public static prefix func ! (condition: Self) -> Self { Self(.not(condition.tree)) }
}

/// Whether a property equals a value. Nil stands for a property that is missing or null.
public func == <Model: DocumentModel, Value: Encodable & Equatable>(
    lhs: KeyPath<Model, Value>,
    rhs: Value
) -> DocumentCondition<Model> { DocumentCondition(lhs, .equal, rhs) }

/// Whether a property exists and differs from a value; with nil, whether it is neither missing nor null.
public func != <Model: DocumentModel, Value: Encodable & Equatable>(
    lhs: KeyPath<Model, Value>,
    rhs: Value
) -> DocumentCondition<Model> { DocumentCondition(lhs, .notEqual, rhs) }

/// Whether a property is less than a value, in the order of queries.
public func < <Model: DocumentModel, Value: Encodable>(
    lhs: KeyPath<Model, Value>,
    rhs: Value
) -> DocumentCondition<Model> { DocumentCondition(lhs, .less, rhs) }

/// Whether a property is at most a value, in the order of queries.
public func <= <Model: DocumentModel, Value: Encodable>(
    lhs: KeyPath<Model, Value>,
    rhs: Value
) -> DocumentCondition<Model> { DocumentCondition(lhs, .lessOrEqual, rhs) }

/// Whether a property is greater than a value, in the order of queries.
public func > <Model: DocumentModel, Value: Encodable>(
    lhs: KeyPath<Model, Value>,
    rhs: Value
) -> DocumentCondition<Model> { DocumentCondition(lhs, .greater, rhs) }

/// Whether a property is at least a value, in the order of queries.
public func >= <Model: DocumentModel, Value: Encodable>(
    lhs: KeyPath<Model, Value>,
    rhs: Value
) -> DocumentCondition<Model> { DocumentCondition(lhs, .greaterOrEqual, rhs) }

/// A property by which documents are sorted, in the order of queries.
public struct DocumentOrder<Model: DocumentModel>: Sendable {
    let property: ModelProperty
    let isDescending: Bool

    /// From the smallest value to the largest; documents without the property come first.
    public static func ascending<Value>(_ keyPath: KeyPath<Model, Value>) -> DocumentOrder {
        DocumentOrder(property: ModelProperty(keyPath), isDescending: false)
    }

    /// From the largest value to the smallest.
    public static func descending<Value>(_ keyPath: KeyPath<Model, Value>) -> DocumentOrder {
        DocumentOrder(property: ModelProperty(keyPath), isDescending: true)
    }
}

/// A property of a model in a query.
struct ModelProperty: Sendable {
    let expression: Expression
    private let isID: Bool

    init<Model: DocumentModel>(_ keyPath: PartialKeyPath<Model>) {
        let name = Model.propertyNames[keyPath]
        isID = name?.isExactly(ModelMembers.id) == true
        switch name {
        case _ where isID: expression = Meta.id.expression
        case let path?: expression = Expression.property(path).expression
        case nil:
            let problem = "\(Model.self) has no name for \(keyPath): add it to its propertyNames"
            expression = Expression(tree: .failure(QueryError(.invalidQuery, problem)))
        }
    }

    /// A value as a document stores it; of an ID, the text that names the document.
    func json(of value: some Encodable) -> JSONValue {
        if isID, let key = value as? any DocumentKey { return .string(key.documentID) }
        return JSONValue(orUnusable: value)
    }
}

/// The parts of a condition.
indirect enum ConditionTree: Sendable {
    enum Comparison { case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual }

    case comparison(ModelProperty, Comparison, JSONValue)
    case contained(ModelProperty, [JSONValue])
    case and(ConditionTree, ConditionTree)
    case or(ConditionTree, ConditionTree)
    case not(ConditionTree)

    /// The condition in a query. Values are added to the query's parameters.
    func expression(_ parameters: inout QueryParameters) -> Expression {
        switch self {
        case .and(let one, let other): one.expression(&parameters).and(other.expression(&parameters))
        case .or(let one, let other): one.expression(&parameters).or(other.expression(&parameters))
        case .not(let condition): .not(condition.expression(&parameters))
        case .contained(let property, let values):
            property.expression.in(values.map { Self.parameter($0, &parameters) })
        case .comparison(let property, .equal, .null): property.expression.isNotValued()
        case .comparison(let property, .notEqual, .null): property.expression.isValued()
        case .comparison(let property, let comparison, let value):
            comparison.expression(property.expression, Self.parameter(value, &parameters))
        }
    }

    private static func parameter(_ value: JSONValue, _ parameters: inout QueryParameters) -> Expression {
        let name = "value\(parameters.values.count + 1)"
        parameters[name] = value
        return .parameter(name)
    }
}

extension ConditionTree.Comparison {
    fileprivate func expression(_ one: Expression, _ other: Expression) -> Expression {
        switch self {
        case .equal: one.equalTo(other)
        case .notEqual: one.notEqualTo(other)
        case .less: one.lessThan(other)
        case .lessOrEqual: one.lessThanOrEqualTo(other)
        case .greater: one.greaterThan(other)
        case .greaterOrEqual: one.greaterThanOrEqualTo(other)
        }
    }
}
