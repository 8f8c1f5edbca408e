package import LoveseatModel

/// What a remote lacks of a document (protocol/couchdb.md §4.5).
package struct MissingRevisions: Hashable, Sendable {
    package var missing: Set<ExactText> = []
    /// Revisions that the remote has, and that may be ancestors of those.
    package var ancestors: [RevisionID] = []

    package init() {}

    /// Reads an answer of `_revs_diff`, by document.
    ///
    /// - Throws: `remoteError` for anything else.
    package static func read(_ answer: JSONElement) throws(LoveseatError) -> DocumentMap<MissingRevisions> {
        guard answer.kind == .object else {
            throw LoveseatError(.remoteError, "the peer's answer to _revs_diff is not an object")
        }
        var all: DocumentMap<MissingRevisions> = [:]
        for (id, entry) in answer.members {
            guard let list = entry["missing"], list.kind == .array else { continue }
            var missing = MissingRevisions()
            missing.missing = Set(list.items.compactMap { $0.string.map { ExactText($0) } })
            // An ancestor that cannot be read only costs that known attachments are sent again.
            missing.ancestors =
                entry["possible_ancestors"]?.items.compactMap { item in
                    item.string.flatMap { try? RevisionText.parse($0) }
                } ?? []
            all[ExactText(id)] = missing
        }
        return all
    }
}

/// What a remote answers for one revision that was asked for in bulk (protocol/couchdb.md §4.6).
package struct BulkGetItem: Sendable {
    package let documentID: String
    /// The revisions that were found.
    package var documents: [JSONElement] = []
    /// Why there are none, in CouchDB's word; nil if there are.
    package var error: String?

    package init(documentID: String, error: String? = nil) {
        (self.documentID, self.error) = (documentID, error)
    }

    /// Reads an answer of `_bulk_get`; nil for what has not that shape.
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
                if let document = entry["ok"] {
                    item.documents.append(document)
                } else {
                    item.error = entry["error"]?["error"]?.string ?? "error"
                }
            }
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
        // Who may not write now may be let in later.
        let code: LoveseatError.Code =
            switch error {
            case "forbidden": .httpForbidden
            case "unauthorized": .httpAuthRequired
            default: .remoteError
            }
        return LoveseatError(code, "the peer refused it: \(reason.isEmpty ? error : reason)")
    }

    /// Reads an answer of `_bulk_docs`. Rows that report success are left out; a row that says neither is a failure.
    ///
    /// - Throws: `remoteError` for anything else, such as a row that does not say of which document it is.
    package static func read(_ answer: JSONElement) throws(LoveseatError) -> [RefusedDocument] {
        guard answer.kind == .array else {
            throw LoveseatError(.remoteError, "the peer's answer to _bulk_docs is not a list")
        }
        var refused: [RefusedDocument] = []
        for row in answer.items {
            let hasError = row["error"].map { $0.kind != .null } ?? false
            if !hasError, row["ok"]?.bool ?? (row["rev"]?.string != nil) { continue }
            guard let id = row["id"]?.string else {
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
