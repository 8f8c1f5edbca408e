private import Foundation
public import LoveseatModel
private import LoveseatStorage

/// Documents as values of `Codable` types that are `Identifiable` by a `String`.
extension Collection {
    /// Returns a document as a value of a type, or nil if the document does not exist or was deleted.
    ///
    /// A property `id` of the type gets the document's ID. Dates are read from ISO 8601 strings, with or without a fraction. A `Decimal`
    /// is read from a number, and keeps 38 digits.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if the document does not fit the type, `badDocID` for an empty ID, `notOpen`.
    public func document<T: Decodable>(id: String, as type: T.Type = T.self) throws(LoveseatError) -> T? {
        guard let document = try document(id: id) else { return nil }
        return try document.decode(type)
    }

    /// Saves a value as a document, replacing all properties of a document that exists.
    ///
    /// The value's `id` becomes the document's ID and is left out of the properties. Dates are stored as ISO 8601 strings in UTC,
    /// rounded to milliseconds; a `Decimal` as a number, with all its digits. `Data` is refused; use a blob.
    ///
    /// - Returns: False if `concurrencyControl` is `failOnConflict` and the document exists: a plain value does not know which revision
    ///   it was read from. Use ``Document`` to detect changes since it was read.
    /// - Throws: ``LoveseatError``: `encodingError` if the value cannot be encoded, or not as a JSON object; otherwise as
    ///   ``save(_:concurrencyControl:)-t2kq``.
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
    /// Returns the properties as a value of a type. A property `id` of the type gets the document's ID.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if the properties do not fit the type.
    public func decode<T: Decodable>(_ type: T.Type = T.self) throws(LoveseatError) -> T {
        var element = element
        if element["id"] == nil {
            var properties = properties
            properties["id"] = .string(id)
            element = JSONElement(JSONText(canonical: .object(properties)))
        }
        do { return try element.decode(type, hooks: .foundation) } catch {
            throw LoveseatError(.decodingError, "document \"\(id)\" does not fit \(T.self): \(error)")
        }
    }

    /// Replaces all properties by those of a value. A property `id` is left out. The document keeps its ID and revision.
    ///
    /// - Throws: ``LoveseatError``: `encodingError` if the value cannot be encoded, or not as a JSON object.
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
    /// Dates are ISO 8601 text with milliseconds, in UTC; a `Decimal` is a number; `Data` is refused, since blobs are there for it;
    /// a `URL` and a `UUID` are their text; a ``BlobReference`` is its stub.
    static let foundation = JSONCodingHooks(
        encode: { value in
            switch value {
            case let date as Date: .string(date.iso8601Text)
            case let decimal as Decimal: try JSONValue(decimal)
            case let url as URL: .string(url.absoluteString)
            case is Data:
                throw LoveseatError(
                    .encodingError,
                    "Data has no form in JSON: save it as a blob and keep the BlobReference"
                )
            default: nil
            }
        },
        decode: { type, element in
            if type == Date.self {
                guard let text = element.string, let date = Date(iso8601: text) else {
                    throw LoveseatError(.decodingError, "\(element.value) is not an ISO 8601 date")
                }
                return date
            }
            // Earlier versions stored an object, which the type reads itself.
            if type == Decimal.self, let number = element.number {
                guard let decimal = Decimal(string: number.text, locale: Locale(identifier: "en_US_POSIX"))
                else {
                    throw LoveseatError(.decodingError, "\(number.text) is beyond the range of Decimal")
                }
                return decimal
            }
            if type == URL.self {
                guard let url = element.string.flatMap({ URL(string: $0) }) else {
                    throw LoveseatError(.decodingError, "\(element.value) is not a URL")
                }
                return url
            }
            return nil
        }
    )
}

extension JSONValue {
    /// - Throws: `encodingError` for NaN.
    fileprivate init(_ decimal: Decimal) throws(LoveseatError) {
        guard decimal.isFinite else {
            throw LoveseatError(.encodingError, "JSON has no number for the Decimal NaN")
        }
        self = .number(.text(decimal.description))
    }
}

extension Date {
    fileprivate init?(iso8601 text: String) {
        let styles = [Date.ISO8601FormatStyle(includingFractionalSeconds: true), Date.ISO8601FormatStyle()]
        guard let date = styles.lazy.compactMap({ try? $0.parse(text) }).first else { return nil }
        self = date
    }

    /// The date in UTC, rounded to milliseconds.
    fileprivate var iso8601Text: String {
        // The style truncates, and the double nearest to a millisecond may be below it: a date that is read and saved again must
        // not lose one each time.
        let milliseconds = (timeIntervalSinceReferenceDate * 1_000).rounded()
        return Date(timeIntervalSinceReferenceDate: (milliseconds + 0.5) / 1_000)
            .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}
