import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage

/// A row of a query's result: a value for each column, in the order of the SELECT list.
///
/// A column that is MISSING has no value and no key; one that is null has a key. ``count`` counts both. One thread may use a row at a time.
public final class Result: ArrayProtocol, DictionaryProtocol, Sequence {
    private let row: QueryRow
    private let database: EngineDatabase
    /// Arrays, dictionaries and blobs that were read, so that each is handed out as the same object.
    private var wrapped: [Int: _StoredValue] = [:]

    init(_ row: QueryRow, _ database: EngineDatabase) {
        self.row = row
        self.database = database
    }

    /// The number of columns.
    public var count: Int { row.count }

    /// The names of the columns, in the order of the SELECT list.
    public var keys: [String] { row.columns }

    /// The value from which all getters are made. Apps have no use for it.
    public func _stored(at index: Int) -> _StoredValue? {
        guard row.values.indices.contains(index) else { return nil }
        if !wrapped.isEmpty, let known = wrapped[index] { return known }
        let value = _StoredValue(row.values[index], database)
        if case .json = row.values[index] { wrapped[index] = value }
        return value
    }

    /// The value from which all getters are made. Apps have no use for it.
    public func _stored(forKey key: String) -> _StoredValue? {
        row.titles.positions[ExactText(key)].flatMap { _stored(at: $0) }
    }

    /// The value of a column by its position; nil if it is MISSING or null.
    public func value(at index: Int) -> Any? { _stored(at: index).flatMap { $0.isNull ? nil : $0.any } }

    /// The value of a column by its name; nil if it is MISSING or null.
    public func value(forKey key: String) -> Any? {
        _stored(forKey: key).flatMap { $0.isNull ? nil : $0.any }
    }

    /// The value of a column by its position, for reading it as one of several types.
    public subscript(index: Int) -> Fragment {
        Fragment(_stored(at: index).flatMap { $0.isNull ? nil : $0 })
    }

    /// The value of a column by its name, for reading it as one of several types.
    public subscript(key: String) -> Fragment {
        Fragment(_stored(forKey: key).flatMap { $0.isNull ? nil : $0 })
    }

    /// The values of all columns, with an `NSNull` for null and MISSING.
    public func toArray() -> [Any] { (0..<count).map { _stored(at: $0)?.plain ?? NSNull() } }

    /// The values of the columns that are not MISSING, with an `NSNull` for null.
    public func toDictionary() -> [String: Any] {
        Dictionary(
            keys.enumerated().compactMap { index, key in _stored(at: index).map { (key, $0.plain) } },
            uniquingKeysWith: { first, _ in first }
        )
    }

    /// The columns that are not MISSING as the text of a JSON object.
    public func toJSON() -> String { row.json }

    /// Returns an iterator over the names of the columns.
    public func makeIterator() -> IndexingIterator<[String]> { keys.makeIterator() }

    /// Returns the row as a value of a type, whose properties are the columns.
    ///
    /// - Parameters:
    ///   - type: The type.
    ///   - dataKey: A column with a dictionary, such as that of `SELECT meta().id, *`. Properties that are not columns are taken from it.
    /// - Returns: The value.
    /// - Throws: `invalidQuery` if the query has no column for a property that the type requires; `decodingError` if a value does not fit.
    public func data<T: Decodable>(as type: T.Type, dataKey: String? = nil) throws -> T {
        try ModelCoding.decode(type, row, dataKey: dataKey, in: database)
    }
}

extension _StoredValue {
    /// A value of a row; nil for MISSING.
    init?(_ value: ResultValue, _ database: EngineDatabase) {
        switch value {
        case .missing: return nil
        case .null: self = .null
        case .boolean(let value): self.init(value)
        case .integer(let value): self.init(value)
        case .double(let value): self.init(value)
        case .string(let text): self.init(text)
        case .json(let text):
            let element = JSONElement(text)
            if element.isContainer {
                self.init(wrapping: element, isMutable: false, database)
            } else {
                self.init(.element(element))
            }
        }
    }
}
