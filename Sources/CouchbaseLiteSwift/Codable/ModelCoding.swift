import Foundation
import LoveseatCore
import LoveseatModel

/// How models are written as documents, and read from documents and rows.
enum ModelCoding {
    /// Dates are ISO 8601 text, blobs are stored in the database, `Data` is refused, and optionals that are nil are null.
    private static func hooks(_ database: EngineDatabase) -> JSONCodingHooks {
        let foundation = JSONCodingHooks.foundation
        var hooks = JSONCodingHooks(
            encode: { value in
                guard let blob = value as? Blob else { return try foundation.encode(value) }
                try blob.install(into: database)
                return blob.json
            },
            decode: { type, element in
                if type == Blob.self { return try blob(element, database) }
                if type == Data.self {
                    throw LoveseatError(.decodingError, "Data has no form in documents: use a Blob")
                }
                return try foundation.decode(type, element)
            }
        )
        hooks.writesNull = true
        return hooks
    }

    private static func blob(_ element: JSONElement, _ database: EngineDatabase) throws(LoveseatError) -> Blob
    {
        guard let reference = BlobReference(element.value) else {
            throw LoveseatError(.decodingError, "\(element.value) is not a blob")
        }
        return Blob(reference, database)
    }

    /// The contents of a document for an object, with its blobs stored.
    ///
    /// - Throws: `encodingError` if it cannot be encoded as a JSON object.
    static func contents(
        of object: some DocumentEncodable,
        _ id: DocumentID,
        in database: EngineDatabase
    ) throws -> DictionaryContents {
        let text: JSONText
        do { text = try id.omitted { try JSONText(encoding: object, hooks: hooks(database)) } } catch {
            throw coding(error, CBLError.encodingError, object)
        }
        let element = JSONElement(text)
        guard element.kind == .object else {
            throw CBLError.make(CBLError.encodingError, "\(type(of: object)) does not encode as an object")
        }
        return DictionaryContents(element, isMutable: true, database)
    }

    /// A value of a type, read from JSON.
    ///
    /// - Throws: `decodingError` if it does not fit.
    static func decode<T: Decodable>(_ type: T.Type, _ element: JSONElement, in database: EngineDatabase)
        throws
        -> T
    {
        do { return try element.decode(type, hooks: hooks(database)) } catch {
            throw coding(error, CBLError.decodingError, type)
        }
    }

    /// A value of a type, read from the row of a query.
    ///
    /// `dataKey`: a column with an object, from which properties are taken that are not columns.
    /// - Throws: `invalidQuery` if the query has no column for a property; `decodingError` if a value does not fit.
    static func decode<T: Decodable>(
        _ type: T.Type,
        _ row: QueryRow,
        dataKey: String?,
        in database: EngineDatabase
    ) throws -> T {
        try CBLError.converting {
            try DocumentID.requiring { try row.decode(type, dataKey: dataKey, hooks: hooks(database)) }
        }
    }

    /// The error for one of a coder. Those that have a code keep it.
    private static func coding(_ error: any Error, _ code: Int, _ what: Any) -> any Error {
        switch error {
        case is EncodingError, is DecodingError, is JSONError: CBLError.make(code, "\(what): \(error)")
        default: CBLError.converted(error)
        }
    }
}
