import Foundation
import LoveseatModel
import LoveseatStorage

extension SaveCondition {
    init(_ concurrencyControl: ConcurrencyControl, of document: Document) {
        self = concurrencyControl == .lastWriteWins ? .lastWriteWins : .unchanged(since: document.revisionID)
    }
}

extension Document {
    /// A document that belongs to no collection, as filters and resolvers see it.
    init(_ record: DocumentRecord) {
        self.init(id: record.id, revisionID: record.revision, sequence: record.sequence, body: record.body)
    }

    /// A document of a collection.
    ///
    /// - Throws: `corruptData` if the stored content is damaged: an empty document that is saved would replace what is left of it.
    init(_ record: DocumentRecord, in collection: Collection) throws(LoveseatError) {
        self.init(
            id: record.id,
            revisionID: record.revision,
            sequence: record.sequence,
            body: record.body,
            indexed: try record.element()
        )
        origin = collection.origin
    }

    mutating func apply(_ saved: (revision: RevisionID, sequence: UInt64), in collection: Collection) {
        revisionID = saved.revision
        sequence = saved.sequence
        origin = collection.origin
    }
}

extension Date {
    /// Creates a date from milliseconds since 1970.
    init(expirationTime: Int64) { self.init(timeIntervalSince1970: Double(expirationTime) / 1_000) }

    /// The date in milliseconds since 1970.
    var expirationTime: Int64 { Int64(min(max(timeIntervalSince1970 * 1_000, 0), 1e15)) }
}

/// The parts that one-document calls and transactions share.
extension Collection {
    /// Deletes a document; false if it was changed since it was read.
    func delete(
        _ document: Document,
        _ concurrencyControl: ConcurrencyControl,
        _ transaction: StoreWriteTransaction
    ) throws -> Bool {
        guard document.revisionID != nil, let record = try transaction.record(document.id, in: handle) else {
            throw notFound(document.id)
        }
        // Deleting a deleted document succeeds.
        if record.isDeleted { return true }
        return try transaction.save(
            document.id,
            in: handle,
            body: .emptyObject,
            isDeleted: true,
            condition: SaveCondition(concurrencyControl, of: document)
        ) != nil
    }

    /// The origin of this collection's documents.
    var origin: DocumentOrigin {
        DocumentOrigin(database: database.instance, collection: handle.number)
    }

    func requireOwn(_ document: Document) throws(LoveseatError) {
        guard document.origin == nil || document.origin == origin else {
            throw LoveseatError(
                .invalidParameter,
                "document \"\(document.id)\" belongs to another collection or database: save a new document with its properties"
            )
        }
    }

    func notFound(_ id: String) -> LoveseatError {
        LoveseatError(.notFound, "there is no document \"\(id)\" in collection \(fullName)")
    }

    static func check(_ id: String) throws(LoveseatError) {
        guard DocumentID.isValid(id) else {
            throw LoveseatError(
                .badDocID,
                "\"\(id)\" is not a valid document ID: use 1 to 240 bytes, no _ in front, no control characters"
            )
        }
    }

    /// The canonical body of a document that may be saved here, which peers, `check` and `import` all accept.
    func checkedBody(of document: Document) throws(LoveseatError) -> JSONText {
        try Self.check(document.id)
        try requireOwn(document)
        let body = try Self.checkedJSON(of: document)
        try checkContent(body, of: document.id)
        return body
    }

    /// Checks canonical text by the rules of `save`.
    func check(_ body: JSONText, of id: String) throws(LoveseatError) {
        try Self.check(id)
        try Self.checkNames(in: body, of: id)
        try checkContent(body, of: id)
    }

    /// Checks canonical text by these rules, except those for blobs.
    func checkNamesAndSize(of body: JSONText, _ id: String) throws(LoveseatError) {
        try Self.check(id)
        try Self.checkNames(in: body, of: id)
        try checkSize(of: body, id)
    }

    private func checkSize(of body: JSONText, _ id: String) throws(LoveseatError) {
        let limit = database.config.maximumDocumentBytes
        guard body.bytes.count <= limit else {
            throw LoveseatError(
                .invalidParameter,
                "document \"\(id)\" has \(body.bytes.count) bytes, at most \(limit) are allowed: keep large content in blobs"
            )
        }
    }

    private func checkContent(_ body: JSONText, of id: String) throws(LoveseatError) {
        try checkSize(of: body, id)
        let references = BlobReference.all(in: body)
        if references.isEmpty { return }
        let files = try database.store.blobs
        if let missing = references.first(where: { !files.contains($0.digest) }) {
            throw LoveseatError(
                .unexpectedError,
                "document \"\(id)\" refers to blob \(missing.digest), which is not in database \"\(database.name)\": save the blob there first"
            )
        }
    }

    /// The canonical body of a document, whatever collection it is for.
    static func checkedJSON(of document: Document) throws(LoveseatError) -> JSONText {
        let body: JSONText
        do throws(JSONError) { body = try document.canonicalBody() } catch {
            throw cannotHold(document.id, error)
        }
        try checkNames(in: body, of: document.id)
        return body
    }

    static func cannotHold(_ id: String, _ error: JSONError) -> LoveseatError {
        LoveseatError(
            .encodingError,
            "document \"\(id)\" has a value that JSON cannot hold: \(error.reason.rawValue)"
        )
    }

    /// Top-level names that begin with `_` belong to the protocol: every peer removes them.
    private static func checkNames(in body: JSONText, of id: String) throws(LoveseatError) {
        if !body.bytes.containsString(beginningWith: "_") { return }
        for (key, _) in JSONElement(body).members
        where key.utf8.first == UInt8(ascii: "_") && key != "_attachments" {
            throw LoveseatError(
                .invalidParameter,
                "document \"\(id)\" has a property \"\(key)\": names that begin with _ belong to replication"
            )
        }
    }
}
