import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatStorage

/// The parameters of a request for the changes feed (protocol/couchdb.md §5).
struct ChangesRequest: Sendable {
    enum Feed: Sendable {
        case normal, longpoll, continuous, eventsource

        /// Whether the rows are the items of one array.
        var hasSeparators: Bool { self == .normal || self == .longpoll }
    }

    /// Which documents are reported.
    enum Filter: Sendable {
        case none
        case ids(DocumentSet)
        case design
        case selector(Selector)

        func passes(_ record: DocumentRecord) -> Bool {
            passes(record.id, record.revision, isDeleted: record.isDeleted, record.body)
        }

        func passes(_ id: String, _ revision: RevisionID, isDeleted: Bool, _ body: JSONText) -> Bool {
            switch self {
            case .none: return true
            case .ids(let ids): return ids.contains(id)
            case .design: return id.beginsExactly(with: "_design/")
            case .selector(let selector):
                var document = JSONElement(body).value
                document["_id"] = .string(id)
                document["_rev"] = .string(revision.text)
                if isDeleted { document["_deleted"] = true }
                return selector.matches(document)
            }
        }

        /// Whether the rest is counted without the filter, as CouchDB does for filters of its own.
        var countsRest: Bool { if case .selector = self { false } else { true } }
    }

    /// The longest silence of a feed, in milliseconds.
    private static let longestWait = 60_000

    var feed = Feed.normal
    var since: UInt64 = 0
    var limit = Int.max
    var allLeaves = false
    var isDescending = false
    var withDocuments = false
    var options = DocumentOptions()
    /// Milliseconds between signs of life; nil for none.
    var heartbeat: Int?
    /// Milliseconds of silence after which the feed ends.
    var timeout = longestWait
    var filter = Filter.none

    init(
        _ exchange: Exchange,
        _ body: JSONElement?,
        _ entry: Databases.Entry,
        design: (String) async throws -> JSONElement?
    ) async throws {
        let query = exchange.query
        switch query["feed"] ?? "normal" {
        case "normal", "": feed = .normal
        case "longpoll": feed = .longpoll
        case "continuous", "live": feed = .continuous
        case "eventsource": feed = .eventsource
        default:
            throw CouchDBError.badRequest(
                "Supported `feed` types: normal, continuous, live, longpoll, eventsource"
            )
        }
        var text = query["since"]
        if let id = query["last-event-id"] { text = id }
        if feed == .eventsource, let id = exchange.header("Last-Event-ID") { text = id }
        if let text { since = try entry.position(of: text) }
        limit = try query.count("limit") ?? .max
        switch query["style"] ?? "main_only" {
        case "all_docs": allLeaves = true
        case "main_only", "": break
        default: throw CouchDBError.badRequest("unknown style")
        }
        isDescending = try query.flag("descending") ?? false
        withDocuments = try query.flag("include_docs") ?? false
        options.withConflicts = query.isSet("conflicts")
        options.withAttachments = query.isSet("attachments")
        options.withEncoding = query.isSet("att_encoding_info")
        try readTimes(query)
        try await readFilter(query, body, isPost: exchange.method == "POST", design)
    }

    private mutating func readTimes(_ query: Query) throws {
        if let text = query["heartbeat"] {
            if text == "true" {
                heartbeat = Self.longestWait
            } else if text != "false" {
                guard let beat = Int(text), beat > 0 else {
                    throw CouchDBError.badRequest(
                        "The heartbeat value should be a positive integer (in milliseconds)."
                    )
                }
                heartbeat = min(max(beat, 100), Self.longestWait)
            }
        }
        if let wait = try query.integer("timeout") { timeout = min(max(wait, 0), Self.longestWait) }
    }

    private mutating func readFilter(
        _ query: Query,
        _ body: JSONElement?,
        isPost: Bool,
        _ design: (String) async throws -> JSONElement?
    ) async throws {
        switch query["filter"] ?? body?["filter"]?.string ?? "" {
        case "": break
        case "_doc_ids":
            var list = body?["doc_ids"]
            if list == nil, let text = query["doc_ids"] { list = try RequestJSON.parse(Array(text.utf8)) }
            guard let list, list.kind == .array else {
                throw CouchDBError.badRequest("`doc_ids` filter parameter is not a list of doc ids.")
            }
            filter = .ids(DocumentSet(list.items.compactMap(\.string)))
        case "_design": filter = .design
        case "_selector":
            guard isPost else { throw CouchDBError.badRequest("Selector must be specified in POST payload") }
            guard let selector = body?["selector"] else {
                throw CouchDBError.badRequest("Selector must be specified in POST payload")
            }
            guard selector.kind == .object else {
                throw CouchDBError.badRequest("Selector error: expected a JSON object")
            }
            try RequestJSON.checkConditions(selector)
            do { filter = .selector(try Selector(parsing: selector.value)) } catch {
                throw CouchDBError.badRequest("Selector error: \(error.reason)")
            }
        case "_view":
            guard let view = query["view"], view.split(separator: "/").count == 2 else {
                throw CouchDBError.badRequest("`view` must be of the form `designname/viewname`")
            }
            try await refuse(view, member: "views", design)
        case let name where name.beginsExactly(with: "_"):
            throw CouchDBError.badRequest("unknown builtin filter name")
        case let name: try await refuse(name, member: "filters", design)
        }
    }

    /// Functions of design documents are not run.
    private func refuse(_ name: String, member: String, _ design: (String) async throws -> JSONElement?)
        async throws
        -> Never
    {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else {
            throw CouchDBError.badRequest("`filter` must be of the form `designname/filtername`")
        }
        guard let document = try await design("_design/" + parts[0]) else { throw CouchDBError.missing }
        guard document[member]?[parts[1]] != nil else {
            throw CouchDBError.notFound("missing json key: \(document[member] == nil ? member : parts[1])")
        }
        throw CouchDBError.notImplemented(
            "this listener stores design documents, and does not run their functions"
        )
    }
}
