import LoveseatModel
import LoveseatStorage

/// A document that a migration could not change, which `migrate` of ``Collection`` throws.
///
/// Documents that the migration changed before stay changed. The next call begins with this one.
public struct MigrationError: Error, CustomStringConvertible {
    /// The name of the migration.
    public let migration: String
    /// The collection of the document.
    public let collection: Collection
    /// The ID of the document, which is as it was.
    public let documentID: String
    /// The error that the closure threw, or a ``LoveseatError``.
    public let error: any Error

    /// The document, the migration and the error, for logs.
    public var description: String {
        "document \"\(documentID)\" of collection \(collection.fullName) stays as it is in migration \"\(migration)\": \(error)"
    }
}

/// How far a call of `migrate` of ``Collection`` has come.
public struct MigrationStatus: Hashable, Sendable {
    /// How many documents the call has changed.
    public private(set) var changed = 0
    /// How many documents the call has looked at. Those that it changed come again, and count twice then.
    public private(set) var examined = 0
    /// About how many documents are still to be looked at.
    public private(set) var remaining = 0

    /// `left`: how many documents and deletions there were before the part; nil if they were counted before.
    mutating func add(_ part: MigrationRun.Part, changed: Int, to left: Int?) {
        self.changed += changed
        examined += part.examined
        remaining = max(0, (left ?? remaining) + changed - part.examined)
    }
}

/// A migration of a collection's documents: a part of them at a time, in order of their last changes.
///
/// One transaction stores the changes of a part, and the sequence up to which documents were looked at. A document that is changed, by the
/// migration or by anybody else meanwhile, moves behind that and is looked at again: no document is left out, and none is locked.
struct MigrationRun: Sendable {
    /// Some documents, after the app's closure.
    struct Part: Sendable {
        /// The sequence that was stored when they were read.
        let previous: UInt64
        /// The sequence of the last one.
        fileprivate(set) var last: UInt64
        /// How many the closure was called with, without the one that it failed for.
        fileprivate(set) var examined = 0
        fileprivate(set) var changed: [(document: Document, body: JSONText)] = []
        /// The document behind them, which could not be changed.
        fileprivate(set) var failure: MigrationError?
    }

    private let name: String
    let collection: Collection
    private var key: String { MigrationProgress.key(of: name, in: collection.handle) }

    init(_ name: String, of collection: Collection) throws(LoveseatError) {
        guard !name.isEmpty else {
            throw LoveseatError(.invalidParameter, "a migration needs a name, which it keeps")
        }
        self.name = name
        self.collection = collection
    }

    /// Some documents that were read.
    struct Next: Sendable {
        /// The sequence that they follow.
        let previous: UInt64
        /// None at the end.
        let documents: [Document]
        /// How many documents and deletions follow it; nil if a call has counted them before.
        let left: Int?
    }

    /// The next documents of a call that has come so far.
    func next(_ reader: CollectionReader, _ status: MigrationStatus) throws -> Next {
        let previous = try reader.progress(of: key)
        var parts = DocumentParts(DocumentListing(order: .sequence, after: .sequence(previous)))
        let documents = try parts.next(of: collection, reader) ?? []
        let isFirst = status.examined == 0 && !documents.isEmpty
        let left = isFirst ? try reader.view.changeCount(in: collection.handle, after: previous) : nil
        return Next(previous: previous, documents: documents, left: left)
    }

    /// Changes documents outside of any transaction.
    func part(
        _ documents: [Document],
        behind previous: UInt64,
        _ change: (inout Document) throws -> Void
    ) -> Part {
        var part = Part(previous: previous, last: previous)
        for document in documents {
            do {
                if let changed = try changed(document, change) { part.changed.append(changed) }
            } catch {
                part.failure = MigrationError(
                    migration: name,
                    collection: collection,
                    documentID: document.id,
                    error: error
                )
                break
            }
            part.last = document.sequence
            part.examined += 1
        }
        return part
    }

    /// The document after the closure; nil if that changes nothing.
    private func changed(_ stored: Document, _ change: (inout Document) throws -> Void) throws
        -> (document: Document, body: JSONText)?
    {
        var changed = stored
        try change(&changed)
        guard changed.id.isExactly(stored.id) else {
            throw LoveseatError(
                .invalidParameter,
                "the migration gives the document another ID: save a new document, and delete this one"
            )
        }
        if changed.hasSameContent(as: stored) { return nil }
        let body = try DocumentValidator(collection).body(of: changed)
        // Every device migrates what it has, also what another device has migrated before.
        var again = changed
        try change(&again)
        guard again.hasSameContent(as: changed) else {
            throw LoveseatError(
                .invalidParameter,
                "the migration changes its own result: it must leave a document alone that it has changed, and always make the same change"
            )
        }
        return (changed, body)
    }

    /// Stores a part, and returns the number of documents that were changed.
    ///
    /// A document that was changed or deleted meanwhile stays as it is; if it still exists, it comes later. So does everything if another
    /// call of the same migration was faster.
    func store(_ part: Part, _ transaction: StoreWriteTransaction) throws -> Int {
        guard part.last != part.previous, try transaction.progress(of: key) == part.previous else { return 0 }
        let editor = DocumentEditor(collection, transaction)
        var count = 0
        for (document, body) in part.changed
        where try editor.save(document, body, .failOnConflict) != nil { count += 1 }
        try transaction.setInfo(key, String(part.last))
        return count
    }
}

extension StoreReadTransaction {
    /// The sequence up to which a migration has come.
    fileprivate func progress(of key: String) throws -> UInt64 { try info(key).flatMap { UInt64($0) } ?? 0 }
}

extension CollectionReader {
    fileprivate func progress(of key: String) throws -> UInt64 { try view.progress(of: key) }
}
