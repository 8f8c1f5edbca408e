public import Foundation
import LoveseatModel

/// Queries as JSON. Couchbase Lite's own tests use it; apps keep the text of a query instead.
extension Query {
    private static let textProperty = "SQL++"

    /// The query without the values of its parameters, as a JSON object.
    public var json: Data { Data(JSONText(canonical: [Self.textProperty: .string(text)]).bytes) }

    /// Creates a query from the ``json`` of another one. Running anything else throws `invalidQuery`.
    public convenience init(database: Database, JSONRepresentation json: Data) {
        self.init(in: database) { database in
            guard let text = (try? JSONElement(parsing: [UInt8](json)))?[Self.textProperty]?.string else {
                throw CBLError.make(CBLError.invalidQuery, "the JSON is not that of a query")
            }
            return try database.compile(text)
        }
    }
}
