import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatWeb

/// `/api/documents`, `/api/document`, `/api/revision` and `/api/difference`.
extension InspectorRoutes {
    private static let maximumPage = 200
    /// A larger body is only downloaded.
    private static let maximumShownBody = 2 << 20

    func documents(_ request: WebRequest) async throws -> WebReply {
        let collection = try await collection(request)
        let offset = try request.number("offset", in: 0...1_000_000_000, default: 0)
        let limit = try request.number("limit", in: 1...Self.maximumPage, default: 100)
        let filter = Self.filter(request)
        if filter == .prefix(""), offset == 0 {
            // The first page needs no positions, and must appear at once.
            let documents = try await collection.documents(DocumentListing(limit: limit))
            let count = try await Reading.run { Int(clamping: collection.count) }
            return Self.page(documents, from: 0, of: count, isCut: false)
        }
        let positions = try await lists.positions(filter, in: collection, version: try await version())
        let documents = try await positions.page(filter, from: offset, limit: limit, in: collection)
        return Self.page(documents, from: offset, of: positions.count, isCut: positions.isCut)
    }

    private static func page(_ documents: [Document], from offset: Int, of count: Int, isCut: Bool)
        -> WebReply
    {
        .json([
            "count": JSONValue(max(count, offset + documents.count)), "offset": JSONValue(offset),
            "isCut": .bool(isCut), "documents": .array(documents.map(DocumentRow.json)),
        ])
    }

    private static func filter(_ request: WebRequest) -> DocumentFilter {
        if let condition = request.query["where"], !condition.isEmpty { return .condition(condition) }
        if request.query["conflicts"] != nil { return .conflicts }
        return .prefix(request.query["prefix"] ?? "")
    }

    func document(_ request: WebRequest) async throws -> WebReply {
        let collection = try await collection(request)
        let id = try request.required("id")
        let json = try await Reading.run { () -> JSONValue in
            let revisions = try CollectionHistory(collection).revisions(of: id)
            let document = try collection.document(id: id)
            var json: JSONObject = [
                "collection": .string(collection.fullName), "id": .string(id),
                "revision": (revisions.first { $0.flags.contains("current") }?.id.text).map { .string($0) }
                    ?? .null,
                "isDeleted": .bool(document == nil), "revisions": .array(revisions.map(Self.json)),
                "conflicts": .array(Self.conflicts(among: revisions).map { .string($0.text) }),
            ]
            if let document {
                let bytes = document.json.bytes.count
                json["sequence"] = JSONValue(document.sequence)
                json["bytes"] = JSONValue(bytes)
                json["body"] = bytes <= Self.maximumShownBody ? document.element.value : .null
                json["blobs"] = .array(
                    BlobReference.all(in: document.json).prefix(1_000).map { .object($0.inspectorJSON) }
                )
            }
            if let expiration = try collection.getDocumentExpiration(id: id) {
                json["expires"] = JSONValue(Int64(expiration.timeIntervalSince1970 * 1_000))
            }
            return .object(json)
        }
        return .json(json)
    }

    private static func json(_ revision: CollectionHistory.TreeRevision) -> JSONValue {
        var json: JSONObject = [
            "id": .string(revision.id.text), "parent": revision.parent.map { .string($0.text) } ?? .null,
            "flags": .array(revision.flags.map { .string($0) }), "hasBody": .bool(revision.hasBody),
            "copyOf": revision.original.map { .string($0.text) } ?? .null,
        ]
        revision.addVersions(to: &json)
        return .object(json)
    }

    /// The live leaves that contend, the current one first; none if there is no conflict.
    private static func conflicts(among revisions: [CollectionHistory.TreeRevision]) -> [RevisionID] {
        let leaves = revisions.filter { revision in
            let flags = revision.flags
            guard flags.contains("leaf"), !flags.contains("deleted"), !flags.contains("closed") else {
                return false
            }
            return flags.contains("current") || flags.contains("conflict") || flags.contains("candidate")
        }
        guard leaves.count > 1 else { return [] }
        let current = leaves.filter { $0.flags.contains("current") }
        return (current + leaves.filter { !$0.flags.contains("current") }).map(\.id)
    }

    private static func body(_ id: String, _ text: String, in collection: LoveseatCore.Collection) throws
        -> JSONText
    {
        guard let revision = RevisionID(text) else {
            throw LoveseatError(.badRevisionID, "\"\(DocumentRow.cut(text))\" is not a revision ID")
        }
        return try CollectionHistory(collection).body(of: id, revision: revision)
    }

    func revision(_ request: WebRequest) async throws -> WebReply {
        let collection = try await collection(request)
        let (id, revision) = (try request.required("id"), try request.required("revision"))
        let body = try await Reading.run { try Self.body(id, revision, in: collection) }
        return .json(body.bytes)
    }

    func difference(_ request: WebRequest) async throws -> WebReply {
        let collection = try await collection(request)
        let id = try request.required("id")
        let (from, to) = (try request.required("from"), try request.required("to"))
        let json = try await Reading.run {
            let (old, new) = (
                try Self.body(id, from, in: collection), try Self.body(id, to, in: collection)
            )
            return JSONDifference(from: JSONElement(old).value, to: JSONElement(new).value).json
        }
        return .json(json)
    }
}
