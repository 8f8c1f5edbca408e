import Foundation
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// What a listener lists, and asks for again in every way of fetching.
struct ListedRevisions {
    private let path: String
    private let client: RawClient

    init(of database: String, at listener: CouchDBListener) throws {
        path = "/\(database)"
        client = RawClient(port: try #require(listener.port))
    }

    private func ask(_ method: String, _ target: String, _ body: JSONValue? = nil) async throws
        -> RawClient.Answer
    {
        let (client, path) = (client, path)
        let bytes = body.map { JSONText(canonical: $0).bytes }
        let headers = [("Accept", "application/json"), ("Content-Type", "application/json")]
        return try await offPool { try client.send(method, path + target, headers, body: bytes) }
    }

    /// A sentence for each revision that is listed somewhere and is not served somewhere.
    func unserved() async throws -> [String] {
        var listed: [String: Set<String>] = [:]
        for style in ["main_only", "all_docs"] {
            let rows = try await ask("GET", "/_changes?style=\(style)").json["results"]?.array ?? []
            for row in rows {
                let leaves = row["changes"]?.array?.compactMap { $0["rev"]?.string } ?? []
                listed[row["id"]?.string ?? "", default: []].formUnion(leaves)
            }
        }
        let all = try await ask("GET", "/_all_docs?include_docs=true&conflicts=true").json["rows"]?.array
        for row in all ?? [] {
            let conflicts = row["doc"]?["_conflicts"]?.array?.compactMap(\.string) ?? []
            let current = row["value"]?["rev"]?.string
            listed[row["id"]?.string ?? "", default: []].formUnion([current].compactMap { $0 } + conflicts)
        }
        var found: [String] = []
        for (id, revisions) in listed.sorted(by: { $0.key < $1.key }) {
            for (way, served) in try await served(id, revisions.sorted()) {
                found += revisions.subtracting(served).map { "\(path)/\(id) lists \($0), not in \(way)" }
                // No leaf is known to one way only.
                found += served.subtracting(revisions).map { "\(way) of \(path)/\(id) has \($0), not listed" }
            }
        }
        return found
    }

    private func served(_ id: String, _ revisions: [String]) async throws -> [String: Set<String>] {
        let list = JSONText(canonical: .array(revisions.map { .string($0) })).description
        let query = list.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        var served: [String: Set<String>] = [:]
        for (way, target) in ["open_revs=all": "all", "open_revs": query] {
            let answer = try await ask("GET", "/\(id)?open_revs=\(target)&revs=true").json.array
            served[way] = Set(answer?.compactMap { $0["ok"]?["_rev"]?.string } ?? [])
        }
        let wanted = revisions.map { ["id": .string(id), "rev": .string($0)] as JSONValue }
        for (way, documents) in ["_bulk_get": wanted, "_bulk_get of all": [["id": .string(id)]]] {
            let answer = try await ask("POST", "/_bulk_get?revs=true", ["docs": .array(documents)]).json
            let items = answer["results"]?.array?.flatMap { $0["docs"]?.array ?? [] } ?? []
            served[way] = Set(items.compactMap { $0["ok"]?["_rev"]?.string })
        }
        for revision in revisions {
            let answer = try await ask("GET", "/\(id)?rev=\(revision)")
            if answer.status == 200 { served["GET", default: []].insert(answer.json["_rev"]?.string ?? "") }
        }
        return served
    }
}
