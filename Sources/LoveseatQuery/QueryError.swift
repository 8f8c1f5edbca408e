/// The reason why a query cannot be compiled.
public struct QueryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of mistakes, with the numbers that the public API reports.
    public enum Code: Int, Sendable {
        /// The text is not a query, or names something that does not exist.
        case invalidQuery = 23
        /// `MATCH` or `RANK` names something that is not a full-text index.
        case missingIndex = 24
        /// A parameter was set that the query does not have.
        case unknownParameter = 25
        /// The name of an index is not valid.
        case invalidParameter = 9
    }

    /// The kind of mistake.
    public let code: Code
    /// A description of the mistake, and of what was expected.
    public let message: String
    /// The place in the query's text, in bytes from 0; nil if the mistake has no single place.
    public let position: Int?

    /// Creates an error.
    public init(_ code: Code = .invalidQuery, _ message: String, at position: Int? = nil) {
        self.code = code
        self.message = message
        self.position = position
    }

    /// The message, with the position as a 1-based byte number.
    public var description: String {
        guard let position else { return message }
        return "\(message) (at byte \(position + 1))"
    }
}
