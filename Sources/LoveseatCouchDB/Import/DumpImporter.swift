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
    /// The reader of the dump, which depends on the dump's first byte.
    private enum Reader {
        case json(DumpScanner)
        case parts(MIMEDump)
    }

    private var reader: Reader?
    /// The bytes of a byte order mark that may still follow.
    private var mark: ArraySlice<UInt8> = [0xEF, 0xBB, 0xBF]
    /// Where a document is in the dump: which one it is, and the line in which it begins, both from 1. Dumps of parts have no lines.
    private struct Place {
        let number: Int
        var line: Int?
        var text: String { (line.map { "line \($0), " } ?? "") + "document \(number)" }
    }

    private var waiting: [(place: Place, revision: FetchedRevision)] = []
    private var waitingBytes = 0
    /// How many lines were read before the dump begins.
    private var blankLines = 0
    private var number = 0
    /// The number of saved documents, deleted ones included.
    package private(set) var count = 0
    /// The number of those whose revisions were there already.
    package private(set) var unchangedCount = 0
    /// The rows of documents that were asked for by their IDs, and did not exist.
    package private(set) var absentCount = 0

    /// `name`: the dump's name in messages.
    ///
    /// - Throws: `notOpen` if the database is closed.
    package init(collection: Collection, name: String) throws {
        self.collection = collection
        self.name = name
        store = try collection.database.store
        maximumDocumentBytes = collection.database.config.maximumDocumentBytes
    }

    /// Reads the next bytes of the dump, and saves documents.
    ///
    /// - Throws: `LoveseatError` for what is not a dump, and for a document that cannot be saved. Documents of earlier transactions stay.
    package mutating func receive(_ bytes: [UInt8]) throws {
        let bytes = reader == nil ? withoutMark(bytes) : bytes
        let reader = try reader ?? begin(bytes)
        self.reader = nil
        switch reader {
        case .json(var scanner):
            var entries: [(entry: DumpEntry, line: Int)] = []
            do { try scanner.receive(bytes) { entries.append(($0, $1)) } } catch let error as LoveseatError {
                throw LoveseatError(
                    error.code,
                    "\(name), line \(scanner.line), after document \(number + entries.count): \(error.message)"
                )
            }
            self.reader = .json(scanner)
            for (entry, line) in entries { try add(entry, Place(number: number + 1, line: line)) }
        case .parts(var dump):
            try receive(bytes, &dump)
            self.reader = .parts(dump)
        case nil: blankLines += bytes.count { $0 == UInt8(ascii: "\n") }
        }
    }

    /// Bytes without a byte order mark, which some editors and shells put before the dump.
    private mutating func withoutMark(_ bytes: [UInt8]) -> [UInt8] {
        var index = 0
        while index < bytes.count, bytes[index] == mark.first {
            mark.removeFirst()
            index += 1
        }
        if index < bytes.count { mark = [] }
        return Array(bytes[index...])
    }

    /// Returns a reader for a dump that begins with these bytes; nil if they are blanks.
    ///
    /// - Throws: `invalidJSON` for another encoding than UTF-8.
    private func begin(_ bytes: [UInt8]) throws(LoveseatError) -> Reader? {
        guard let first = bytes.first(where: { ![9, 10, 13, 32].contains($0) }) else { return nil }
        guard first < 0xFE else {
            throw LoveseatError(.invalidJSON, "\(name) is UTF-16 or UTF-32: convert it to UTF-8")
        }
        guard first < 0x80, Character(Unicode.Scalar(first)).isLetter else {
            return .json(DumpScanner(line: blankLines + 1))
        }
        return .parts(MIMEDump(blobs: store.blobs, maximumDocument: maximumDocumentBytes))
    }

    private mutating func receive(_ bytes: [UInt8], _ dump: inout MIMEDump) throws {
        var found: [FetchedRevision] = []
        let result = Result { try dump.receive(bytes) { found.append($0) } }
        for revision in found { try add(revision, Place(number: number + 1)) }
        if case .failure(let error) = result { throw located(error, Place(number: number + 1)) }
    }

    /// Saves the remaining documents.
    ///
    /// - Throws: as ``receive(_:)``.
    package mutating func finish() throws {
        switch reader ?? .json(DumpScanner()) {
        case .json(let scanner):
            do { try scanner.finish() } catch {
                throw LoveseatError(error.code, "\(name), line \(scanner.line): \(error.message)")
            }
        case .parts(let dump):
            do { try dump.finish() } catch { throw located(error, Place(number: number + 1)) }
        }
        try save()
    }

    private mutating func add(_ entry: DumpEntry, _ place: Place) throws {
        let pins = BlobPins(store.blobs)
        do {
            guard let element = try Self.document(entry) else {
                number += 1
                absentCount += 1
                return
            }
            let incoming = try IncomingDocument(element)
            let id = incoming.id ?? CouchDBServer.newUUID()
            let document = try DocumentSaving.prepare(incoming, id: id, pins: pins)
            try add(FetchedRevision(document: document, blobs: pins), place)
        } catch let error as CouchDBError { throw located(error, place) }
    }

    private mutating func add(_ revision: FetchedRevision, _ place: Place) throws {
        number += 1
        let (id, body) = (revision.document.id, revision.document.body)
        do {
            try IncomingDocument.check(id)
            guard !id.beginsExactly(with: "_local/") else {
                throw CouchDBError.badRequest("local documents are not imported")
            }
            guard body.bytes.count <= maximumDocumentBytes else { throw CouchDBError.tooLarge(id) }
        } catch { throw located(error, place) }
        waiting.append((place, revision))
        waitingBytes += body.bytes.count
        if waiting.count == Self.batch || waitingBytes > Self.batchBytes { try save() }
    }

    /// The document of an entry; nil for a row of a document that does not exist.
    private static func document(_ entry: DumpEntry) throws -> JSONElement? {
        switch entry {
        case .document(let bytes): return try parse(bytes, depth: 0)
        case .row(let bytes):
            let row = try parse(bytes, depth: 1)
            if let error = row["error"] {
                guard error.string == "not_found" else {
                    let id = (row["id"] ?? row["key"]).map { JSONText(canonical: $0).description } ?? ""
                    throw CouchDBError.badRequest(
                        "the CouchDB could not read \(id): \(JSONText(canonical: error))"
                    )
                }
                return nil
            }
            guard let document = row["doc"] else {
                throw CouchDBError.badRequest("the row has no document: dump with include_docs=true")
            }
            guard document.isNull else { return document }
            guard row["value"]?["deleted"]?.bool == true, let id = row["id"]?.string,
                let revision = row["value"]?["rev"]?.string
            else { throw CouchDBError.badRequest("the row says neither a document nor that it is deleted") }
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
        do throws(JSONError) { return try JSONElement(scanning: bytes, limits: limits) } catch {
            throw .badRequest("\(error)")
        }
    }

    private mutating func save() throws {
        let batch = waiting
        (waiting, waitingBytes) = ([], 0)
        defer { withExtendedLifetime(batch) {} }
        unchangedCount += try store.write { transaction in
            let documents = batch.map(\.1.document)
            let start = transaction.newestSequence(collection.handle)
            let results =
                documents.contains(where: \.history.isEmpty)
                ? documents.map { document in
                    Result {
                        try DocumentSaving.save(
                            document,
                            isNewEdit: document.history.isEmpty,
                            in: collection.handle,
                            transaction
                        )
                    }
                } : try DocumentSaving.saveReplicated(documents, in: collection.handle, transaction)
            for ((place, _), result) in zip(batch, results) {
                do { _ = try result.get() } catch { throw located(error, place) }
            }
            // A document that changes gets a new sequence, once for all of its revisions.
            let changed = transaction.newestSequence(collection.handle) - start
            return max(0, Set(documents.map { ExactText($0.id) }).count - Int(clamping: changed))
        }
        count += batch.count
    }

    private func located(_ error: any Error, _ place: Place) -> LoveseatError {
        if let error = error as? LoveseatError {
            return LoveseatError(error.code, "\(name), \(place.text): \(error.message)")
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
        return LoveseatError(code, "\(name), \(place.text): \(reason)\(advice)")
    }
}
