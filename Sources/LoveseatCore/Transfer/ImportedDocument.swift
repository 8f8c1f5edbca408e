private import Foundation
package import LoveseatModel
import LoveseatStorage

/// A document as `import` reads it: a person's JSON, or a line of an export.
package struct ImportedDocument: Sendable {
    /// The members that are not properties. None of them can be the name of a property that a peer sends.
    private static let members: [StaticString] = ["_id", "_collection", "_expires", "_peer", "_revision"]

    package let id: String
    private let body: JSONText
    /// When it expires, in milliseconds since 1970.
    private var expires: Int64?
    /// Whether it has an ID, name or size that `save` refuses, because a peer gave it that.
    private var isOnlyOfPeers = false
    private var revisions: ArchivedRevisions?

    /// - Throws: `encodingError` for a value that JSON cannot hold; `invalidJSON` for a member that an export does not write so.
    package init(id: String, _ element: JSONElement) throws(LoveseatError) {
        self.id = id
        guard element.hasKey(beginningWith: UInt8(ascii: "_")) else {
            do throws(JSONError) { body = try JSONText(validating: element) } catch {
                throw DocumentValidator.cannotHold(id, error)
            }
            return
        }
        if let time = element["_expires"] {
            guard let number = time.int else { throw Self.invalid("_expires", id) }
            expires = Int64(number)
        }
        if let mark = element["_peer"] {
            guard let mark = mark.bool else { throw Self.invalid("_peer", id) }
            isOnlyOfPeers = mark
        }
        if let archived = element["_revision"] {
            let tree = archived["tree"]?.string.map { Data(base64Encoded: $0).map { Array($0) } }
            guard let revision = archived["id"]?.string.flatMap({ RevisionID($0) }), tree != .some(nil) else {
                throw Self.invalid("_revision", id)
            }
            revisions = ArchivedRevisions(
                revision: revision,
                isDeleted: archived["deleted"]?.bool ?? false,
                encodedTree: tree ?? nil
            )
            if let text = archived["text"]?.string {
                guard let text = try? JSONText(text, limits: JSONLimits(maximumBytes: .max)) else {
                    throw Self.invalid("_revision", id)
                }
                body = text
                return
            }
        }
        if isOnlyOfPeers || revisions != nil {
            body = JSONText(canonical: element, without: Self.members)
            return
        }
        do throws(JSONError) { body = try JSONText(validating: element, without: Self.members) } catch {
            throw DocumentValidator.cannotHold(id, error)
        }
    }

    private static func invalid(_ member: String, _ id: String) -> LoveseatError {
        LoveseatError(.invalidJSON, "document \"\(id)\" has a \"\(member)\" that `export` does not write")
    }

    fileprivate func save(in collection: Collection, replaces: Bool, _ transaction: WriteTransaction)
        throws(LoveseatError) -> ImportOutcome
    {
        if !isOnlyOfPeers, revisions == nil { try DocumentValidator(collection).check(body, of: id) }
        let outcome = try transaction.write { edit -> ImportOutcome in
            if let revisions {
                let isChanged = try edit.restore(revisions, of: id, body: body, in: collection.handle)
                return isChanged ? .saved : .unchanged
            }
            let last = edit.newestSequence(collection.handle)
            func save(_ condition: SaveCondition) throws -> ImportOutcome? {
                try edit.save(
                    id,
                    in: collection.handle,
                    body: body,
                    isDeleted: false,
                    condition: condition,
                    keepsUnchanged: true
                ).map { $0.sequence > last ? .saved : .unchanged }
            }
            if !replaces {
                if let outcome = try save(.unchanged(since: nil)) { return outcome }
                // A compaction may remove blobs that no document refers to.
                if BlobReference.all(in: body).isEmpty { return .differs }
            }
            return try save(.lastWriteWins) ?? .unchanged
        }
        if outcome != .differs, let expires {
            try transaction.setExpiration(of: id, in: collection, at: expires)
        }
        return outcome
    }
}

/// The outcome for an imported document.
package enum ImportOutcome: Hashable, Sendable {
    case saved
    /// The document is here with the same properties.
    case unchanged
    /// The document is here with other properties, and was not saved.
    case differs
}

extension WriteTransaction {
    /// The sequence of the last change of a collection.
    package func newestSequence(of collection: Collection) throws(LoveseatError) -> UInt64 {
        try write { $0.newestSequence(collection.handle) }
    }

    /// Saves an imported document, unless it is here with the same properties. `replaces`: whether to save it if it is here with other
    /// properties.
    ///
    /// - Throws: As ``save(_:in:concurrencyControl:)-6vn8v``.
    package func save(imported document: ImportedDocument, in collection: Collection, replaces: Bool)
        throws(LoveseatError) -> ImportOutcome
    {
        try require(collection)
        return try document.save(in: collection, replaces: replaces, self)
    }

    /// Creates an index of an export.
    ///
    /// - Throws: `invalidJSON` for a definition that `export` does not write; as ``Collection/createIndex(_:withName:)``.
    package func createIndex(imported element: JSONElement, in collection: Collection) throws(LoveseatError) {
        try require(collection)
        guard let name = element["_index"]?.string, let configuration = Self.configuration(element) else {
            throw LoveseatError(
                .invalidJSON,
                "a line with an \"_index\" has no definition that `export` writes"
            )
        }
        let specification = try IndexSpecification(configuration, name: name)
        try write { try $0.indexTable.create(name, specification, in: collection.handle) }
    }

    private static func configuration(_ element: JSONElement) -> (any IndexConfiguration)? {
        let expressions = element["expressions"]?.items.map { $0.string ?? "" }
        let condition = element["where"]?.string
        switch (element["kind"]?.string, expressions, element["path"]?.string) {
        case ("value", let expressions?, _):
            return ValueIndexConfiguration(expressions, where: condition)
        // Exports of earlier versions have the other spelling.
        case ("full-text", let expressions?, _), ("fullText", let expressions?, _):
            return FullTextIndexConfiguration(
                expressions,
                where: condition,
                ignoreAccents: element["ignoreAccents"]?.bool ?? false,
                language: element["language"]?.string
            )
        case ("array", let expressions, let path?):
            return ArrayIndexConfiguration(path: path, expressions: expressions)
        default: return nil
        }
    }
}
