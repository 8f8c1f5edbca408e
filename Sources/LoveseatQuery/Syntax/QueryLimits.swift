/// The limits of a query, so that no text can exhaust the stack or the memory.
package enum QueryLimits {
    /// Bytes of a query's text.
    package static let textBytes = 4 << 20
    /// Nested expressions, also by way of an alias; parentheses count twice.
    ///
    /// A debug build then needs at most three quarters of the 512 kB that threads of Dispatch and Foundation have, and
    /// SQLite's own parser rarely takes more than about 25 levels.
    package static let depth = 50
    /// Operands of a sum or a product that count as one level. They need no stack here, but SQLite's trees have at most 1,000 levels.
    package static let linksOfLevel = 16
    /// The message for a query that is nested more deeply.
    static let tooDeep = "The query is nested more than \(depth) deep: simplify it"
    /// Steps of a path.
    package static let pathSteps = 800
    /// Expressions in one query.
    package static let nodes = 200_000
    /// Expressions that are translated for one query, with those that aliases repeat.
    package static let translations = 500_000
    /// Columns of a result, as SQLite allows.
    package static let columns = 2_000
    /// Joins and unnested arrays, as SQLite allows.
    package static let joins = 60
    /// Nested arrays in the path of an array index, which unnests them all.
    static let arrayLevels = 32
}
