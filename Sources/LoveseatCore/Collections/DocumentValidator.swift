import LoveseatModel
import LoveseatStorage

/// The rules that documents of a collection meet when they are saved, which peers, `check` and `import` all accept.
struct DocumentValidator {
    private let collection: Collection

    init(_ collection: Collection) { self.collection = collection }

    /// The canonical body of a document that may be saved here.
    func body(of document: Document) throws(LoveseatError) -> JSONText {
        try Self.check(document.id)
        try requireOwn(document)
        let body = try Self.canonicalBody(of: document)
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

    func requireOwn(_ document: Document) throws(LoveseatError) {
        guard document.origin == nil || document.origin == DocumentOrigin(collection) else {
            throw LoveseatError(
                .invalidParameter,
                "document \"\(document.id)\" belongs to another collection or database: save a new document with its properties"
            )
        }
    }

    private func checkSize(of body: JSONText, _ id: String) throws(LoveseatError) {
        let limit = collection.database.config.maximumDocumentBytes
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
        let database = collection.database
        let files = try database.store.blobs
        if let missing = references.first(where: { !files.contains($0.digest) }) {
            throw LoveseatError(
                .unexpectedError,
                "document \"\(id)\" refers to blob \(missing.digest), which is not in database \"\(database.name)\": save the blob there first"
            )
        }
    }

    // MARK: Whatever the collection

    /// The canonical body of a document.
    static func canonicalBody(of document: Document) throws(LoveseatError) -> JSONText {
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

    private static func check(_ id: String) throws(LoveseatError) {
        guard DocumentID.isValid(id) else {
            throw LoveseatError(
                .badDocID,
                "\"\(id)\" is not a valid document ID: use 1 to 240 bytes, no _ in front, no control characters"
            )
        }
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
