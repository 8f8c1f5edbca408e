package import LoveseatCore
package import LoveseatModel

/// A change that somebody makes in the inspector.
package struct InspectorEdit: Sendable {
    package enum Change: Sendable {
        /// Saves a document, unless it has another revision by now. `base`: nil for a new one.
        case save(base: RevisionID?, body: JSONText)
        /// Ends a conflict, perhaps with an edit of the revision that is kept.
        case keep(RevisionID, edit: JSONText?)
    }

    package let collection: CollectionName
    package let document: String
    package let change: Change

    package init(collection: CollectionName, document: String, change: Change) {
        (self.collection, self.document, self.change) = (collection, document, change)
    }

    /// From the JSON that a page or another process sends.
    ///
    /// - Throws: `LoveseatError`: `invalidParameter` or `badRevisionID`.
    package init(_ json: JSONElement) throws(LoveseatError) {
        guard let name = json["collection"]?.string.flatMap({ CollectionName(path: $0) }),
            let document = json["id"]?.string
        else { throw LoveseatError(.invalidParameter, "an edit needs a collection and an id") }
        let body = try json["body"].map { body throws(LoveseatError) in
            guard body.kind == .object else {
                throw LoveseatError(.invalidJSON, "a document must be a JSON object")
            }
            return JSONText(trusted: Array(body.bytes))
        }
        collection = name
        self.document = document
        if let kept = json["keep"]?.string {
            change = .keep(try Self.revision(kept), edit: body)
        } else if let body {
            change = .save(base: try json["revision"]?.string.map(Self.revision), body: body)
        } else {
            throw LoveseatError(.invalidParameter, "an edit needs a body, or the revision to keep")
        }
    }

    private static func revision(_ text: String) throws(LoveseatError) -> RevisionID {
        guard let revision = RevisionID(text) else {
            throw LoveseatError(.badRevisionID, "\"\(text)\" is not a revision ID")
        }
        return revision
    }

    /// The JSON that ``init(_:)`` reads.
    package var json: JSONValue {
        var json: JSONObject = ["collection": .string(collection.fullName), "id": .string(document)]
        switch change {
        case .save(let base, let body):
            json["revision"] = base.map { .string($0.text) }
            json["body"] = JSONElement(body).value
        case .keep(let revision, let edit):
            json["keep"] = .string(revision.text)
            json["body"] = edit.map { JSONElement($0).value }
        }
        return .object(json)
    }

    /// Changes a database that is open for writing. This blocks the thread.
    package func perform(on database: Database) throws -> RevisionID {
        guard let collection = try database.collection(name: collection.name, scope: collection.scope) else {
            throw LoveseatError(.notFound, "there is no collection \(collection.fullName)")
        }
        switch change {
        case .keep(let leaf, let edit):
            return try CollectionConflicts(collection).resolve(document, keeping: leaf, edit: edit)
        case .save(let base, let body):
            var edited = try Document(id: document, json: body.bytes)
            edited.revisionID = base
            guard try collection.save(&edited, concurrencyControl: .failOnConflict),
                let saved = edited.revisionID
            else {
                throw LoveseatError(
                    .conflict,
                    "\"\(document)\" was changed meanwhile: look at the new revision, and edit it again"
                )
            }
            return saved
        }
    }
}
