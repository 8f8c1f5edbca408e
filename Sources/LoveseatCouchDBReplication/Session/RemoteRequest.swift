package import LoveseatModel

/// A request to a remote database, as a value (protocol/couchdb.md §3.5–3.7).
package struct RemoteRequest: Hashable, Sendable {
    package enum Method: String, Hashable, Sendable { case get = "GET", put = "PUT", post = "POST" }

    package var method = Method.get
    /// The path below the database's URL, percent-encoded.
    package var path: String
    /// The query, percent-encoded; empty for none.
    package var query = ""
    package var accept = "application/json"
    package var contentType: String?
    package var body: [UInt8] = []

    /// The longest target that every CouchDB accepts, in bytes.
    package static let maximumTarget = 7_000

    init(_ method: Method, _ path: String, _ query: [(name: String, value: String)] = []) {
        self.method = method
        self.path = path
        self.query = Self.query(query)
    }

    init(_ method: Method, _ path: String, _ query: [(name: String, value: String)] = [], json: JSONValue) {
        self.init(method, path, query)
        contentType = "application/json"
        body = JSONText(canonical: json).bytes
    }

    private static func query(_ items: [(name: String, value: String)]) -> String {
        items.map { "\(PathEncoding.segment($0.name))=\(PathEncoding.segment($0.value))" }
            .joined(separator: "&")
    }

    // MARK: The database

    /// Information about the database. With a slash, as all clients send it.
    package static let information = RemoteRequest(.get, "/")
    /// Creates the database.
    package static let creation = RemoteRequest(.put, "/")

    // MARK: Checkpoints

    /// A checkpoint's ID as that of a remote document. Some peers divide IDs at an encoded slash.
    package static func checkpointName(_ id: String) -> String {
        String(id.map { $0 == "/" ? "." : $0 == "+" ? "_" : $0 })
    }

    package static func checkpoint(_ id: String) -> RemoteRequest {
        RemoteRequest(.get, PathEncoding.document("_local/\(id)"))
    }

    /// `revision`: the one that is replaced; nil for a new document.
    package static func saveCheckpoint(_ id: String, _ body: JSONText, replacing revision: String?)
        -> RemoteRequest
    {
        var value = JSONElement(body).value
        value["_id"] = .string("_local/\(id)")
        if let revision { value["_rev"] = .string(revision) }
        return RemoteRequest(.put, PathEncoding.document("_local/\(id)"), json: value)
    }

    // MARK: Revisions

    /// Asks which revisions the remote lacks.
    package static func differences(_ leaves: [(id: String, revisions: [RevisionID])]) -> RemoteRequest {
        var object = JSONObject()
        for (id, revisions) in leaves { object[id] = .array(revisions.map { .string($0.text) }) }
        return RemoteRequest(.post, "/_revs_diff", json: .object(object))
    }

    /// Fetches many revisions without their attachments.
    package static func bulkGet(_ revisions: [DocumentLeaf]) -> RemoteRequest {
        RemoteRequest(
            .post,
            "/_bulk_get",
            [("revs", "true"), ("latest", "true"), ("attachments", "false")],
            json: [
                "docs": .array(
                    revisions.map { ["id": .string($0.documentID), "rev": .string($0.revision.text)] }
                )
            ]
        )
    }

    /// Fetches one revision with those attachments that are newer than `known`, in parts or in JSON.
    ///
    /// `known` is cut where the URL would become too long for CouchDB, which only makes the answer larger.
    package static func revision(_ leaf: DocumentLeaf, known: [RevisionID]) -> RemoteRequest {
        let path = PathEncoding.document(leaf.documentID)
        var query = [("rev", leaf.revision.text), ("revs", "true"), ("attachments", "true")]
        var room = maximumTarget - path.utf8.count - 200
        var since: [String] = []
        for revision in known {
            room -= revision.text.utf8.count + 12
            guard room > 0 else { break }
            since.append("\"\(revision.text)\"")
        }
        if !since.isEmpty { query.append(("atts_since", "[\(since.joined(separator: ","))]")) }
        var request = RemoteRequest(.get, path, query)
        request.accept = "multipart/related, application/json"
        return request
    }

    /// Writes documents as they are. `documents`: their JSON text.
    package static func bulkDocuments(_ documents: [[UInt8]]) -> RemoteRequest {
        var request = RemoteRequest(.post, "/_bulk_docs")
        request.contentType = "application/json"
        var body = Array("{\"new_edits\":false,\"docs\":[".utf8)
        body.reserveCapacity(documents.reduce(body.count + 2) { $0 + $1.count + 1 })
        for (index, document) in documents.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            body += document
        }
        request.body = body + Array("]}".utf8)
        return request
    }

    /// Writes one document, whose body is sent separately.
    package static func document(_ id: String, contentType: String) -> RemoteRequest {
        var request = RemoteRequest(.put, PathEncoding.document(id), [("new_edits", "false")])
        request.contentType = contentType
        return request
    }
}

/// A leaf of a remote document.
package struct DocumentLeaf: Hashable, Sendable {
    package let documentID: String
    package let revision: RevisionID

    package init(documentID: String, revision: RevisionID) {
        (self.documentID, self.revision) = (documentID, revision)
    }
}

extension RemoteRequest {
    /// Information about the server, with the UUID that it keeps.
    package static let server = RemoteRequest(.get, "/")

    /// Asks for a session. The body is a form with the name and password.
    package static let session: RemoteRequest = {
        var request = RemoteRequest(.post, "/_session")
        request.contentType = "application/x-www-form-urlencoded"
        return request
    }()
}
