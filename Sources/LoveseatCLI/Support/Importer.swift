import Foundation
import Loveseat

/// Saves documents, a thousand in a transaction.
struct Importer {
    private static let batch = 1_000
    /// The documents that wait for their transaction, together, in bytes.
    private static let batchBytes = 16 << 20

    let database: Database
    let collection: Loveseat.Collection
    let idField: String?
    /// The transaction that all documents are saved in; nil for one for each thousand.
    var transaction: WriteTransaction?
    private var waiting: [(collection: Loveseat.Collection, document: Document, place: String)] = []
    private var waitingBytes = 0
    private var others: [ExactText: Loveseat.Collection] = [:]
    private var blob: BlobReceiver?
    /// The documents that are saved.
    private(set) var count = 0

    init(database: Database, collection: Loveseat.Collection, idField: String?) {
        self.database = database
        self.collection = collection
        self.idField = idField
    }

    mutating func add(_ element: JSONElement, at place: String) throws {
        guard element.kind == .object else {
            throw LoveseatError(.invalidJSON, "\(place): a document must be a JSON object")
        }
        if let digest = element["_blob"] { return try addPiece(of: digest.string, element, place) }
        try finishBlob()
        let id: String
        if let idField {
            guard let value = Self.text(element[idField]) else {
                throw LoveseatError(.badDocID, "\(place): \"\(idField)\" is neither a text nor a number")
            }
            id = value
        } else {
            id = Self.text(element["_id"]) ?? Self.text(element["id"]) ?? UUID().uuidString.lowercased()
        }
        var document = try Document(id: id, element: element)
        // Names that begin with _ cannot be properties of a document. Setting decodes all of it.
        if idField == nil || idField == "_id", element["_id"] != nil { document["_id"] = nil }
        let path = element["_collection"]
        if path != nil { document["_collection"] = nil }
        waiting.append((try collection(path?.string), document, place))
        waitingBytes += element.bytes.count
        if waiting.count == Self.batch || waitingBytes > Self.batchBytes { try save() }
    }

    mutating func finish() throws {
        try finishBlob()
        try save()
    }

    private mutating func collection(_ path: String?) throws -> Loveseat.Collection {
        guard let path else { return collection }
        if let known = others[ExactText(path)] { return known }
        let name = try path.collectionName
        let made =
            try transaction?.createCollection(name: name.name, scope: name.scope)
            ?? database.createCollection(name: name.name, scope: name.scope)
        others[ExactText(path)] = made
        return made
    }

    private mutating func save() throws {
        let batch = waiting
        (waiting, waitingBytes) = ([], 0)
        func save(in transaction: WriteTransaction) throws {
            for (collection, document, place) in batch {
                do { try transaction.save(document, in: collection) } catch {
                    throw LoveseatError(error.code, "\(place): \(error.message)")
                }
            }
        }
        if let transaction { try save(in: transaction) } else { try database.write(save) }
        count += batch.count
    }

    private static func text(_ value: JSONElement?) -> String? {
        value?.string ?? value?.int.map(String.init)
    }

    // MARK: Blobs

    /// Lines of one blob follow each other: `{"_blob":"sha1-…","content":"…"}`.
    private mutating func addPiece(of digest: String?, _ element: JSONElement, _ place: String) throws {
        guard let digest = digest.flatMap({ BlobDigest($0) }),
            let content = element["content"]?.string.flatMap({ Data(base64Encoded: $0) })
        else {
            throw LoveseatError(
                .invalidJSON,
                "\(place): a line with a \"_blob\" needs its digest, and its \"content\" in Base64"
            )
        }
        if blob?.digest != digest {
            try finishBlob()
            blob = try database.receiveBlob(digest)
        }
        try blob?.write(content)
    }

    private mutating func finishBlob() throws {
        try blob?.finish()
        blob = nil
    }
}
