public import LoveseatModel

/// A model that reads documents which other versions of the app saved.
///
/// ```swift
/// struct Place: DocumentModel {
///     var id: String
///     var title: String
///     var likes = 0
///
///     static var defaults: JSONObject { ["likes": 0] }
///     static var renamedProperties: KeyValuePairs<String, String> { ["name": "title"] }
/// }
/// ```
///
/// A model needs this only if one of its properties is newer than its oldest documents: any `Codable` type that is `Identifiable` by a
/// ``DocumentKey`` can be saved and read. See <doc:ChangingModels>.
public protocol DocumentModel: Codable, Identifiable where ID: DocumentKey {
    /// The values of properties that a document lacks, or that are null in it. They are not written before they are changed.
    ///
    /// They are for properties at the top of the document. An optional property needs none: with one, it cannot be nil.
    static var defaults: JSONObject { get }

    /// Former names of properties, with the names of today.
    ///
    /// A document without a property gets the value under a former name, the first that it has. A change of the model moves it to the name
    /// of today, where older versions of the app do not find it.
    static var renamedProperties: KeyValuePairs<String, String> { get }

    /// The names that properties have in documents, for conditions with key paths (``DocumentCondition``). They may be paths, such as
    /// `address.city`. The name of the model's ID is `id`.
    static var propertyNames: [PartialKeyPath<Self>: String] { get }
}

extension DocumentModel {
    /// No values: each property that is not optional must be in every document.
    public static var defaults: JSONObject { [:] }

    /// No former names.
    public static var renamedProperties: KeyValuePairs<String, String> { [:] }

    /// No names: conditions with key paths throw `invalidQuery`.
    public static var propertyNames: [PartialKeyPath<Self>: String] { [:] }

    /// The members that a document lacks for this model.
    fileprivate static func missing(in element: JSONElement) -> [ExactText: JSONElement] {
        func lacks(_ name: String) -> Bool { element[name]?.isNull ?? true }
        var missing: [ExactText: JSONElement] = [:]
        for (former, name) in renamedProperties where lacks(name) && missing[ExactText(name)] == nil {
            if !lacks(former) { missing[ExactText(name)] = element[former] }
        }
        for (name, value) in defaults where lacks(name) && missing[ExactText(name)] == nil {
            missing[ExactText(name)] = JSONElement(JSONText(canonical: value))
        }
        return missing
    }
}

extension ModelMembers {
    /// The members that a document lacks, and that its model gets all the same.
    static func missing(for type: any Decodable.Type, in element: JSONElement) -> [ExactText: JSONElement] {
        (type as? any DocumentModel.Type)?.missing(in: element) ?? [:]
    }
}

extension JSONObject {
    /// The properties under the names that a model has for them today.
    func renamed(for type: Any.Type) -> JSONObject {
        guard let model = type as? any DocumentModel.Type else { return self }
        var renamed = self
        for (former, name) in model.renamedProperties { renamed.rename(former, to: name) }
        return renamed
    }

    fileprivate mutating func rename(_ former: String, to name: String) {
        if !has(former) || former.isExactly(name) { return }
        if !has(name) { self[name] = self[former] }
        self[former] = nil
    }

    /// The properties as a model of today would write them if it had made the document.
    func completed(for model: (some DocumentModel).Type) -> JSONObject {
        var completed = renamed(for: model)
        for (name, value) in model.defaults where !completed.has(name) { completed[name] = value }
        return completed
    }

    private func has(_ name: String) -> Bool { self[name] ?? .null != .null }
}

extension Document {
    /// Moves a property to another name, if the document has it.
    ///
    /// If there is a property of the other name already, and not null, it stays, and the former one is removed: a newer version of the
    /// app has changed the document.
    public mutating func renameProperty(_ former: String, to name: String) {
        var renamed = properties
        renamed.rename(former, to: name)
        if renamed != properties { properties = renamed }
    }
}
