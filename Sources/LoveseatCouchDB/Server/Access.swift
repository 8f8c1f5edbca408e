import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// Access policies: what a client may not read does not exist for it. The app's policy is called outside transactions.
extension CouchDBServer {
    /// A collection, with the rights of the client.
    ///
    /// - Throws: `not_found` for a collection that does not exist for the client.
    func entry(_ name: String, for exchange: Exchange) throws -> Databases.Entry {
        var entry = try databases.entry(name)
        if let filter = settings.incomingFilter {
            let peer = exchange.peer
            entry.filter = { filter(peer, Document($0), $0.isDeleted ? .deleted : []) }
        }
        guard let policy = settings.policy else { return entry }
        let access = CollectionAccess(
            PeerAccess(peer: exchange.peer, policy: policy),
            store: entry.store,
            collection: entry.handle
        )
        guard access.ruling.mayReadCollection else { throw CouchDBError.noDatabase }
        entry.access = access
        return entry
    }

    /// The names of the databases that exist for a client.
    func names(for exchange: Exchange) throws -> [String] {
        let names = try databases.names()
        guard settings.policy != nil else { return names }
        // A database that the client may not read does not exist for it, nor does one that was deleted meanwhile.
        return names.filter { (try? entry($0, for: exchange)) != nil }
    }
}

/// The ancestors of a document that a request needs. Those deep in a long line are in a table of their own, and take longer to read than
/// the document.
enum NeededAncestors {
    /// Those that the document's row holds.
    case few
    /// Those among these revisions, wherever they are.
    case named([RevisionID])
    case all
}

extension Databases.Entry {
    /// The entry as the policy decides from now on. Its answers are kept for one request, or one page of a feed or list.
    func renewed() -> Self {
        var entry = self
        entry.access = access?.renewed()
        return entry
    }

    /// The branches of a document that the client may read; nil if the document does not exist for it. Called outside transactions.
    ///
    /// `withReplaced`: whether the contents of replaced revisions are in them that are still here.
    func branches(
        of record: DocumentRecord,
        _ needed: NeededAncestors = .few,
        withReplaced: Bool = false
    ) throws -> DocumentBranches? {
        var record = try needsWholeLine(of: record, needed) ? store.whole(record, in: handle) : record
        if withReplaced { record = try store.readRows { try $0.withReplaced(record, in: handle) } }
        var branches = try access.map { try $0.branches(of: record) } ?? DocumentBranches(of: record)
        branches?.listed = store.revisionLimit
        return branches
    }

    /// Whether ancestors that are not in a document's row have to be read.
    func needsWholeLine(of record: DocumentRecord, _ needed: NeededAncestors) throws -> Bool {
        guard record.flags.contains(.hasAncestors) else { return false }
        // A policy decides about a branch by all of its ancestors.
        if access != nil, record.flags.contains(.branched) { return true }
        switch needed {
        case .few: return false
        case .named(let revisions):
            return try store.readRows { try $0.isAside(revisions, of: record, in: handle) }
        case .all: return true
        }
    }

    /// The records of documents that exist for the client.
    func visible(_ records: [DocumentRecord]) throws -> [DocumentRecord] {
        guard let access else { return records }
        return try records.filter { try access.mayRead($0) }
    }

    /// Records that the client was sent these documents.
    func grant(_ ids: [String]) async throws {
        if !ids.isEmpty { try await access?.grant(ids) }
    }

    private static let maximumAttempts = 10

    /// Writes documents, if the client may.
    ///
    /// - Parameters:
    ///   - changes: The changes that the filter and the policy are asked about.
    ///   - body: Called with the reason why each change is refused, or nil, and with the documents, if they had to be read.
    /// - Returns: The value of `body`.
    /// - Throws: what `body` throws; `service_unavailable` if others keep changing the documents.
    func write<Value: Sendable>(
        _ changes: [AccessRuling.Change],
        _ body: @Sendable (StoreWriteTransaction, [CouchDBError?], [DocumentRecord?]?) throws -> Value
    ) async throws -> Value {
        let refusals = changes.map { refusal(of: $0) }
        guard let access else {
            return try await store.writeFromTask(within: nil) { try body($0, refusals, nil) }
        }
        for _ in 0..<Self.maximumAttempts {
            let records = try store.readRows { view in
                try changes.map { try view.record($0.id, in: handle) }
            }
            let verdicts = try changes.indices.map { index -> CouchDBError? in
                if let refusal = refusals[index] { return refusal }
                let (change, record) = (changes[index], records[index])
                guard try access.ruling.write(change, over: record).mayWrite,
                    try access.ruling.mayRefer(change, over: record)
                else { return .notAllowed(change.id) }
                return nil
            }
            let sequences = records.map { $0?.sequence }
            let written = try await store.writeFromTask(within: nil) { transaction -> Value? in
                // The documents must not have changed since the policy was asked.
                let current = try changes.map { try transaction.record($0.id, in: handle) }
                guard current.map({ $0?.sequence }) == sequences else { return nil }
                let value = try body(transaction, verdicts, current)
                let ids = zip(changes, verdicts).compactMap { $1 == nil ? $0.id : nil }
                if !ids.isEmpty { try transaction.grantTable.grant(ids, in: handle, to: access.peerName) }
                return value
            }
            if let written { return written }
        }
        throw CouchDBError(503, "service_unavailable", "the documents keep changing: try again")
    }

    /// Why a client may not make a change, as far as can be said before its attachments are received; nil if it may.
    func refusal(beforeContentOf change: AccessRuling.Change) throws -> CouchDBError? {
        if let refusal = refusal(of: change) { return refusal }
        guard let access else { return nil }
        let record = try store.readRows { try $0.record(change.id, in: handle) }
        return try access.ruling.write(change, over: record).mayWrite ? nil : .notAllowed(change.id)
    }

    /// Refuses a change that the client may not make, before its attachments are received.
    ///
    /// - Throws: why the client may not.
    func requireRight(to change: AccessRuling.Change) throws {
        if let refusal = try refusal(beforeContentOf: change) { throw refusal }
    }

    /// Why the app does not take a change; nil if it does.
    private func refusal(of change: AccessRuling.Change) -> CouchDBError? {
        guard let filter else { return nil }
        var body = change.body
        if !change.attachments.isEmpty, case .object(var object) = JSONElement(body).value {
            var table = object["_attachments"]?.object ?? [:]
            for (name, attachment) in change.attachments { table[name] = attachment }
            object["_attachments"] = .object(table)
            body = JSONText(canonical: .object(object))
        }
        return filter(change.candidate(over: nil, body: body)).map(CouchDBError.init(refusal:))
    }

    /// Writes one document.
    ///
    /// - Throws: `forbidden` if the client may not.
    func write<Value: Sendable>(
        _ change: AccessRuling.Change,
        _ body: @Sendable (StoreWriteTransaction, CurrentDocument) throws -> Value
    ) async throws -> Value {
        try await write([change]) { transaction, verdicts, records in
            if let refusal = verdicts[0] { throw refusal }
            let document = CurrentDocument(change.id, in: handle, transaction, known: records.map { $0[0] })
            return try body(transaction, document)
        }
    }
}

/// A document in a transaction that is about to write it. It is read once, when it is needed first.
final class CurrentDocument {
    private let read: () throws -> DocumentRecord?
    private var known: DocumentRecord??

    /// `known`: the document, if the transaction has read it already.
    init(
        _ id: String,
        in handle: CollectionHandle,
        _ transaction: StoreWriteTransaction,
        known: DocumentRecord?? = nil
    ) {
        read = { try transaction.record(id, in: handle) }
        self.known = known
    }

    func record() throws -> DocumentRecord? {
        if let known { return known }
        let record = try read()
        known = .some(record)
        return record
    }
}

extension CouchDBError {
    static func notAllowed(_ id: String) -> Self { .forbidden("you may not write \"\(id)\"") }

    /// The answer for a refusal by an app's filter. Replicating peers continue after it, as they do after `forbidden`.
    init(refusal: LoveseatError) {
        let status = refusal.code.value - 10_000
        let words = [401: "unauthorized", 404: "not_found", 409: "conflict", 413: "document_too_large"]
        guard refusal.code.domain == .couchbaseLite, (400...499).contains(status) else {
            self = .forbidden(refusal.message)
            return
        }
        self.init(status, words[status] ?? "forbidden", refusal.message)
    }
}

extension PreparedDocument {
    /// The change that a filter and a policy are asked about.
    var change: AccessRuling.Change {
        var change = AccessRuling.Change(id: id, history: history, isDeleted: isDeleted, body: body)
        change.received = received
        for attachment in attachments {
            switch attachment {
            case .ready(let stored, _): change.attachments[stored.name] = stored.stored
            case .stub(let stub):
                change.attachments[stub.name] = stub.announced
                change.hasStubs = true
            }
        }
        return change
    }
}

extension AccessRuling.Change {
    /// A document whose attachments' content has not been received or stored.
    init(announcing document: IncomingDocument, id: String) {
        self.init(id: id, history: document.history, isDeleted: document.isDeleted, body: document.body)
        for attachment in document.attachments { attachments[attachment.name] = attachment.announced }
    }
}

extension IncomingAttachment {
    /// The attachment as the client announces it. Of two lengths it has the larger one, because so much may come.
    fileprivate var announced: JSONValue {
        var value: JSONValue = ["content_type": .string(contentType ?? "application/octet-stream")]
        if let digest { value["digest"] = .string(digest) }
        let told = [length, encodedLength]
        var sizes: [Int?] = []
        switch content {
        case .stub: value["stub"] = true
        case .follows: sizes = told
        case .takenOut(_, let size): sizes = [size] + (encoding == nil ? [] : told)
        case .inline(let text):
            sizes = [max(0, text.bytes.count - 2) / 4 * 3] + (encoding == nil ? [] : told)
        }
        if let size = sizes.compactMap(\.self).max() { value["length"] = JSONValue(size) }
        if let encoding {
            value["encoding"] = .string(encoding)
            value["encoded_length"] = encodedLength.map { JSONValue($0) } ?? .null
        }
        return value
    }
}
