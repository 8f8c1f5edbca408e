import Foundation
import LoveseatCouchDBReplication
import LoveseatModel

/// The body of a request to find documents (protocol/couchdb.md §4.9).
struct FindRequest: Sendable {
    /// The end of an answer, where the next one goes on.
    struct Bookmark: Sendable {
        var keys: [JSONValue] = []
        var id: String

        /// - Throws: `invalid_bookmark`.
        init?(_ text: String) throws(CouchDBError) {
            if text.isEmpty || text == "nil" { return nil }
            let base64 = text.replacing("-", with: "+").replacing("_", with: "/")
            let padding = String(repeating: "=", count: (4 - base64.count % 4) % 4)
            guard let data = Data(base64Encoded: base64 + padding),
                let value = try? JSONElement(parsing: Array(data)).value, let id = value["id"]?.string,
                let keys = value["keys"]?.array
            else { throw CouchDBError(400, "invalid_bookmark", "Invalid bookmark value: \"\(text)\"") }
            (self.keys, self.id) = (keys, id)
        }

        init(keys: [JSONValue], id: String) { (self.keys, self.id) = (keys, id) }

        var text: String {
            let value: JSONValue = ["id": .string(id), "keys": .array(keys)]
            return Data(JSONText(canonical: value).bytes).base64EncodedString()
                .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
    }

    static let defaultLimit = 25

    let selector: Selector
    var limit = defaultLimit
    var skip = 0
    var sort: [Selector.FieldPath] = []
    var isDescending = false
    /// The fields that the client wants; none for all.
    var fields: [Selector.FieldPath] = []
    var bookmark: Bookmark?
    /// A design document, or one and the name of its index.
    var useIndex: [String] = []
    var withConflicts = false
    var withStatistics = false
    var allowsFallback = true

    /// - Throws: ``CouchDBError`` with the words of CouchDB.
    init(_ body: JSONValue) throws(CouchDBError) {
        guard case .object(let members) = body else {
            throw .badRequest("Request body must be a JSON object")
        }
        guard let selector = members["selector"] else {
            throw CouchDBError(400, "missing_required_key", "Missing required key: selector")
        }
        guard selector.object != nil else {
            throw CouchDBError(
                400,
                "invalid_selector_json",
                "Selector must be a JSON object, not: \(erlangTerm(selector, quotesText: false))"
            )
        }
        do { self.selector = try Selector(parsing: selector) } catch {
            throw CouchDBError(400, error.error, error.reason)
        }
        for (key, value) in members.sorted(by: { $0.key.bytesPrecede($1.key) }) where key != "selector" {
            try read(key, value)
        }
        guard allowsFallback || !useIndex.isEmpty else {
            throw CouchDBError(
                400,
                "invalid_index",
                "You must specify an index with the `use_index` parameter."
            )
        }
    }

    private mutating func read(_ key: String, _ value: JSONValue) throws(CouchDBError) {
        switch key {
        case "limit": limit = try Self.count(value)
        case "skip": skip = try Self.count(value)
        case "r", "partition", "stale", "update", "stable": break
        case "conflicts": withConflicts = try Self.flag(value)
        case "execution_stats": withStatistics = try Self.flag(value)
        case "allow_fallback": allowsFallback = try Self.flag(value)
        case "sort": (sort, isDescending) = try Self.sort(value)
        case "fields":
            if value == "all_fields" { return }
            guard let items = value.array else {
                throw CouchDBError(
                    400,
                    "invalid_fields_json",
                    "Fields must be an array of strings, not: \(erlangTerm(value, quotesText: false))"
                )
            }
            for item in items {
                guard let text = item.string else {
                    throw CouchDBError(
                        400,
                        "invalid_field_json",
                        "Invalid JSON for field spec: \(erlangTerm(item))"
                    )
                }
                fields.append(Selector.names(in: text))
            }
        case "bookmark":
            guard let text = value.string else {
                throw CouchDBError(400, "invalid_bookmark", "Invalid bookmark value: \(erlangTerm(value))")
            }
            bookmark = try Bookmark(text)
        case "use_index":
            let texts = value.string.map { [$0] } ?? value.array?.compactMap(\.string) ?? []
            guard texts.count <= 2, value.string != nil || value.array?.count == texts.count else {
                throw CouchDBError(400, "invalid_index_name", "Invalid index name: \(erlangTerm(value))")
            }
            useIndex = texts
            if let document = texts.first { useIndex[0] = MangoIndex.designID(document) }
        default: throw CouchDBError(400, "invalid_key", "Invalid key \(key) for this request.")
        }
    }

    private static func count(_ value: JSONValue) throws(CouchDBError) -> Int {
        if let count = value.int, count >= 0 { return count }
        throw CouchDBError(
            400,
            "invalid_non_neg_integer",
            "\(erlangTerm(value, quotesText: false)) is not an integer greater than or equal to zero"
        )
    }

    private static func flag(_ value: JSONValue) throws(CouchDBError) -> Bool {
        if let flag = value.bool { return flag }
        throw CouchDBError(400, "invalid_boolean", "\(erlangTerm(value, quotesText: false)) is not a boolean")
    }

    /// Fields with their direction, as CouchDB shows them.
    static func directions(of paths: [Selector.FieldPath], isDescending: Bool) -> JSONValue {
        var members = JSONObject()
        for path in paths { members[Selector.text(of: path)] = isDescending ? "desc" : "asc" }
        return .object(members)
    }

    /// The fields to sort by, or of an index, and whether in falling order.
    static func sort(_ value: JSONValue) throws(CouchDBError) -> ([Selector.FieldPath], Bool) {
        guard let items = value.array else {
            throw CouchDBError(
                400,
                "invalid_sort_json",
                "Sort must be an array of sort specs, not: \(erlangTerm(value))"
            )
        }
        var paths: [Selector.FieldPath] = []
        var (isAscending, isDescending) = (false, false)
        for item in items {
            if let text = item.string {
                paths.append(Selector.names(in: text))
                isAscending = true
            } else if let members = item.object, members.count == 1, let path = members.keys.first,
                let direction = members[path]
            {
                guard let text = direction.string, ["asc", "desc"].contains(text) else {
                    throw CouchDBError(
                        400,
                        "invalid_sort_dir",
                        "Invalid sort direction: \(erlangTerm(direction))"
                    )
                }
                paths.append(Selector.names(in: path))
                if text == "desc" { isDescending = true } else { isAscending = true }
            } else {
                throw CouchDBError(400, "invalid_sort_field", "Invalid sort field: \(erlangTerm(item))")
            }
        }
        guard !(isAscending && isDescending) else {
            throw CouchDBError(
                400,
                "unsupported_mixed_sort",
                "Sorts currently only support a single direction for all fields."
            )
        }
        return (paths, isDescending)
    }
}
