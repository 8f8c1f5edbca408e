import Crypto
import LoveseatCouchDBReplication
import LoveseatModel

/// An index of Mango: one of the IDs, or one that a design document describes, which replicates (protocol/couchdb.md §4.9).
struct MangoIndex: Sendable {
    /// The design document's ID; nil for the index of the IDs.
    let designID: String?
    let name: String
    let fields: [Selector.FieldPath]
    /// As the client gave them, with directions.
    private let definition: JSONValue
    /// The condition of the documents that are in the index. Such an index is used only by those who name it.
    let partialFilter: Selector?

    static let ofIDs = MangoIndex(
        designID: nil,
        name: "_all_docs",
        fields: [["_id"]],
        definition: ["fields": [["_id": "asc"]]],
        partialFilter: nil
    )

    /// The ID of a design document, which may be given without its prefix.
    static func designID(_ name: String) -> String {
        name.beginsExactly(with: "_design/") ? name : "_design/\(name)"
    }

    var description: JSONValue {
        guard let designID else {
            return ["ddoc": nil, "name": .string(name), "type": "special", "def": definition]
        }
        return [
            "ddoc": .string(designID), "name": .string(name), "type": "json", "partitioned": false,
            "def": definition,
        ]
    }

    /// The name of the SQL index that finds documents for this one.
    var sqlName: String {
        var bytes: [UInt8] = []
        for byte in "\(designID ?? "")/\(name)".utf8 {
            switch byte {
            case UInt8(ascii: "%"): bytes += "%25".utf8
            case UInt8(ascii: "\""): bytes += "%22".utf8
            case 0: bytes += "%00".utf8
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The indexes that a design document describes.
    static func all(in body: JSONValue, id: String) -> [MangoIndex] {
        guard body["language"] == "query", let views = body["views"]?.object else { return [] }
        return views.sorted { $0.key.bytesPrecede($1.key) }.compactMap { name, view in
            let definition = view["options"]?["def"]
            guard let list = definition?["fields"] ?? view["map"]?["fields"] else { return nil }
            // An older CouchDB has an object here.
            let items = list.array ?? list.object.map { $0.map { .object([$0.key: $0.value]) } } ?? []
            // Clients store design documents as they like.
            guard let (fields, _) = try? FindRequest.sort(.array(items)) else { return nil }
            let filter = definition?["partial_filter_selector"] ?? view["map"]?["partial_filter_selector"]
            let isPartial = filter?.object?.isEmpty == false
            let selector = filter.flatMap { try? Selector(parsing: $0) }
            // A condition that is not understood is not ignored.
            if isPartial, selector == nil { return nil }
            let shown = items.map { item in item.string.map { .object([$0: "asc"]) } ?? item }
            var stated: JSONValue = ["fields": .array(shown)]
            if isPartial { stated["partial_filter_selector"] = filter }
            return MangoIndex(
                designID: id,
                name: name,
                fields: fields,
                definition: stated,
                partialFilter: isPartial ? selector : nil
            )
        }
    }
}

/// A request for a new index.
struct IndexRequest: Sendable {
    let designID: String
    let name: String
    /// The view to store in the design document.
    let view: JSONValue

    /// - Throws: ``CouchDBError`` with the words of CouchDB.
    init(_ body: JSONValue) throws(CouchDBError) {
        guard let members = body.object else { throw .badRequest("Request body must be a JSON object") }
        for key in members.keys.sorted()
        where !["index", "type", "name", "ddoc", "w", "partitioned"].contains(key) {
            throw CouchDBError(400, "invalid_key", "Invalid key \(key) for this request.")
        }
        guard let index = members["index"] else {
            throw CouchDBError(400, "missing_required_key", "Missing required key: index")
        }
        switch members["type"] ?? "json" {
        case "json": break
        case "text":
            throw CouchDBError(503, "required index service unavailable", "text")
        case let type:
            throw CouchDBError(
                400,
                "invalid_index",
                "Invalid type for index: \(type.string ?? erlangTerm(type))"
            )
        }
        guard index.object != nil else {
            throw CouchDBError(400, "invalid_index", "Missing or invalid index: \(erlangTerm(index))")
        }
        guard let list = index["fields"] else {
            throw CouchDBError(400, "missing_required_key", "Missing required key: fields")
        }
        let (fields, isDescending) = try FindRequest.sort(list)
        let filter = index["partial_filter_selector"] ?? [:]
        let condition: Selector
        do { condition = try Selector(parsing: filter) } catch {
            throw CouchDBError(400, error.error, error.reason)
        }
        let map: JSONValue = [
            "fields": FindRequest.directions(of: fields, isDescending: isDescending),
            "partial_filter_selector": condition.description,
        ]
        var definition: JSONValue = ["fields": list]
        if filter != [:] { definition["partial_filter_selector"] = filter }
        view = ["map": map, "reduce": "_count", "options": ["def": definition]]
        let givenName = try Self.name(members["name"])
        name = givenName ?? Self.hash(definition)
        // Indexes of other names are in design documents of their own.
        let named = givenName.map { ["definition": definition, "name": .string($0)] } ?? definition
        designID = MangoIndex.designID(try Self.name(members["ddoc"]) ?? Self.hash(named))
    }

    private static func name(_ value: JSONValue?) throws(CouchDBError) -> String? {
        guard let value else { return nil }
        guard let text = value.string, !text.isEmpty else {
            throw CouchDBError(400, "invalid_index_name", "Invalid index name: \(erlangTerm(value))")
        }
        return text
    }

    private static func hash(_ value: JSONValue) -> String {
        Insecure.SHA1.hash(data: JSONText(canonical: value).bytes)
            .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
