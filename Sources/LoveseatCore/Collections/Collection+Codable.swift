private import Foundation
public import LoveseatModel
private import LoveseatStorage

/// Any `Codable` type with an ID of its own can be a document.
extension Collection {
    /// Reads a document as a value; nil if there is none, or it was deleted.
    ///
    /// - Throws: `decodingError` if the document does not fit the type.
    public func document<T: Decodable>(id: String, as type: T.Type = T.self) throws(LoveseatError) -> T? {
        guard let document = try document(id: id) else { return nil }
        return try document.decode(type)
    }

    /// Saves a value as a document. Its ID names the document and is not part of the body.
    ///
    /// - Returns: false if `concurrencyControl` is `failOnConflict` and there is a document of this ID: a plain value
    ///   does not know which revision it was read from. Use ``Document`` to tell.
    /// - Throws: `encodingError` if the value cannot be JSON, or is not an object.
    @discardableResult
    public func save<T: Encodable & Identifiable>(
        _ value: T,
        concurrencyControl: ConcurrencyControl = .lastWriteWins
    ) throws(LoveseatError) -> Bool where T.ID == String {
        var document = try Document(encoding: value)
        return try save(&document, concurrencyControl: concurrencyControl)
    }
}

extension Document {
    /// A value as a document to be saved for the first time. Its ID names the document and is not part of the body.
    init<T: Encodable & Identifiable>(encoding value: T) throws(LoveseatError) where T.ID == String {
        let text: JSONText
        do { text = try JSONText(encoding: value, hooks: .foundation) } catch {
            throw LoveseatError(.encodingError, "\(T.self) \"\(value.id)\" cannot be JSON: \(error)")
        }
        guard var properties = JSONElement(text).value.object else {
            throw LoveseatError(.encodingError, "\(T.self) does not encode as a JSON object")
        }
        if properties["id"] == .string(value.id) { properties["id"] = nil }
        self.init(id: value.id, properties)
    }
}

extension Document {
    /// Reads the properties, and the document's ID as `id`, as a value.
    ///
    /// - Throws: `decodingError` if they do not fit the type.
    public func decode<T: Decodable>(_ type: T.Type = T.self) throws(LoveseatError) -> T {
        var element = element
        if element["id"] == nil {
            var properties = properties
            properties["id"] = .string(id)
            element = JSONElement(JSONText(canonical: .object(properties)))
        }
        do { return try element.decode(type, hooks: .foundation) } catch {
            throw LoveseatError(.decodingError, "document \"\(id)\" is no \(T.self): \(error)")
        }
    }

    /// Replaces the properties by those of a value; a property `id` is left out.
    ///
    /// - Throws: `encodingError` if the value cannot be JSON, or is not an object.
    public mutating func encode(_ value: some Encodable) throws(LoveseatError) {
        let text: JSONText
        do { text = try JSONText(encoding: value, hooks: .foundation) } catch {
            throw LoveseatError(.encodingError, "the value for document \"\(id)\" cannot be JSON: \(error)")
        }
        guard var properties = JSONElement(text).value.object else {
            throw LoveseatError(.encodingError, "\(type(of: value)) does not encode as a JSON object")
        }
        properties["id"] = nil
        self.properties = properties
    }
}

extension JSONCodingHooks {
    /// Dates are ISO 8601 text with milliseconds, in UTC; `Data` is refused, since blobs are there for it; a `URL` and
    /// a `UUID` are their text; a ``BlobReference`` is its stub.
    static let foundation = JSONCodingHooks(
        encode: { value in
            switch value {
            case let date as Date: .string(date.formatted(.iso8601Milliseconds))
            case let url as URL: .string(url.absoluteString)
            case is Data:
                throw LoveseatError(
                    .encodingError,
                    "Data is no JSON: save it as a blob and keep the BlobReference"
                )
            default: nil
            }
        },
        decode: { type, element in
            if type == Date.self {
                guard let text = element.string, let date = Date(iso8601: text) else {
                    throw LoveseatError(.decodingError, "\(element.value) is no ISO 8601 date")
                }
                return date
            }
            if type == URL.self {
                guard let url = element.string.flatMap({ URL(string: $0) }) else {
                    throw LoveseatError(.decodingError, "\(element.value) is no URL")
                }
                return url
            }
            return nil
        }
    )
}

extension FormatStyle where Self == Date.ISO8601FormatStyle {
    fileprivate static var iso8601Milliseconds: Date.ISO8601FormatStyle {
        Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    }
}

extension Date {
    fileprivate init?(iso8601 text: String) {
        let styles = [Date.ISO8601FormatStyle(includingFractionalSeconds: true), Date.ISO8601FormatStyle()]
        guard let date = styles.lazy.compactMap({ try? $0.parse(text) }).first else { return nil }
        self = date
    }
}
