import LoveseatCouchDBReplication
import LoveseatModel

/// The right that a request needs.
enum EndpointRight: Sendable {
    /// None that a database gives: the resource belongs to the server.
    case nobody
    /// Replicating in either direction.
    case sync
    /// Reading documents.
    case read
    /// Writing documents.
    case write
    /// Both at once, as a copy does.
    case readAndWrite
    /// Managing a database, which concerns all of its clients. With an access policy, no client may.
    case own

    /// Whether a client that may only read, or that may only write, has the right.
    var isForReaders: Bool { [.nobody, .sync, .read].contains(self) }
    var isForWriters: Bool { [.nobody, .sync, .write].contains(self) }
}

/// A resource of the server: where it is, its methods with the right that each needs, and the code that answers.
struct Endpoint: Sendable {
    typealias Methods = KeyValuePairs<String, EndpointRight>

    enum Handler: Sendable {
        case server(@Sendable (CouchDBServer, Exchange) async throws -> Reply)
        /// A database that need not exist, by its name.
        case database(@Sendable (CouchDBServer, String, Exchange) async throws -> Reply)
        case collection(@Sendable (CouchDBServer, Databases.Entry, Exchange) async throws -> Reply)
        /// A document, or a part of it: gets what the path names.
        case document(
            @Sendable (CouchDBServer, DocumentPath, Databases.Entry, Exchange) async throws -> Reply
        )
    }

    /// A document's ID, and the rest of the path.
    struct DocumentPath: Sendable {
        let id: String
        let rest: [String]
    }

    /// The methods in the order of `Allow`.
    let methods: Methods
    /// Methods that CouchDB does not name in `Allow`.
    let unnamed: Methods
    /// Whether the resource answers other methods in its own way, and not with 405.
    let answersAll: Bool
    /// Refuses paths for which there is no such resource, whatever the method.
    let validate: @Sendable (DocumentPath) throws -> Void
    let handler: Handler

    init(
        _ methods: Methods,
        unnamed: Methods = [:],
        answersAll: Bool = false,
        validate: @escaping @Sendable (DocumentPath) throws -> Void = { _ in },
        _ handler: Handler
    ) {
        (self.methods, self.unnamed, self.answersAll) = (methods, unnamed, answersAll)
        (self.validate, self.handler) = (validate, handler)
    }

    private func named(_ method: String) -> EndpointRight? {
        methods.first { $0.key == method }?.value ?? unnamed.first { $0.key == method }?.value
    }

    private func listed(_ method: String) -> EndpointRight? {
        named(method) ?? (method == "HEAD" ? named("GET") : nil)
    }

    /// The right that a method needs. A client learns that a resource lacks a method only with the highest right to it.
    func right(for method: String) -> EndpointRight {
        if let right = listed(method) { return right }
        if case .server = handler { return .nobody }
        if method == "GET" || method == "HEAD" { return .read }
        let rights = (methods.map(\.value) + unnamed.map(\.value))
        return rights.contains(.own) ? .own : .readAndWrite
    }

    /// - Throws: `method_not_allowed`.
    func checkMethod(_ method: String) throws(CouchDBError) {
        if answersAll || listed(method) != nil { return }
        throw .methodNotAllowed(methods.map(\.key).joined(separator: ","))
    }
}

/// Answers the requests to one resource of the server. Its methods and the rights to them are in the table of endpoints.
protocol Resource: Sendable {
    var server: CouchDBServer { get }

    init(server: CouchDBServer)
}

extension Resource {
    init(_ server: CouchDBServer) { self.init(server: server) }
}
