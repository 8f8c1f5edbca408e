package import LoveseatModel

/// The revisions of a document that a remote lacks (protocol/couchdb.md §4.5).
package struct MissingRevisions: Hashable, Sendable {
    package var missing: Set<ExactText> = []
    /// Revisions that the remote has, and that may be ancestors of those.
    package var ancestors: [RevisionID] = []

    package init() {}

    /// Reads an answer of `_revs_diff`, by document. `asked`: the revisions that the remote was asked about.
    ///
    /// The remote leaves out the documents of which it lacks nothing. Its entry for any other document must be readable: otherwise a
    /// document that it lacks would not be sent, and would count as sent.
    ///
    /// - Returns: for each document what the remote lacks, or `remoteError`.
    /// - Throws: `remoteError` for an answer that is not about these documents.
    package static func read(
        _ answer: JSONElement,
        about asked: [(id: String, revisions: [RevisionID])]
    ) throws(LoveseatError) -> DocumentMap<Result<MissingRevisions, LoveseatError>> {
        guard answer.kind == .object else {
            throw LoveseatError(.remoteError, "the peer's answer to _revs_diff is not an object")
        }
        var known: DocumentMap<Set<ExactText>> = [:]
        for (id, revisions) in asked {
            known[ExactText(id), default: []].formUnion(revisions.map { ExactText($0.text) })
        }
        var all: DocumentMap<Result<MissingRevisions, LoveseatError>> = [:]
        for (id, entry) in answer.members {
            // Each document is named once: the entry is taken out.
            guard let revisions = known.removeValue(forKey: ExactText(id)) else {
                throw LoveseatError(
                    .remoteError,
                    "the peer's answer to _revs_diff names a document that it was not asked about, or names it twice: \"\(id)\""
                )
            }
            all[ExactText(id)] = read(entry, of: revisions)
        }
        return all
    }

    /// Reads the entry of one document. `known`: the revisions about which the remote was asked.
    private static func read(_ entry: JSONElement, of known: Set<ExactText>) -> Result<
        MissingRevisions, LoveseatError
    > {
        func broken(_ why: String) -> Result<MissingRevisions, LoveseatError> {
            let advice = "the peer is asked again in the next run"
            return .failure(
                LoveseatError(
                    .remoteError,
                    "the peer's answer to _revs_diff cannot be read: \(why): \(advice)"
                )
            )
        }
        guard let list = entry["missing"], list.kind == .array else {
            return broken("it does not list what is missing")
        }
        var missing = MissingRevisions()
        for item in list.items {
            guard let text = item.string else { return broken("a missing revision is not text") }
            guard known.contains(ExactText(text)) else {
                return broken("it was not asked about the revision \"\(text)\"")
            }
            missing.missing.insert(ExactText(text))
        }
        // An ancestor that cannot be read only costs that known attachments are sent again.
        missing.ancestors =
            entry["possible_ancestors"]?.items.compactMap { item in
                item.string.flatMap { try? RevisionText.parse($0) }
            } ?? []
        return .success(missing)
    }
}

/// A remote's answer for one revision that was asked for in bulk (protocol/couchdb.md §4.6).
package struct BulkGetItem: Sendable {
    package let documentID: String
    /// The revisions that were found.
    package var documents: [JSONElement] = []
    /// Why there are none, in CouchDB's word; nil if all were found.
    package var error: String?

    package init(documentID: String, error: String? = nil) {
        (self.documentID, self.error) = (documentID, error)
    }

    /// Reads an answer of `_bulk_get`; nil for an answer of another form.
    package static func read(_ answer: JSONElement) -> [BulkGetItem]? {
        guard let results = answer["results"], results.kind == .array else { return nil }
        var items: [BulkGetItem] = []
        for result in results.items {
            guard let id = result["id"]?.string, let docs = result["docs"], docs.kind == .array else {
                items.append(BulkGetItem(documentID: "", error: "unreadable"))
                continue
            }
            var item = BulkGetItem(documentID: id)
            for entry in docs.items {
                if let document = entry["ok"], document.kind == .object {
                    item.documents.append(document)
                } else {
                    item.error = entry["error"]?["error"]?.string ?? "error"
                }
            }
            // A part of them would count as all of them.
            if item.error != nil { item.documents = [] }
            items.append(item)
        }
        return items
    }
}

/// A document that a remote did not store (protocol/couchdb.md §3.7).
package struct RefusedDocument: Hashable, Sendable {
    package let documentID: String
    package let revision: String?
    package let error: String
    package let reason: String

    /// Whether the remote could not store anything at that moment.
    package var mayPass: Bool {
        [
            "internal_error", "internal_server_error", "unknown_error", "timeout", "service unavailable",
            "service_unavailable",
        ].contains(error)
    }

    /// Whether the remote's disk is full.
    package var lacksSpace: Bool { RemoteFailure.namesFullDisk(error, reason) }

    /// The error of the document.
    package var failure: LoveseatError {
        if lacksSpace {
            return LoveseatError(
                RemoteFailure.fullDisk,
                "the peer cannot store \"\(documentID)\": its disk is full: free some space there"
            )
        }
        if mayPass { return LoveseatError(.init(10_500), "the peer cannot store it: \(reason)") }
        // `unauthorized` is not final: the client may be let in later.
        let code: LoveseatError.Code =
            switch error {
            case "forbidden": .httpForbidden
            case "unauthorized": .httpAuthRequired
            default: .remoteError
            }
        return LoveseatError(code, "the peer refused it: \(reason.isEmpty ? error : reason)")
    }

    /// Whether a row says that its document was stored, and nothing else.
    private static func reportsSuccess(_ row: JSONElement) -> Bool {
        func lacks(_ name: String) -> Bool { row[name]?.isNull ?? true }
        guard lacks("error"), lacks("reason") else { return false }
        if !lacks("status") {
            guard let status = row["status"]?.int, (200..<300).contains(status) else { return false }
        }
        return lacks("ok") ? row["rev"]?.string != nil : row["ok"]?.bool == true
    }

    /// Reads an answer of `_bulk_docs`. Rows that report success are left out; a row that says neither is a failure. `ids`: the documents
    /// that were sent.
    ///
    /// - Throws: `remoteError` for anything else, such as a row that does not say of which of these documents it is.
    package static func read(_ answer: JSONElement, of ids: DocumentSet) throws(LoveseatError)
        -> [RefusedDocument]
    {
        guard answer.kind == .array else {
            throw LoveseatError(.remoteError, "the peer's answer to _bulk_docs is not a list")
        }
        var refused: [RefusedDocument] = []
        for row in answer.items {
            if reportsSuccess(row) { continue }
            // A document whose refusal is not understood would count as stored.
            guard let id = row["id"]?.string, ids.contains(id) else {
                throw LoveseatError(
                    .remoteError,
                    "a row of the peer's answer to _bulk_docs cannot be read: \(JSONText(canonical: row.value).description.prefix(200))"
                )
            }
            let error = row["error"]
            refused.append(
                RefusedDocument(
                    documentID: id,
                    revision: row["rev"]?.string,
                    error: error?.string ?? error.map { JSONText(canonical: $0.value).description }
                        ?? "unknown",
                    reason: row["reason"]?.string ?? ""
                )
            )
        }
        return refused
    }
}
