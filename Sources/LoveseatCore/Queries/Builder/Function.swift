import LoveseatQuery

/// Functions of a ``QueryBuilder`` query.
///
/// Most are MISSING for MISSING, and null for null or a value of the wrong kind.
public enum Function {
    // MARK: Aggregates

    /// The number of rows in a group, or of those for which an expression is not MISSING.
    public static func count(_ expression: (any ExpressionProtocol)? = nil) -> Expression {
        .function("COUNT", expression ?? Expression.all())
    }

    /// The average of the values of a group. MISSING is left out, and null counts as 0.
    public static func avg(_ expression: any ExpressionProtocol) -> Expression {
        .function("AVG", expression)
    }

    /// The smallest value of a group.
    public static func min(_ expression: any ExpressionProtocol) -> Expression {
        .function("MIN", expression)
    }

    /// The largest value of a group.
    public static func max(_ expression: any ExpressionProtocol) -> Expression {
        .function("MAX", expression)
    }

    /// The sum of the values of a group; MISSING if there are none.
    public static func sum(_ expression: any ExpressionProtocol) -> Expression {
        .function("SUM", expression)
    }

    // MARK: Numbers

    /// The absolute value.
    public static func abs(_ expression: any ExpressionProtocol) -> Expression {
        .function("ABS", expression)
    }

    /// The inverse cosine, in radians.
    public static func acos(_ expression: any ExpressionProtocol) -> Expression {
        .function("ACOS", expression)
    }

    /// The inverse sine, in radians.
    public static func asin(_ expression: any ExpressionProtocol) -> Expression {
        .function("ASIN", expression)
    }

    /// The inverse tangent, in radians.
    public static func atan(_ expression: any ExpressionProtocol) -> Expression {
        .function("ATAN", expression)
    }

    /// The angle in radians between the x axis and a point. Anything but numbers makes the run throw.
    public static func atan2(y: any ExpressionProtocol, x: any ExpressionProtocol) -> Expression {
        .function("ATAN2", y, x)
    }

    /// The smallest integer that is not less than the number.
    public static func ceil(_ expression: any ExpressionProtocol) -> Expression {
        .function("CEIL", expression)
    }

    /// The cosine of an angle in radians.
    public static func cos(_ expression: any ExpressionProtocol) -> Expression {
        .function("COS", expression)
    }

    /// An angle in degrees of one in radians.
    public static func degrees(_ expression: any ExpressionProtocol) -> Expression {
        .function("DEGREES", expression)
    }

    /// The number e, the base of natural logarithms.
    public static func e() -> Expression { .function("E") }

    /// The exponential, e to the power of the number.
    public static func exp(_ expression: any ExpressionProtocol) -> Expression {
        .function("EXP", expression)
    }

    /// The largest integer that is not greater than the number.
    public static func floor(_ expression: any ExpressionProtocol) -> Expression {
        .function("FLOOR", expression)
    }

    /// The natural logarithm.
    public static func ln(_ expression: any ExpressionProtocol) -> Expression {
        .function("LN", expression)
    }

    /// The logarithm to base 10.
    public static func log(_ expression: any ExpressionProtocol) -> Expression {
        .function("LOG", expression)
    }

    /// The number π.
    public static func pi() -> Expression { .function("PI") }

    /// A power. Anything but numbers makes the run throw.
    public static func power(base: any ExpressionProtocol, exponent: any ExpressionProtocol) -> Expression {
        .function("POWER", base, exponent)
    }

    /// An angle in radians of one in degrees.
    public static func radians(_ expression: any ExpressionProtocol) -> Expression {
        .function("RADIANS", expression)
    }

    /// The nearest integer; halves are rounded away from zero. Anything but numbers makes the run throw.
    public static func round(_ expression: any ExpressionProtocol) -> Expression {
        .function("ROUND", expression)
    }

    /// The number rounded to digits after the point, or before it if negative. Anything but numbers makes the run throw.
    public static func round(_ expression: any ExpressionProtocol, digits: Int) -> Expression {
        .function("ROUND", expression, Expression.value(digits))
    }

    /// -1, 0 or 1 by the number's sign. Anything but numbers makes the run throw.
    public static func sign(_ expression: any ExpressionProtocol) -> Expression {
        .function("SIGN", expression)
    }

    /// The sine of an angle in radians.
    public static func sin(_ expression: any ExpressionProtocol) -> Expression {
        .function("SIN", expression)
    }

    /// The square root.
    public static func sqrt(_ expression: any ExpressionProtocol) -> Expression {
        .function("SQRT", expression)
    }

    /// The tangent of an angle in radians.
    public static func tan(_ expression: any ExpressionProtocol) -> Expression {
        .function("TAN", expression)
    }

    /// The number without its fraction. Anything but numbers makes the run throw.
    public static func trunc(_ expression: any ExpressionProtocol) -> Expression {
        .function("TRUNC", expression)
    }

    /// The number cut off at digits after the point, or before it if negative. Anything but numbers makes the run throw.
    public static func trunc(_ expression: any ExpressionProtocol, digits: Int) -> Expression {
        .function("TRUNC", expression, Expression.value(digits))
    }

    // MARK: Texts

    /// Whether a text contains another one, which is not empty. A ``Collation`` of an operand applies.
    public static func contains(_ expression: any ExpressionProtocol, substring: any ExpressionProtocol)
        -> Expression
    {
        expression.comparison(with: [substring]) { .function("CONTAINS", $0) }
    }

    /// The number of Unicode scalars in a text.
    public static func length(_ expression: any ExpressionProtocol) -> Expression {
        .function("LENGTH", expression)
    }

    /// The text in lower case.
    public static func lower(_ expression: any ExpressionProtocol) -> Expression {
        .function("LOWER", expression)
    }

    /// The text without white space at its beginning.
    public static func ltrim(_ expression: any ExpressionProtocol) -> Expression {
        .function("LTRIM", expression)
    }

    /// The text without white space at its end.
    public static func rtrim(_ expression: any ExpressionProtocol) -> Expression {
        .function("RTRIM", expression)
    }

    /// The text without white space at its beginning and end.
    public static func trim(_ expression: any ExpressionProtocol) -> Expression {
        .function("TRIM", expression)
    }

    /// The text in upper case.
    public static func upper(_ expression: any ExpressionProtocol) -> Expression {
        .function("UPPER", expression)
    }

    // MARK: Dates

    /// A date in milliseconds since 1970 of its ISO 8601 text; null if it is not one. Without a zone, the text is in local time.
    public static func stringToMillis(_ expression: any ExpressionProtocol) -> Expression {
        .function("STR_TO_MILLIS", expression)
    }

    /// A date as ISO 8601 text in UTC of one in any zone; null if it is not one.
    public static func stringToUTC(_ expression: any ExpressionProtocol) -> Expression {
        .function("STR_TO_UTC", expression)
    }

    /// A date as ISO 8601 text in local time of milliseconds since 1970.
    public static func millisToString(_ expression: any ExpressionProtocol) -> Expression {
        .function("MILLIS_TO_STR", expression)
    }

    /// A date as ISO 8601 text in UTC of milliseconds since 1970.
    public static func millisToUTC(_ expression: any ExpressionProtocol) -> Expression {
        .function("MILLIS_TO_UTC", expression)
    }
}
