public import LoveseatModel
package import LoveseatStorage

/// A row of a query's result: a value for each column, in the order of the SELECT list.
///
/// ```swift
/// let query = try database.createQuery("SELECT city, COUNT(*) AS sights FROM travel.sights GROUP BY city")
/// for row in try query.execute() { print(row["city"] ?? .null, row["sights"]?.int ?? 0) }
/// ```
///
/// A row is a value that does not change when documents do. Columns without `AS` have the name of the property's last part, or `$1`, `$2`
/// and so on. A column that is MISSING is nil, and one that is null is ``JSONValue/null``.
public struct QueryRow: Sendable {
    package let titles: QueryTitles
    package let values: [ResultValue]

    /// The titles of the columns, in the order of the SELECT list.
    public var columns: [String] { titles.titles }

    /// The number of columns.
    public var count: Int { values.count }

    /// The value of a column, or nil if it is MISSING or there is no such column.
    public subscript(column: String) -> JSONValue? {
        titles.positions[ExactText(column)].flatMap { values[$0].json }
    }

    /// The value of a column by its position from 0, or nil if it is MISSING or there is no such column.
    public subscript(position: Int) -> JSONValue? {
        values.indices.contains(position) ? values[position].json : nil
    }

    /// The value of a column as a value of a type, or nil if it is MISSING or null, does not fit the type, or there is no such column.
    @_disfavoredOverload
    public subscript<T: Decodable>(column: String) -> T? {
        titles.positions[ExactText(column)].flatMap { values[$0].decoded() }
    }

    /// The value of a column by its position as a value of a type, or nil if it is MISSING or null, or does not fit the type.
    @_disfavoredOverload
    public subscript<T: Decodable>(position: Int) -> T? {
        values.indices.contains(position) ? values[position].decoded() : nil
    }

    /// The columns with their titles, without those that are MISSING.
    public var properties: JSONObject {
        var properties = JSONObject()
        for (title, value) in zip(columns, values) { properties[title] = value.json }
        return properties
    }

    /// The row as a JSON object, on one line, with the columns in their order and without those that are MISSING.
    public var json: String { "{\(members)}" }

    private var members: String {
        zip(columns, values)
            .compactMap { title, value in
                value.text.map { "\(JSONValue.string(title)):\($0)" }
            }
            .joined(separator: ",")
    }

    /// Returns the row as a value of a type, whose properties are the columns.
    ///
    /// ```swift
    /// struct Visit: Decodable { var city: String; var likes: Int }
    /// let visits = try query.execute().map { try $0.decode(Visit.self) }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type.
    ///   - key: A column with an object, such as that of `SELECT meta().id, *`. Properties that are not columns are taken from it.
    /// - Returns: The value.
    /// - Throws: ``LoveseatError``: `invalidQuery` if the query has no column for a property that the type requires; `decodingError` if
    ///   a value does not fit the type, or the row has none for such a property.
    public func decode<T: Decodable>(_ type: T.Type = T.self, dataKey key: String? = nil)
        throws(LoveseatError) -> T
    {
        try decode(type, dataKey: key, hooks: .foundation)
    }

    /// Returns the row as a value of a type, some of whose properties are read by hooks.
    package func decode<T: Decodable>(_ type: T.Type, dataKey key: String?, hooks: JSONCodingHooks)
        throws(LoveseatError) -> T
    {
        var element = JSONElement(JSONText(trusted: Array("{}".utf8)))
        var added: [ExactText: JSONElement] = [:]
        for (title, value) in zip(columns, values) {
            guard let text = value.text else { continue }
            let column = JSONElement(JSONText(trusted: Array(text.utf8)))
            if let key, title.isExactly(key) {
                element = column
            } else {
                added[ExactText(title)] = column
            }
        }
        // A column that is MISSING has its default; a property that the query does not select has none.
        for (name, value) in ModelMembers.missing(for: type, in: element)
        where (added[name]?.isNull ?? true) && (key != nil || titles.positions[name] != nil) {
            added[name] = value
        }
        if let id = added[ExactText(ModelMembers.id)]?.string {
            added[ExactText(ModelMembers.id)] = ModelMembers.json(ofID: id, for: type)
        }
        do { return try element.decode(type, hooks: hooks, adding: added) } catch {
            if case .keyNotFound(let missing, let context)? = error as? DecodingError,
                context.codingPath.isEmpty
            {
                throw lacking(missing.stringValue, for: type, dataKey: key)
            }
            throw LoveseatError(.decodingError, "a row does not fit \(T.self): \(error)")
        }
    }
}

extension QueryRow {
    /// Why the row cannot be a value of a type, for want of a property.
    fileprivate func lacking(_ name: String, for type: Any.Type, dataKey key: String?) -> LoveseatError {
        let wanted = "\"\(name)\", which \(type) requires"
        if let key, titles.positions[ExactText(key)] == nil {
            let others = columns.map { "\"\($0)\"" }.joined(separator: ", ")
            return LoveseatError(
                .invalidQuery,
                "the query has no column \"\(key)\": use the name of one of \(others)"
            )
        }
        if titles.positions[ExactText(name)] != nil {
            let advice = "make the property optional, or leave such documents out"
            return LoveseatError(.decodingError, "a row has no value in column \(wanted): \(advice)")
        }
        if name.isExactly(ModelMembers.id) {
            return LoveseatError(.invalidQuery, "the query has no column \(wanted): select meta().id")
        }
        if key != nil {
            let advice = "make the property optional, or give it a default"
            return LoveseatError(.decodingError, "a document has no property \(wanted): \(advice)")
        }
        let whole = zip(columns, values).first { _, value in
            guard case .json(let text) = value else { return false }
            return JSONElement(text)[name] != nil
        }
        let advice =
            whole.map { "pass \"\($0.0)\", which has it, as the data key" }
            ?? "select it, or make the property optional"
        return LoveseatError(.invalidQuery, "the query has no column \(wanted): \(advice)")
    }
}

/// The titles of a result's columns, which its rows share.
package final class QueryTitles: Sendable {
    package let titles: [String]
    package let positions: [ExactText: Int]

    package init(_ titles: [String]) {
        self.titles = titles
        positions = Dictionary(titles.enumerated().map { (ExactText($1), $0) }) { first, _ in first }
    }
}

extension ResultValue {
    /// The value; nil for MISSING.
    var json: JSONValue? {
        switch self {
        case .missing: nil
        case .null: .null
        case .boolean(let value): .bool(value)
        case .integer(let value): .number(.integer(value))
        case .double(let value): .number(.double(value))
        case .string(let value): .string(value)
        case .json(let text): JSONElement(text).value
        }
    }

    /// The value as JSON text; nil for MISSING.
    var text: String? {
        switch self {
        case .missing: nil
        case .json(let text): text.description
        case .null, .boolean, .integer, .double, .string: json?.description
        }
    }

    func decoded<T: Decodable>() -> T? {
        guard self != .null, let text else { return nil }
        // A value that does not fit the type is nil, as the subscripts say.
        return try? JSONElement(JSONText(trusted: Array(text.utf8))).decode(T.self, hooks: .foundation)
    }
}

extension QueryRow: CustomStringConvertible {
    /// The row as ``json``.
    public var description: String { json }
}
