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
    private var waiting: [Waiting] = []
    private var waitingBytes = 0
    /// The documents that are here with other properties.
    private var replacing = ReplacingDocuments()
    private var others: [ExactText: Loveseat.Collection] = [:]
    /// The collections that were created, other than the one of the command.
    private(set) var created: [Loveseat.Collection] = []
    private var blob: (receiver: BlobReceiver, place: String)?
    /// The documents that are saved, those among them included that were here already.
    private(set) var count = 0
    /// The documents that were here already with the same properties.
    private(set) var unchangedCount = 0
    /// The documents that were not saved, because a later one has their ID.
    private var droppedCount = 0
    /// For each collection the last change before the import, and how many documents were saved since.
    private var saved: [Loveseat.Collection: (start: UInt64, count: Int)] = [:]

    private struct Waiting {
        let collection: Loveseat.Collection
        let document: ImportedDocument
        let element: JSONElement
        let place: String
    }

    init(database: Database, collection: Loveseat.Collection, idField: String?) {
        self.database = database
        self.collection = collection
        self.idField = idField
    }

    mutating func add(_ item: DocumentSource.Item) throws {
        let (element, place) = (item.element, item.place)
        guard element.kind == .object else {
            throw LoveseatError(.invalidJSON, "\(place): a document must be a JSON object")
        }
        // Names that begin with _ cannot be properties of a document.
        let hasReserved = element.hasKey(beginningWith: UInt8(ascii: "_"))
        if hasReserved, let digest = element["_blob"] {
            return try addPiece(of: digest.string, element, place)
        }
        try finishBlob()
        var collection = collection
        if hasReserved {
            if let path = element["_collection"] { collection = try self.collection(path.string, place) }
            if element["_documents"]?.int == 0 { return }
            if element["_index"] != nil { return try addIndex(element, in: collection, place) }
            guard element["_rev"] == nil else {
                throw LoveseatError(
                    .invalidJSON,
                    "\(place): a \"_rev\" belongs to replication: import what a CouchDB printed with --from-couchdb, or remove it"
                )
            }
        }
        let document: ImportedDocument
        do { document = try ImportedDocument(id: try id(of: item), element) } catch { throw error.at(place) }
        waiting.append(
            Waiting(collection: collection, document: document, element: element, place: place)
        )
        waitingBytes += element.bytes.count
        if waiting.count == Self.batch || waitingBytes > Self.batchBytes { try save() }
    }

    private func id(of item: DocumentSource.Item) throws(LoveseatError) -> String {
        let element = item.element
        if let idField {
            guard idField == "_id" || element["_id"] == nil else {
                throw LoveseatError(
                    .invalidJSON,
                    "it has an \"_id\" beside \"\(idField)\": names that begin with _ cannot be properties"
                )
            }
            guard let value = Self.text(element[idField]) else {
                throw LoveseatError(.badDocID, Self.lack(of: idField, in: element))
            }
            return value
        }
        let own = element["_id"]
        if let id = item.id {
            guard own == nil || Self.text(own)?.utf8.elementsEqual(id.utf8) == true else {
                throw LoveseatError(.badDocID, "its \"_id\" is another one")
            }
            return id
        }
        return Self.text(own) ?? Self.text(element["id"]) ?? UUID().uuidString.lowercased()
    }

    /// The documents that are saved, or wait for the end.
    var readCount: Int { count + replacing.count }

    /// Saves what waits. `progress` is called from time to time.
    mutating func finish(_ progress: () -> Void) throws {
        try finishBlob()
        try save()
        try saveReplacing(progress)
    }

    /// Saves the documents that replace others.
    mutating func saveReplacing(_ progress: () -> Void = {}) throws {
        let all = replacing
        replacing = ReplacingDocuments()
        waiting = []
        waitingBytes = 0
        try all.forEach { id, collection, text, place in
            let limits = JSONLimits(maximumDepth: .max, maximumBytes: .max)
            let element = try JSONElement(parsing: text, limits: limits)
            let document = try ImportedDocument(id: id, element)
            waiting.append(
                Waiting(collection: collection, document: document, element: element, place: place)
            )
            waitingBytes += text.count
            if waiting.count == Self.batch || waitingBytes > Self.batchBytes {
                try save(replaces: true)
                progress()
            }
        }
        try save(replaces: true)
    }

    private mutating func collection(_ path: String?, _ place: String) throws -> Loveseat.Collection {
        guard let path else { return collection }
        if let known = others[ExactText(path)] { return known }
        do {
            let name = try path.collectionName
            let made: Loveseat.Collection
            if let transaction {
                // If the import fails, the transaction undoes it.
                made = try transaction.createCollection(name: name.name, scope: name.scope)
            } else {
                let isThere = try database.collection(name: name.name, scope: name.scope) != nil
                made = try database.createCollection(name: name.name, scope: name.scope)
                if !isThere { created.append(made) }
            }
            others[ExactText(path)] = made
            return made
        } catch let error as LoveseatError { throw error.at(place) }
    }

    /// Saves the documents that wait. `replaces`: also those that are here with other properties, which otherwise wait for the end.
    private mutating func save(replaces: Bool = false) throws {
        let batch = waiting
        (waiting, waitingBytes) = ([], 0)
        typealias Saved = (outcomes: [ImportOutcome], starts: [Loveseat.Collection: UInt64])
        func save(in transaction: WriteTransaction) throws -> Saved {
            var saved: Saved = ([], [:])
            saved.outcomes.reserveCapacity(batch.count)
            for item in batch {
                do throws(LoveseatError) {
                    let start = try transaction.newestSequence(of: item.collection)
                    let outcome = try transaction.save(
                        imported: item.document,
                        in: item.collection,
                        replaces: replaces
                    )
                    saved.outcomes.append(outcome)
                    if outcome == .saved, saved.starts[item.collection] == nil {
                        saved.starts[item.collection] = start
                    }
                } catch { throw error.at(item.place) }
            }
            return saved
        }
        let new = try transaction.map(save) ?? database.write(save)
        for (item, outcome) in zip(batch, new.outcomes) {
            let (id, collection) = (item.document.id, item.collection)
            let isDropped: Bool
            switch outcome {
            case .differs:
                isDropped = try replacing.add(id, in: collection, item.element.bytes, item.place)
                count -= 1
            case .unchanged:
                isDropped = replacing.remove(id, in: collection)
                unchangedCount += 1
            case .saved:
                isDropped = replacing.remove(id, in: collection)
                saved[collection, default: (new.starts[collection] ?? 0, 0)].count += 1
            }
            count += isDropped ? 2 : 1
            droppedCount += isDropped ? 1 : 0
        }
        if replacing.count >= ReplacingDocuments.maximumCount { try saveReplacing() }
    }

    /// The saved documents that a later one with the same ID replaced. Nobody else may have saved any meanwhile.
    func replacedCount() throws -> Int {
        try saved.reduce(droppedCount) {
            try $0 + $1.value.count - CollectionHistory($1.key).changeCount(after: $1.value.start)
        }
    }

    /// Creates an index, or says that it cannot be created.
    private mutating func addIndex(
        _ element: JSONElement,
        in collection: Loveseat.Collection,
        _ place: String
    )
        throws
    {
        try save()
        func create(in transaction: WriteTransaction) throws {
            do throws(LoveseatError) { try transaction.createIndex(imported: element, in: collection) } catch
            {
                guard error.code == .invalidQuery || error.code == .invalidParameter else {
                    throw error.at(place)
                }
                Output.remark("loveseat: \(place): the index is not created: \(error.message)")
            }
        }
        if let transaction { try create(in: transaction) } else { try database.write(create) }
    }

    /// Says that a document has no ID in a property, and what it has instead.
    private static func lack(of idField: String, in element: JSONElement) -> String {
        if let value = element[idField] {
            return "its \"\(idField)\" is \(value.kind.name), and not a text or a whole number"
        }
        let names = element.members.prefix(8).map { JSONValue.string($0.key).description }
        let rest = element.count - names.count
        let others = names.isEmpty ? "no properties" : names.joined(separator: ", ")
        return
            "it has no property \"\(idField)\", which is to be its ID: it has \(others)\(rest > 0 ? " and \(rest) more" : "")"
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
        if blob?.receiver.digest != digest {
            try finishBlob()
            blob = (try database.blobs.receive(digest), place)
        }
        try blob?.receiver.write(content)
    }

    private mutating func finishBlob() throws {
        // Most lines are documents.
        guard let (receiver, place) = blob else { return }
        blob = nil
        do throws(LoveseatError) { try receiver.finish() } catch { throw error.at(place) }
    }
}

extension LoveseatError {
    /// The error with the place in a file at which it occurred.
    fileprivate func at(_ place: String) -> LoveseatError {
        LoveseatError(ofInput.code, "\(place): \(message)")
    }
}

extension JSONElement.Kind {
    /// A value of the kind, in a sentence.
    fileprivate var name: String {
        switch self {
        case .null: "null"
        case .boolean: "true or false"
        case .number: "a number with a fraction, or one that is too large"
        case .string: "a text"
        case .array: "an array"
        case .object: "an object"
        }
    }
}
