private import Foundation
import LoveseatAssertions
import LoveseatModel
import LoveseatStorage

/// Writes the contents of a database as JSON lines, which `import` reads (docs/limits.md, "Export and import").
package struct Exporter {
    private static let page = 500
    private static let pageBytes = 8 << 20
    private static let blobPiece = 192 << 10

    private let database: Database
    /// Whether the content of blobs is written.
    private let writesBlobs: Bool
    /// Whether deleted documents, conflicts and histories are written.
    private let writesRevisions: Bool
    /// Called with each line.
    private let line: ([UInt8]) throws -> Void
    /// The blobs that were looked at, those that are damaged with the reason.
    private var blobs: [BlobDigest: String?] = [:]
    /// The documents that were written.
    package private(set) var documentCount = 0
    /// The documents that refer to blobs which are missing or damaged, each with the reasons.
    package private(set) var incomplete: [(document: String, reasons: [String])] = []
    /// The documents that cannot be read and were left out, each with the reason.
    package private(set) var damaged: [(document: String, reason: String)] = []
    /// The deleted documents that were left out.
    package private(set) var deletedCount = 0
    /// The documents with a conflict of which only the current version was written.
    package private(set) var conflictCount = 0

    package init(
        of database: Database,
        blobs: Bool,
        revisions: Bool,
        line: @escaping ([UInt8]) throws -> Void
    ) {
        (self.database, writesBlobs, writesRevisions, self.line) = (database, blobs, revisions, line)
    }

    /// Writes a collection: its documents in order of their IDs, and then its indexes.
    package mutating func export(_ collection: Collection) throws {
        let isDefault = collection.fullName.isExactly(CollectionName.default.fullName)
        let place = isDefault ? "" : ",\"_collection\":\(JSONValue.string(collection.fullName))"
        var listing = StoreReadTransaction.Listing()
        listing.includesDeleted = writesRevisions
        listing.includesFirst = false
        var isEmpty = true
        while true {
            var records: [DocumentRecord] = []
            var bytes = 0
            try CollectionReader.snapshot(of: collection) { reader in
                try reader.forEachRecord(listing) { record in
                    records.append(record)
                    bytes += record.body.bytes.count + (record.encodedTree?.count ?? 0)
                    return records.count < Self.page && bytes < Self.pageBytes
                }
            }
            guard let last = records.last else { break }
            isEmpty = false
            for record in records { try exportUnlessDamaged(record, in: collection, place) }
            listing.first = last.id
        }
        if !writesRevisions {
            deletedCount += try CollectionReader.snapshot(of: collection) { try $0.deletedCount() }
        }
        if isEmpty, !isDefault {
            try line(
                Array("{\"_collection\":\(JSONValue.string(collection.fullName)),\"_documents\":0}".utf8)
            )
        }
        for name in try collection.indexes() {
            // The index was deleted meanwhile.
            guard let index = try collection.index(withName: name) else { continue }
            var value = index.archived
            value["_index"] = .string(name)
            if !isDefault { value["_collection"] = .string(collection.fullName) }
            try line(JSONText(canonical: value).bytes)
        }
    }

    /// One document that cannot be read does not keep the others from being written.
    private mutating func exportUnlessDamaged(
        _ record: DocumentRecord,
        in collection: Collection,
        _ place: String
    ) throws {
        do { try export(record, in: collection, place) } catch let error as LoveseatError
            where error.code == .corruptData
        {
            damaged.append(("\(collection.fullName)/\(record.id)", error.message))
        }
    }

    private mutating func export(_ record: DocumentRecord, in collection: Collection, _ place: String) throws
    {
        let (lacksBlobs, reasons) = try exportBlobs(of: record)
        if !reasons.isEmpty { incomplete.append(("\(collection.fullName)/\(record.id)", reasons)) }
        let body: JSONText
        var isOnlyOfPeers = lacksBlobs
        let element = try record.element()
        do throws(JSONError) { body = try JSONText(validating: element) } catch {
            body = record.body.canonical
            isOnlyOfPeers = true
        }
        var head = "{\"_id\":\(JSONValue.string(record.id))\(place)"
        if let time = record.expires { head += ",\"_expires\":\(time)" }
        if isOnlyOfPeers || DocumentValidator(collection).isOnlyOfPeers(body, record.id) {
            head += ",\"_peer\":true"
        }
        if writesRevisions {
            let whole = try collection.openStore().whole(record, in: collection.handle)
            let archived = try ArchivedRevisions(whole)
            var value: JSONValue = ["id": .string(archived.revision.text)]
            if archived.isDeleted { value["deleted"] = true }
            if let tree = archived.encodedTree { value["tree"] = .string(Data(tree).base64EncodedString()) }
            // A peer's text stays as it came, since the revision ID may be its digest.
            if record.body != body { value["text"] = .string(record.body.description) }
            head += ",\"_revision\":\(JSONText(canonical: value))"
        } else if try Self.hasConflicts(record) {
            conflictCount += 1
        }
        var bytes = Array(head.utf8)
        if body.bytes.count > 2 { bytes.append(UInt8(ascii: ",")) }
        bytes += body.bytes.dropFirst()
        try line(bytes)
        documentCount += 1
    }

    private static func hasConflicts(_ record: DocumentRecord) throws -> Bool {
        if record.hasConflicts { return true }
        guard record.encodedTree != nil, record.flags.contains(.branched) else { return false }
        return try !DocumentBranches(of: record).conflicts.isEmpty
    }

    /// Writes the blobs that a document refers to, each once.
    ///
    /// - Returns: whether any was not written, and what is damaged. A blob of a version that is not the current one may never have come.
    private mutating func exportBlobs(of record: DocumentRecord) throws -> (lacks: Bool, reasons: [String]) {
        guard writesBlobs else { return (false, []) }
        var digests = record.isDeleted ? [] : BlobReference.all(in: record.body).map(\.digest)
        if writesRevisions, record.encodedTree != nil {
            for node in try record.tree().nodes.values where node.flags.contains(.hasBlobs) {
                guard node.id != record.revision, !node.isDeleted, let body = node.body else { continue }
                digests += BlobReference.all(in: body).map(\.digest)
            }
        }
        let current = Set(record.isDeleted ? [] : BlobReference.all(in: record.body).map(\.digest))
        // In a tree, the blobs have no order.
        if writesRevisions { digests.sort { $0.hexadecimalText < $1.hexadecimalText } }
        var lacks = false
        var reasons: [String] = []
        for digest in digests {
            guard let reason = try exportBlob(digest) else { continue }
            lacks = true
            let isDamage = current.contains(digest) || reason != DatabaseBlobs.absence(of: digest)
            if isDamage, !reasons.contains(reason) { reasons.append(reason) }
        }
        return (lacks, reasons)
    }

    /// Writes a blob, unless it was written before.
    ///
    /// - Returns: why it is not written, since an import would refuse it; nil for a whole one.
    private mutating func exportBlob(_ digest: BlobDigest) throws -> String? {
        if let known = blobs[digest] { return known }
        var reason = try database.blobs.damage(of: digest)
        if reason == nil {
            if let pieces = try database.blobs.pieces(digest, pieceBytes: Self.blobPiece) {
                try export(digest, pieces)
            } else {
                // A compaction has removed it just now.
                reason = DatabaseBlobs.absence(of: digest)
            }
        }
        blobs[digest] = .some(reason)
        return reason
    }

    private func export(_ digest: BlobDigest, _ pieces: BlobPieces.Iterator) throws {
        var pieces = pieces
        repeat {
            let piece = try pieces.read() ?? Data()
            let head = "{\"_blob\":\"\(digest.text)\",\"content\":\""
            try line(Array(head.utf8) + Array(piece.base64EncodedString().utf8) + Array("\"}".utf8))
        } while !pieces.isAtEnd
    }
}

extension DocumentValidator {
    /// Whether `save` would refuse a document that is here, because only peers may give it such an ID, name or size.
    fileprivate func isOnlyOfPeers(_ body: JSONText, _ id: String) -> Bool {
        do throws(LoveseatError) {
            try checkNamesAndSize(of: body, id)
            return false
        } catch { return true }
    }
}

extension IndexConfiguration {
    /// The definition as a line of an export.
    fileprivate var archived: JSONValue {
        var value: JSONValue = [:]
        func texts(_ list: [String]) -> JSONValue { .array(list.map { .string($0) }) }
        switch self {
        case let index as ValueIndexConfiguration:
            value = ["kind": "value", "expressions": texts(index.expressions)]
            value["where"] = index.where.map { .string($0) }
        case let index as FullTextIndexConfiguration:
            value = ["kind": "full-text", "expressions": texts(index.expressions)]
            value["where"] = index.where.map { .string($0) }
            value["language"] = index.language.map { .string($0) }
            if index.ignoreAccents { value["ignoreAccents"] = true }
        case let index as ArrayIndexConfiguration:
            value = ["kind": "array", "path": .string(index.path)]
            value["expressions"] = index.expressions.map(texts)
        default: impossible("the database has an index of the kind \(type(of: self))")
        }
        return value
    }
}
