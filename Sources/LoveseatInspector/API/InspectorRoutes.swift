import LoveseatCore
import LoveseatModel
import LoveseatWeb

/// The pages and the JSON API (docs/inspector.md).
final class InspectorRoutes: Sendable {
    let database: Database
    let backend: any InspectorBackend
    let finder: MeshFinder
    let live: LiveUpdates
    let lists = DocumentLists()
    let blobs = LatestReading<BlobUses>()
    let totals = LatestReading<JSONValue>()

    init(_ database: Database, _ backend: any InspectorBackend, _ finder: MeshFinder) {
        self.database = database
        self.backend = backend
        self.finder = finder
        live = LiveUpdates(database, backend)
    }

    func stop() {
        live.stop()
        finder.stop()
    }

    func respond(_ request: WebRequest) async throws -> WebReply {
        guard request.path.first == "api" else {
            return request.isPost ? .notFound : PageFiles.reply(request.path) ?? .notFound
        }
        guard request.path.count == 2 else { return .notFound }
        if request.isPost { return try await change(request) }
        switch request.path[1] {
        case "database": return try await databaseReply()
        case "totals": return try await totalsReply()
        case "documents": return try await documents(request)
        case "document": return try await document(request)
        case "revision": return try await revision(request)
        case "difference": return try await difference(request)
        case "query": return try await query(request)
        case "blobs": return try await blobList(request)
        case "blob": return try await blob(request)
        case "peers": return try await peers(request)
        case "pending": return try await pending(request)
        case "mesh": return try await mesh()
        case "live": return EventStream.reply(then: try live.subscribe())
        default: return .notFound
        }
    }

    private func change(_ request: WebRequest) async throws -> WebReply {
        guard request.path[1] == "save" else { return .notFound }
        let revision = try await backend.perform(InspectorEdit(try request.json()))
        return .json(["revision": .string(revision.text)])
    }

    /// The collection that a request names; the default one if it names none.
    func collection(_ request: WebRequest) async throws -> LoveseatCore.Collection {
        let text = request.query["collection"] ?? CollectionName.default.fullName
        guard let name = CollectionName(path: text) else {
            throw LoveseatError(
                .invalidParameter,
                "\"\(DocumentRow.cut(text))\" is not a collection's name: use scope.collection"
            )
        }
        let database = database
        let collections = try await Reading.run { try DatabaseInspection(database).collections() }
        guard let collection = collections.first(where: { $0.fullName == name.fullName }) else {
            throw LoveseatError(.notFound, "there is no collection \(name.fullName)")
        }
        return collection
    }

    /// A number that changes with every commit.
    func version() async throws -> Int {
        let database = database
        return try await Reading.run { try DatabaseInspection(database).dataVersion() }
    }
}

/// The files of the page, which are part of the program.
enum PageFiles {
    static func reply(_ path: [String]) -> WebReply? {
        guard path.count <= 1 else { return nil }
        switch path.first {
        case nil: return .content("text/html; charset=utf-8", PackageResources.index_html)
        case "style.css": return .content("text/css; charset=utf-8", PackageResources.style_css)
        case "icon.svg": return .content("image/svg+xml", PackageResources.icon_svg)
        case "main.js": return script(PackageResources.main_js)
        case "common.js": return script(PackageResources.common_js)
        case "documents.js": return script(PackageResources.documents_js)
        case "document.js": return script(PackageResources.document_js)
        case "tree.js": return script(PackageResources.tree_js)
        case "query.js": return script(PackageResources.query_js)
        case "blobs.js": return script(PackageResources.blobs_js)
        case "peers.js": return script(PackageResources.peers_js)
        case "mesh.js": return script(PackageResources.mesh_js)
        default: return nil
        }
    }

    private static func script(_ bytes: [UInt8]) -> WebReply {
        .content("text/javascript; charset=utf-8", bytes)
    }
}
