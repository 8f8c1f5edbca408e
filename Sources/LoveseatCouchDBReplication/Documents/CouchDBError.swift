package import LoveseatModel

/// An answer that reports an error, in CouchDB's words (protocol/couchdb.md §9).
package struct CouchDBError: Error, Hashable, Sendable {
    /// The HTTP status.
    package let status: Int
    /// CouchDB's word for the kind of error, such as `not_found`.
    package let error: String
    /// A sentence for people.
    package let reason: String
    /// Headers to send with it.
    package var headers: [[String]] = []
    /// Whether a `_bulk_docs` with such a document is refused as a whole, as CouchDB does (protocol/couchdb.md §4.4). Any other document is
    /// refused alone, in its row.
    package private(set) var refusesBatch = false

    package init(_ status: Int, _ error: String, _ reason: String) {
        self.status = status
        self.error = error
        self.reason = reason
    }

    /// An error for which CouchDB refuses a whole batch.
    private static func ofBatch(_ status: Int, _ error: String, _ reason: String) -> Self {
        var error = Self(status, error, reason)
        error.refusesBatch = true
        return error
    }

    package static func badRequest(_ reason: String) -> Self { Self(400, "bad_request", reason) }
    package static func illegalID(_ reason: String) -> Self { ofBatch(400, "illegal_docid", reason) }
    package static func illegalRevisions(_ reason: String) -> Self { ofBatch(400, "doc_validation", reason) }
    package static func reservedMember(_ name: String) -> Self {
        ofBatch(400, "doc_validation", "Bad special document member: \(name)")
    }
    package static func queryParse(_ reason: String) -> Self { Self(400, "query_parse_error", reason) }
    package static func notFound(_ reason: String) -> Self { Self(404, "not_found", reason) }
    package static func forbidden(_ reason: String) -> Self { Self(403, "forbidden", reason) }
    package static func notImplemented(_ reason: String) -> Self { Self(501, "not_implemented", reason) }
    package static func tooLarge(_ reason: String) -> Self { ofBatch(413, "document_too_large", reason) }
    package static func methodNotAllowed(_ allowed: String) -> Self {
        var error = Self(405, "method_not_allowed", "Only \(allowed) allowed")
        error.headers = [["Allow", allowed]]
        return error
    }
    package static func missingStub(_ name: String, in id: String) -> Self {
        ofBatch(412, "missing_stub", "Invalid attachment stub in \(id) for \(name)")
    }
    package static func invalidAttachment(_ name: String) -> Self {
        ofBatch(400, "bad_request", "Invalid attachment data for \(name)")
    }
    package static let invalidJSON = badRequest("invalid UTF-8 JSON")
    package static let tooDeep = badRequest(
        "a document has at most \(JSONLimits.standard.maximumDepth) levels of arrays and objects"
    )
    package static func invalid(_ error: JSONError) -> Self {
        switch error.reason {
        case .tooDeep: tooDeep
        case .numberTooLarge: badRequest("invalid UTF-8 JSON: \(error)")
        case .tooLarge:
            Self(413, "too_large", "the JSON is too long, or has too many values: send it in parts")
        default: invalidJSON
        }
    }
    /// It is not known whether a document was stored. Peers send it again after this word.
    package static let unknownResult = Self(
        500,
        "internal_server_error",
        "it is not known whether the document was stored: send it again"
    )
    package static let conflict = Self(409, "conflict", "Document update conflict.")
    package static let missing = notFound("missing")
    package static let deleted = notFound("deleted")
    package static let noDatabase = notFound("Database does not exist.")
    package static let noAttachment = notFound("Document is missing attachment")
    package static let invalidRevision = ofBatch(400, "bad_request", "Invalid rev format")
    package static let missingRevision = ofBatch(
        400,
        "bad_request",
        "When `new_edits: false`, the document needs `_rev` or `_revisions` specified"
    )
}
