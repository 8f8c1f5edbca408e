import LoveseatCouchDBReplication
import LoveseatModel

/// All resources of the server. Routing, rights, `Allow` and CORS go by this table.
extension Endpoint {
    private static let read: Methods = ["GET": .nobody, "HEAD": .nobody]

    static let root = Endpoint(read, .server { server, _ in ServerResource(server).welcome })

    /// Resources of the server, by their names.
    static let server: [ExactText: Endpoint] = [
        "_up": Endpoint(read, .server { _, _ in .json(200, ["status": "ok", "seeds": [:]]) }),
        "_session": Endpoint(
            ["GET": .nobody, "HEAD": .nobody, "POST": .nobody, "DELETE": .nobody],
            .server { try await SessionResource($0).answer($1) }
        ),
        "_all_dbs": Endpoint(read, .server { try ServerResource($0).allDatabases($1) }),
        "_dbs_info": Endpoint(
            ["GET": .nobody, "HEAD": .nobody, "POST": .nobody],
            .server { try await ServerResource($0).databaseInfos($1) }
        ),
        "_uuids": Endpoint(read, .server { try ServerResource($0).uuids($1) }),
        "_active_tasks": Endpoint(read, .server { ServerResource($0).tasks(for: $1) }),
        "_membership": Endpoint(read, .server { server, _ in ServerResource(server).membership }),
        "_scheduler": Endpoint(
            [:],
            answersAll: true,
            .server { _, _ in .json(200, ["total_rows": 0, "offset": 0, "jobs": [], "docs": []]) }
        ),
        // As CouchDB, which reads the body before it looks at the method.
        "_replicate": Endpoint(
            ["POST": .nobody],
            unnamed: read,
            .server { try await ReplicateResource($0).replicate($1) }
        ),
    ]

    static let database = Endpoint(
        ["DELETE": .own, "GET": .sync, "HEAD": .sync, "POST": .write],
        unnamed: ["PUT": .own],
        .database { try await DatabaseResource($0).answer($1, $2) }
    )

    private static let reading: Methods = ["GET": .read, "HEAD": .read, "POST": .read]

    /// Resources of a database, by their names.
    static let collection: [ExactText: Endpoint] = [
        "_all_docs": Endpoint(
            reading,
            .collection { try await AllDocumentsResource($0).allDocuments($1, $2, range: .all) }
        ),
        "_design_docs": Endpoint(
            reading,
            .collection { try await AllDocumentsResource($0).allDocuments($1, $2, range: .design) }
        ),
        "_local_docs": Endpoint(
            reading,
            .collection { try await LocalDocumentResource($0).localDocuments($1, $2) }
        ),
        "_changes": Endpoint(reading, .collection { try await ChangesResource($0).changes($1, $2) }),
        "_bulk_docs": Endpoint(
            ["POST": .write],
            .collection { try await BulkDocumentsResource($0).bulkDocuments($1, $2) }
        ),
        "_bulk_get": Endpoint(["POST": .read], .collection { try await BulkGetResource($0).bulkGet($1, $2) }),
        "_revs_diff": Endpoint(
            ["POST": .sync],
            .collection { try await RevisionsResource($0).revisionsDifference($1, $2, isOld: false) }
        ),
        "_missing_revs": Endpoint(
            ["POST": .sync],
            .collection { try await RevisionsResource($0).revisionsDifference($1, $2, isOld: true) }
        ),
        "_ensure_full_commit": Endpoint(
            ["POST": .sync],
            .collection { try await MaintenanceResource($0).fullCommit($1, $2) }
        ),
        "_compact": Endpoint(["POST": .own], .collection { try MaintenanceResource($0).compact($1, $2) }),
        "_view_cleanup": Endpoint(
            ["POST": .own],
            .collection { try await MaintenanceResource($0).cleanUpViews($1, $2) }
        ),
        "_security": Endpoint(
            ["PUT": .own, "GET": .read],
            .collection { try await SecurityResource($0).security($1, $2) }
        ),
        "_revs_limit": Endpoint(
            ["PUT": .own, "GET": .read],
            .collection { try await MaintenanceResource($0).revisionsLimit($1, $2) }
        ),
        "_purge": Endpoint(["POST": .own], .collection { try await PurgeResource($0).purge($1, $2) }),
        "_purged_infos_limit": Endpoint(
            ["GET": .read, "HEAD": .read],
            .collection { _, _, _ in .json(200, 1_000) }
        ),
        "_temp_view": Endpoint(
            [:],
            answersAll: true,
            .collection { _, _, _ in
                throw CouchDBError(410, "gone", "Temporary views are not supported in CouchDB")
            }
        ),
        "_find": Endpoint(["POST": .read], .collection { try await FindResource($0).find($1, $2) }),
        "_explain": Endpoint(["POST": .read], .collection { try await FindResource($0).explain($1, $2) }),
        "_index": Endpoint(
            ["GET": .read, "POST": .readAndWrite],
            .collection { try await IndexResource($0).index($1, $2) }
        ),
    ]

    static let listQueries = Endpoint(
        ["POST": .read],
        .collection { try await AllDocumentsResource($0).allDocumentQueries($1, $2) }
    )

    /// One index of a database: `_index/{design document}/json/{name}`.
    static let index = Endpoint(
        ["DELETE": .readAndWrite],
        .document { server, path, entry, exchange in
            try await IndexResource(server).deleteIndex(entry, path.rest, exchange)
        }
    )

    static let local = Endpoint(
        ["DELETE": .write, "GET": .sync, "HEAD": .sync, "PUT": .sync],
        validate: { path in
            guard path.rest.isEmpty else {
                throw CouchDBError.badRequest("_local documents do not accept attachments.")
            }
        },
        .document { try await LocalDocumentResource($0).answer($1.id, $2, $3) }
    )
    static let document = Endpoint(
        ["DELETE": .write, "GET": .read, "HEAD": .read, "PUT": .write, "COPY": .readAndWrite],
        validate: { try IncomingDocument.check($0.id) },
        .document { try await DocumentResource($0).answer($1.id, $2, $3) }
    )
    static let attachment = Endpoint(
        ["GET": .read, "HEAD": .read, "DELETE": .write, "PUT": .write],
        validate: { try IncomingDocument.check($0.id) },
        .document {
            try await AttachmentResource($0).answer($1.id, $1.rest.joined(separator: "/"), $2, $3)
        }
    )
    /// Functions of design documents, which are stored and not run.
    static let designFunction = Endpoint(
        ["GET": .read, "HEAD": .read, "PUT": .write, "DELETE": .write],
        answersAll: true,
        .document { try await DocumentResource($0).designFunction($1, $2, $3) }
    )

    static let all: [Endpoint] =
        Array(server.values) + Array(collection.values)
        + [root, database, listQueries, index, local, document, attachment, designFunction]

    /// The methods that pages of other origins may use, in CouchDB's order.
    static let methodsForPages: [String] = {
        let methods = Set(all.flatMap { ($0.methods.map(\.key) + $0.unnamed.map(\.key)) })
        return ["GET", "PUT", "POST", "HEAD", "DELETE", "OPTIONS", "COPY"].filter {
            $0 == "OPTIONS" || methods.contains($0)
        }
    }()

    // MARK: Finding

    /// The resource at a path.
    struct Target: Sendable {
        let endpoint: Endpoint
        var path = DocumentPath(id: "", rest: [])
        /// Whether there is nothing at this path. Rights to it are those to the endpoint.
        var isMissing = false
    }

    /// Returns the resource that a path names.
    ///
    /// - Throws: an error for a path at which a server can have nothing.
    static func find(_ exchange: Exchange) throws(CouchDBError) -> Target {
        let path = exchange.path
        guard let first = path.first else { return Target(endpoint: root) }
        if first.beginsExactly(with: "_") {
            guard path.count == 1 || first.isExactly("_scheduler") else { throw .missing }
            guard let endpoint = server[ExactText(first)] else {
                if exchange.isRead { throw .noDatabase }
                throw .illegalDatabaseName(first)
            }
            return Target(endpoint: endpoint)
        }
        guard path.count > 1 else { return Target(endpoint: database) }
        let (second, rest) = (path[1], Array(path.dropFirst(2)))
        if second.isExactly("_design") || second.isExactly("_local") {
            guard let name = rest.first else {
                let endpoint = second.isExactly("_local") ? local : document
                return Target(
                    endpoint: endpoint,
                    path: DocumentPath(id: second, rest: []),
                    isMissing: true
                )
            }
            return documentTarget("\(second)/\(name)", Array(rest.dropFirst()))
        }
        let isDocument =
            !second.beginsExactly(with: "_") || second.beginsExactly(with: "_design/")
            || second.beginsExactly(with: "_local/")
        return isDocument ? documentTarget(second, rest) : collectionTarget(second, rest)
    }

    private static func documentTarget(_ id: String, _ rest: [String]) -> Target {
        let isFunction =
            id.beginsExactly(with: "_design/") && rest.first.map { $0.beginsExactly(with: "_") } ?? false
        let endpoint =
            if id.beginsExactly(with: "_local/") { local } else if isFunction {
                designFunction
            } else if rest.isEmpty { document } else { attachment }
        return Target(endpoint: endpoint, path: DocumentPath(id: id, rest: rest))
    }

    private static func collectionTarget(_ name: String, _ rest: [String]) -> Target {
        let path = DocumentPath(id: name, rest: rest)
        if name.isExactly("_index"), !rest.isEmpty { return Target(endpoint: index, path: path) }
        if name.isExactly("_all_docs"), rest == ["queries"] {
            return Target(endpoint: listQueries, path: path)
        }
        guard let endpoint = collection[ExactText(name)] else {
            return Target(endpoint: unknown, path: path, isMissing: true)
        }
        return Target(endpoint: endpoint, path: path, isMissing: !rest.isEmpty)
    }

    /// A name that no resource of a database has.
    private static let unknown = Endpoint(
        [:],
        answersAll: true,
        .collection { _, _, _ in throw CouchDBError.missing }
    )
}
