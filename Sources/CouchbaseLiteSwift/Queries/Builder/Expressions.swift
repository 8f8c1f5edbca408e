public import Foundation
public import LoveseatCore
import LoveseatModel

/// Values of one type.
extension LoveseatCore.Expression {
    /// A value of one of the types that documents can contain. Nil is null.
    public static func value(_ value: Any?) -> LoveseatCore.Expression {
        literal(_StoredValue(any: value))
    }

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

    /// A dictionary. Nil is null.
    public static func dictionary(_ value: [String: Any]?) -> LoveseatCore.Expression {
        literal(_StoredValue(any: value))
    }

    /// An array. Nil is null.
    public static func array(_ value: [Any]?) -> LoveseatCore.Expression {
        literal(_StoredValue(any: value))
    }

    /// The logical negation, as ``not(_:)``.
    public static func negated(_ expression: any ExpressionProtocol) -> LoveseatCore.Expression {
        not(expression)
    }

    private static func literal(_ stored: _StoredValue) -> LoveseatCore.Expression {
        // The type decides between the functions of this name.
        let json: JSONValue? = stored.json
        return value(json)
    }
}
