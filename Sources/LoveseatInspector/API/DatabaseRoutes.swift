import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatWeb

/// `/api/database`, `/api/totals` and `/api/query`.
extension InspectorRoutes {
    func databaseReply() async throws -> WebReply {
        let database = database
        let json = try await Reading.run { () -> JSONValue in
            let path = database.path ?? ""
            let files = Self.size(of: path) { $0.hasPrefix("db.sqlite") }
            let blobs = Self.size(of: "\(path)/blobs") { _ in true }
            let collections = try DatabaseInspection(database).collections()
            return [
                "name": .string(database.name), "path": .string(path), "id": .string(try database.publicID),
                "bytes": JSONValue(files.bytes), "blobs": JSONValue(blobs.count),
                "blobBytes": JSONValue(blobs.bytes),
                "collections": .array(collections.map { .string($0.fullName) }),
            ]
        }
        return .json(json)
    }

    private static func size(of folder: String, where isCounted: (String) -> Bool) -> (
        count: Int, bytes: UInt64
    ) {
        // A database without blobs has no folder for them, and files may go while they are counted.
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder))?.filter(isCounted) ?? []
        let sizes = files.map { name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")
            return attributes?[.size] as? UInt64 ?? 0
        }
        return (files.count, sizes.reduce(0, +))
    }

    func totalsReply() async throws -> WebReply {
        let database = database
        let json = try await totals.value(version: try await version()) { () -> JSONValue in
            let collections = try DatabaseInspection(database).collections().map { collection -> JSONValue in
                let totals = try DatabaseInspection(database).totals(of: collection)
                return [
                    "name": .string(collection.fullName), "documents": JSONValue(totals.documents),
                    "tombstones": JSONValue(totals.tombstones), "bytes": JSONValue(totals.bytes),
                    "conflicts": JSONValue(totals.conflicts),
                ]
            }
            return ["collections": .array(collections)]
        }
        return .json(json)
    }

    func query(_ request: WebRequest) async throws -> WebReply {
        let text = try request.required("sql")
        let limit = try request.number(
            "limit",
            in: 1...QueryLimits.maximumRows,
            default: QueryLimits.maximumRows
        )
        let database = database
        let start = ContinuousClock.now
        var query = try await Reading.run { try database.createQuery(text) }
        query.deadline = QueryLimits.deadline
        var rows: [UInt8] = []
        var (count, isCut) = (0, false)
        for try await row in query.rows() {
            guard count < limit, rows.count < QueryLimits.maximumBytes else {
                isCut = true
                break
            }
            if count > 0 { rows.append(UInt8(ascii: ",")) }
            rows += Array(row.json.utf8)
            count += 1
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let columns = JSONValue.array(query.columns.map { .string($0) })
        let head =
            "{\"columns\":\(columns),\"isCut\":\(isCut),\"milliseconds\":\(Int(seconds * 1_000)),\"rows\":["
        return .json(Array(head.utf8) + rows + Array("]}".utf8))
    }
}
