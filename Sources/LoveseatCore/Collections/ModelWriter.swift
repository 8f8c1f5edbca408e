import LoveseatModel
import LoveseatStorage

/// Saves models as documents of a collection, and lists of documents, each call in transactions of its own.
struct ModelWriter {
    private let collection: Collection

    init(_ collection: Collection) { self.collection = collection }

    /// The document that a value was saved as; nil after a conflict.
    func save<T: Encodable & Identifiable>(_ value: T, _ concurrencyControl: ConcurrencyControl)
        throws(LoveseatError) -> Document? where T.ID: DocumentKey
    {
        while true {
            var draft = try ModelDraft(value, concurrencyControl) { id throws(LoveseatError) in
                try collection.document(id: id)
            }
            if draft.isUnchanged { return draft.document }
            if try collection.save(&draft.document, concurrencyControl: draft.concurrencyControl) {
                return draft.document
            }
            // The stored document, on which the draft is based, was changed meanwhile.
            if concurrencyControl == .failOnConflict { return nil }
        }
    }

    /// Saves a value, and asks a handler what to do with the stored one; false if the handler gave up.
    func save<T: Codable & Identifiable>(_ value: inout T, _ conflictHandler: (inout T, T?) throws -> Bool)
        throws -> Bool where T.ID: DocumentKey
    {
        var draft = try ModelDraft(value, .failOnConflict) { id throws(LoveseatError) in
            try collection.document(id: id)
        }
        var changed = value
        let isSaved =
            try draft.isUnchanged
            || collection.save(&draft.document) { mine, stored in
                guard try conflictHandler(&changed, try stored?.decode(T.self)) else { return false }
                mine.properties = try Document(encoding: changed).keeping(what: T.self, doesNotKnowOf: stored)
                    .properties
                return true
            }
        guard isSaved else { return false }
        value = changed.tracking(draft.document.revisionID)
        return true
    }

    /// Saves values in one transaction: all of them, or none; false after a conflict.
    func save<T: Encodable & Identifiable>(
        _ values: [T],
        _ concurrencyControl: ConcurrencyControl,
        call: String = #function
    ) throws(LoveseatError) -> Bool where T.ID: DocumentKey {
        while true {
            if try save(try drafts(of: values, concurrencyControl), call: call) { return true }
            if concurrencyControl == .failOnConflict { return false }
        }
    }

    private func drafts<T: Encodable & Identifiable>(
        of values: [T],
        _ concurrencyControl: ConcurrencyControl
    ) throws(LoveseatError) -> [ModelDraft] where T.ID: DocumentKey {
        var drafts: [ModelDraft] = []
        drafts.reserveCapacity(values.count)
        // A value may be based on one before it.
        var earlier: DocumentMap<Document> = [:]
        for value in values {
            var draft = try ModelDraft(value, concurrencyControl) { id throws(LoveseatError) in
                if let before = earlier[ExactText(id)] { return before }
                return try collection.document(id: id)
            }
            guard T.self is any RevisionTracking.Type else {
                drafts.append(draft)
                continue
            }
            if earlier.updateValue(draft.document, forKey: ExactText(draft.document.id)) != nil {
                draft.concurrencyControl = concurrencyControl
            }
            if !draft.isUnchanged { drafts.append(draft) }
        }
        return drafts
    }

    /// Saves drafts in one transaction: all of them, or none; false after a conflict.
    func save(_ drafts: [ModelDraft], call: String = #function) throws(LoveseatError) -> Bool {
        struct Conflict: Error {}
        let validator = DocumentValidator(collection)
        var bodies: [JSONText] = []
        bodies.reserveCapacity(drafts.count)
        for draft in drafts { bodies.append(try validator.body(of: draft.document)) }
        let store = try collection.openStore(call)
        do {
            try store.write(within: collection.database.config.busyTimeout, call: call) { transaction in
                let editor = DocumentEditor(collection, transaction)
                for (draft, body) in zip(drafts, bodies)
                where try editor.save(draft.document, body, draft.concurrencyControl) == nil {
                    throw Conflict()
                }
            }
        } catch is Conflict { return false } catch { throw LoveseatError(storage: error) }
        return true
    }

    /// Changes a document, and again what was saved meanwhile.
    func update(_ id: String, _ change: (inout Document) throws -> Void) throws -> Document {
        while true {
            guard let stored = try collection.document(id: id) else {
                throw LoveseatError.noDocument(id, in: collection)
            }
            var document = stored
            try change(&document)
            if document.hasSameContent(as: stored) { return stored }
            if try collection.save(&document, concurrencyControl: .failOnConflict) { return document }
        }
    }
}

extension Document {
    /// The document that a model was read from, without its content; nil if the model does not remember its revision.
    init?<T: Identifiable>(tracking value: T) where T.ID: DocumentKey {
        guard let base = (value as? any RevisionTracking)?.revisionID else { return nil }
        self.init(id: value.id.documentID)
        revisionID = base
    }
}
