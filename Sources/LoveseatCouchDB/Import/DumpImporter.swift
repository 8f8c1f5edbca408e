package import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// Saves the documents of a dump of a CouchDB database, a thousand in a transaction.
///
/// A document with a revision is inserted as a replication would insert it: with that revision, and beside other branches. A document
/// without one is an edit. The content of attachments is written to the disk before its document is saved.
package struct DumpImporter {
    private static let batch = 1_000
    /// The documents that wait for their transaction, together, in bytes.
    private static let batchBytes = 16 << 20

    private let collection: Collection
    private let store: DocumentStore
    private let name: String
    private let maximumDocumentBytes: Int
    private var scanner: DumpScanner
    private var pins: BlobPins
    private var waiting: [(number: Int, document: PreparedDocument)] = []
    private var waitingBytes = 0
    private var number = 0
    /// The number of saved documents, deleted ones included.
    package private(set) var count = 0

    /// `name`: the dump's name in messages.
    ///
    /// - Throws: `notOpen` if the database is closed.
    package init(collection: Collection, name: String) throws {
        self.collection = collection
        self.name = name
        store = try collection.database.store
        maximumDocumentBytes = collection.database.config.maximumDocumentBytes
        pins = BlobPins(store.blobs)
        scanner = DumpScanner()
    }

    /// Reads the next bytes of the dump, and saves documents.
    ///
    /// - Throws: `LoveseatError` for what is not a dump, and for a document that cannot be saved. Documents of earlier transactions stay.
    package mutating func receive(_ bytes: [UInt8]) throws {
        var entries: [DumpEntry] = []
        do { try scanner.receive(bytes) { entries.append($0) } } catch let error as LoveseatError {
            throw LoveseatError(
                error.code,
                "\(name), after document \(number + entries.count): \(error.message)"
            )
        }
        for entry in entries { try add(entry) }
    }

    /// Saves the remaining documents.
    ///
    /// - Throws: as ``receive(_:)``.
    package mutating func finish() throws {
        do { try scanner.finish() } catch { throw LoveseatError(error.code, "\(name): \(error.message)") }
        try save()
    }

    private mutating func add(_ entry: DumpEntry) throws {
        number += 1
        do {
            guard let element = try Self.document(entry) else { return }
            let incoming = try IncomingDocument(element)
            let id = incoming.id ?? CouchDBServer.newUUID()
            try IncomingDocument.check(id)
            guard !id.hasPrefix("_local/") else {
                throw CouchDBError.badRequest("local documents are not imported")
            }
            guard incoming.body.bytes.count <= maximumDocumentBytes else { throw CouchDBError.tooLarge(id) }
            waiting.append((number, try DocumentSaving.prepare(incoming, id: id, pins: pins)))
            waitingBytes += incoming.body.bytes.count
        } catch { throw located(error, number) }
        if waiting.count == Self.batch || waitingBytes > Self.batchBytes { try save() }
    }

    /// The document of an entry; nil for a row without one.
    private static func document(_ entry: DumpEntry) throws -> JSONElement? {
        switch entry {
        case .document(let bytes): return try parse(bytes, depth: 0)
        case .row(let bytes):
            let row = try parse(bytes, depth: 1)
            // A key that was asked for and does not exist.
            if row["error"] != nil { return nil }
            guard let document = row["doc"] else {
                throw CouchDBError.badRequest("the row has no document: dump with include_docs=true")
            }
            guard document.isNull else { return document }
            guard row["value"]?["deleted"]?.bool == true, let id = row["id"]?.string,
                let revision = row["value"]?["rev"]?.string
            else { return nil }
            let tombstone: JSONValue = ["_id": .string(id), "_rev": .string(revision), "_deleted": true]
            return JSONElement(JSONText(canonical: tombstone))
        }
    }

    /// `depth`: the levels around the document.
    private static func parse(_ bytes: [UInt8], depth: Int) throws(CouchDBError) -> JSONElement {
        let limits = JSONLimits(
            maximumDepth: JSONLimits.standard.maximumDepth + depth,
            maximumBytes: DumpScanner.standardMaximumEntry
        )
        do throws(JSONError) { return try JSONElement(parsing: bytes, limits: limits) } catch {
            throw .badRequest("\(error)")
        }
    }

    private mutating func save() throws {
        let batch = waiting
        let kept = pins
        (waiting, waitingBytes, pins) = ([], 0, BlobPins(store.blobs))
        defer { withExtendedLifetime(kept) {} }
        try store.write { transaction in
            for (number, document) in batch {
                do {
                    _ = try DocumentSaving.save(
                        document,
                        isNewEdit: document.history.isEmpty,
                        in: collection.handle,
                        transaction
                    )
                } catch { throw located(error, number) }
            }
        }
        count += batch.count
    }

    private func located(_ error: any Error, _ number: Int) -> LoveseatError {
        if let error = error as? LoveseatError {
            return LoveseatError(error.code, "\(name), document \(number): \(error.message)")
        }
        let answer = CouchDBServer.error(error)
        let advice = answer.error == "missing_stub" ? ": dump with attachments=true" : ""
        let code: LoveseatError.Code =
            switch answer.status {
            case 409: .conflict
            case 413: .invalidParameter
            default: .invalidJSON
            }
        let reason =
            answer.status == 413 ? "the document is larger than \(maximumDocumentBytes) bytes" : answer.reason
        return LoveseatError(code, "\(name), document \(number): \(reason)\(advice)")
    }
}
