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

    /// Whether the remote refuses the document, rather than being unable to store it now.
    package var isForbidden: Bool { error == "forbidden" || error == "unauthorized" }

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
        return LoveseatError(
            isForbidden ? .httpForbidden : .remoteError,
            "the peer refused it: \(reason.isEmpty ? error : reason)"
        )
    }

    /// Reads an answer of `_bulk_docs`. Rows that report success are left out.
    ///
    /// - Throws: `remoteError` for anything else.
    package static func read(_ answer: JSONElement) throws(LoveseatError) -> [RefusedDocument] {
        guard answer.kind == .array else {
            throw LoveseatError(.remoteError, "the peer's answer to _bulk_docs is not a list")
        }
        return answer.items.compactMap { row in
            guard let error = row["error"]?.string, let id = row["id"]?.string else { return nil }
            return RefusedDocument(
                documentID: id,
                revision: row["rev"]?.string,
                error: error,
                reason: row["reason"]?.string ?? ""
            )
        }
    }
}
