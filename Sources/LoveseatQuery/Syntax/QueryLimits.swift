/// What a query may be at most, so that no text can exhaust the stack or the memory.
package enum QueryLimits {
    /// Bytes of a query's text.
    package static let textBytes = 4 << 20
    /// Parentheses, brackets and operators inside each other.
    package static let depth = 200
    /// Expressions in one query.
    package static let nodes = 200_000
    /// Columns of a result, as SQLite allows.
    package static let columns = 2_000
    /// Joins and unnested arrays, as SQLite allows.
    package static let joins = 60
}
