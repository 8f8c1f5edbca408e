public import LoveseatModel

/// Properties as values of `Codable` types.
extension Document {
    /// The value of a property as a value of a type, or nil if the property does not exist, is null, or does not fit the type.
    ///
    /// ```swift
    /// document["opened"] = Date()
    /// document["tags"] = ["iron", "tall"]
    /// document["photo"] = try database.saveBlob(jpeg, contentType: "image/jpeg")
    /// let opened: Date? = document["opened"]
    /// ```
    ///
    /// Setting nil removes the property. Types are stored as in a model (see <doc:Documents>). A value that cannot be encoded, such as
    /// `Data` or an infinity, makes the next save throw `encodingError`; ``set(_:to:)`` throws at once. Literals and expressions of
    /// ``JSONValue`` use the subscript of ``JSONValue``.
    @_disfavoredOverload
    public subscript<T: Codable>(key: String) -> T? {
        get { (try? value(key, as: T.self)) ?? nil }
        set {
            self[key] = newValue.map { JSONValue(orUnusable: $0) }
        }
    }

    /// Returns the value of a property as a value of a type, or nil if the property does not exist or is null.
    ///
    /// - Throws: ``LoveseatError``: `decodingError` if the property does not fit the type.
    public func value<T: Decodable>(_ key: String, as type: T.Type = T.self) throws(LoveseatError) -> T? {
        guard let element = element[key], !element.isNull else { return nil }
        do { return try element.decode(type, hooks: .foundation) } catch {
            throw LoveseatError(
                .decodingError,
                "property \"\(key)\" of document \"\(id)\" does not fit \(T.self): \(error)"
            )
        }
    }

    /// Sets a property to a value of a type.
    ///
    /// - Throws: ``LoveseatError``: `encodingError` if the value cannot be encoded.
    public mutating func set(_ key: String, to value: some Encodable) throws(LoveseatError) {
        do { self[key] = try JSONValue(encoding: value) } catch {
            throw LoveseatError(
                .encodingError,
                "the value for property \"\(key)\" of document \"\(id)\" cannot be JSON: \(error)"
            )
        }
    }
}

extension JSONValue {
    init(encoding value: some Encodable) throws {
        self = JSONElement(try JSONText(encoding: value, hooks: .foundation)).value
    }

    /// For setters, which cannot throw. A value that cannot be encoded becomes one that JSON cannot hold, which is refused when it is used.
    init(orUnusable value: some Encodable) {
        self = (try? JSONValue(encoding: value)) ?? .number(.double(.nan))
    }
}
