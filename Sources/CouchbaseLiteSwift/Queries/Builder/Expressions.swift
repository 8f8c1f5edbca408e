public import Foundation
public import LoveseatCore
import LoveseatModel

/// Values of one type.
extension LoveseatCore.Expression {
    /// A value of one of the types that documents can contain, or an array or dictionary with expressions in it. Nil is null.
    public static func value(_ value: Any?) -> LoveseatCore.Expression { composed(value) }

    /// A string. Nil is null.
    public static func string(_ value: String?) -> LoveseatCore.Expression {
        literal(_StoredValue(value))
    }

    /// A number. Nil is null.
    public static func number(_ value: NSNumber?) -> LoveseatCore.Expression {
        literal(_StoredValue(value))
    }

    /// An `Int`.
    public static func int(_ value: Int) -> LoveseatCore.Expression { literal(_StoredValue(value)) }

    /// An `Int64`.
    public static func int64(_ value: Int64) -> LoveseatCore.Expression {
        literal(_StoredValue(value))
    }

    /// A `Float`.
    public static func float(_ value: Float) -> LoveseatCore.Expression {
        literal(_StoredValue(value))
    }

    /// A `Double`.
    public static func double(_ value: Double) -> LoveseatCore.Expression {
        literal(_StoredValue(value))
    }

    /// A boolean.
    public static func boolean(_ value: Bool) -> LoveseatCore.Expression {
        literal(_StoredValue(value))
    }

    /// A date, which is its ISO 8601 text. Nil is null.
    public static func date(_ value: Date?) -> LoveseatCore.Expression {
        literal(_StoredValue(value))
    }

    /// A dictionary, whose values may be expressions. Nil is null.
    public static func dictionary(_ value: [String: Any]?) -> LoveseatCore.Expression { composed(value) }

    /// An array, whose items may be expressions. Nil is null.
    public static func array(_ value: [Any]?) -> LoveseatCore.Expression { composed(value) }

    /// The logical negation, as ``not(_:)``.
    public static func negated(_ expression: any ExpressionProtocol) -> LoveseatCore.Expression {
        not(expression)
    }

    /// A value that may contain expressions.
    private static func composed(_ value: Any?) -> LoveseatCore.Expression {
        switch value {
        case let expression as any ExpressionProtocol: expression.expression
        case let items as [Any] where hasExpression(items):
            LoveseatCore.Expression(items: items.map { composed($0) })
        case let members as [String: Any] where hasExpression(members):
            LoveseatCore.Expression(
                members: members.sorted { ExactText($0.key) < ExactText($1.key) }
                    .map { ($0.key, composed($0.value)) }
            )
        default: literal(_StoredValue(any: value))
        }
    }

    private static func hasExpression(_ value: Any) -> Bool {
        switch value {
        case is any ExpressionProtocol: true
        case let items as [Any]: items.contains { hasExpression($0) }
        case let members as [String: Any]: members.values.contains { hasExpression($0) }
        default: false
        }
    }

    private static func literal(_ stored: _StoredValue) -> LoveseatCore.Expression {
        // The type decides between the functions of this name.
        let json: JSONValue? = stored.json
        return value(json)
    }
}
