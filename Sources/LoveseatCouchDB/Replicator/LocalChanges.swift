import LoveseatAssertions
import LoveseatCore
import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage

/// The changed documents of one collection, as the app's filter and the endpoint's selector let them out.
final class LocalChanges: PushSource {
    private static let pageSize = 500
    private static let pageBytes = 8 << 20

    private struct Document {
        let branches: DocumentBranches
        /// The leaves that are let out.
        let leaves: [DocumentBranch]
    }

    private let store: DocumentStore
    private let handle: CollectionHandle
    private let rules: CollectionRules
    private let selector: Selector?
    private let documentIDs: DocumentSet?
    private let nowMilliseconds: () -> Int64
    /// Those of the page that was read last.
    private var documents: [Document] = []

    init(
        _ store: DocumentStore,
        _ handle: CollectionHandle,
        _ rules: CollectionRules,
        selector: Selector?,
        documentIDs: DocumentSet?,
        nowMilliseconds: @escaping () -> Int64
    ) {
        (self.store, self.handle, self.rules) = (store, handle, rules)
        (self.selector, self.documentIDs) = (selector, documentIDs)
        self.nowMilliseconds = nowMilliseconds
    }

    func contains(_ blob: BlobDigest) -> Bool { store.blobs.length(blob) != nil }

    // MARK: Pages

    func nextPage(after done: SequenceSet) throws -> PushPage? {
        documents = []
        let since = done.completeUpTo ?? 0
        let end = store.lastSequence(handle)
        guard end > since else { return nil }
        let (records, isFull) = try records(after: since, upTo: end)
        let now = nowMilliseconds()
        var page = PushPage(since + 1...(isFull ? records.last?.sequence ?? end : end))
        for record in records {
            if done.contains(record.sequence) || record.expires.map({ $0 <= now }) ?? false { continue }
            if let documentIDs, !documentIDs.contains(record.id) { continue }
            try add(record, to: &page)
        }
        return page
    }

    private func records(after since: UInt64, upTo end: UInt64) throws -> ([DocumentRecord], isFull: Bool) {
        var (records, bytes, isFull): ([DocumentRecord], Int, Bool) = ([], 0, false)
        try store.read { view in
            try view.changes(in: handle, since: since) { record in
                guard record.sequence <= end else { return false }
                records.append(record)
                bytes += record.body.bytes.count
                isFull = records.count >= Self.pageSize || bytes >= Self.pageBytes
                return !isFull
            }
        }
        return (records, isFull)
    }

    private func add(_ record: DocumentRecord, to page: inout PushPage) throws {
        func unfit(_ error: LoveseatError, isHeldBack: Bool) -> PushPage.Unfit {
            PushPage.Unfit(
                id: record.id,
                sequence: record.sequence,
                isDeleted: record.isDeleted,
                error: error,
                isHeldBack: isHeldBack
            )
        }
        guard (try? IncomingDocument.checkReplicated(record.id)) != nil else {
            let error = LoveseatError(
                .badDocID,
                "a CouchDB has no documents whose IDs begin with an underscore: rename it"
            )
            return page.unfit.append(unfit(error, isHeldBack: false))
        }
        let tree = try record.encodedTree.map { _ in try record.tree() }
        guard !record.isDamaged(in: tree) else {
            return page.unfit.append(unfit(record.damage, isHeldBack: true))
        }
        let branches = try DocumentBranches(of: store.whole(record, in: handle))
        let leaves = branches.leaves.filter { passes($0, of: record.id) }
        if leaves.isEmpty { return }
        documents.append(Document(branches: branches, leaves: leaves))
        page.documents.append(
            PushPage.Document(
                id: record.id,
                sequence: record.sequence,
                revision: record.revision,
                isDeleted: record.isDeleted,
                leaves: leaves.map(\.id)
            )
        )
    }

    /// The app's filter, and the endpoint's selector.
    private func passes(_ branch: DocumentBranch, of id: String) -> Bool {
        let body = branch.body ?? .emptyObject
        if let selector {
            guard case .object(var object) = JSONElement(body).value else { return false }
            object["_id"] = .string(id)
            guard selector.matches(.object(object)) else { return false }
        }
        let candidate = FilterCandidate(
            documentID: id,
            revision: .revision(branch.id),
            isDeleted: branch.isDeleted,
            body: body
        )
        return rules.pushFilter?(candidate, false) ?? true
    }

    // MARK: Texts

    func render(_ leaf: PushedLeaf, isInline: Bool) -> RenderedDocument {
        let document = documents[leaf.place]
        guard let branch = document.leaves.first(where: { $0.id == leaf.revision }) else {
            impossible("\(leaf.revision) of \"\(leaf.documentID)\" is not a leaf of the page")
            return RenderedDocument()
        }
        var options = DocumentOptions()
        options.withRevisions = true
        if leaf.isWhole || leaf.known.isEmpty {
            options.withAttachments = true
        } else {
            options.attachmentsSince = leaf.known
        }
        let renderer = DocumentRenderer(
            options: options,
            form: isInline ? .inline : .parts,
            blobs: store.blobs,
            // Every peer takes these, and CouchDB ignores them.
            names: .stored
        )
        return renderer.render(branch, of: leaf.documentID, in: document.branches)
    }
}
