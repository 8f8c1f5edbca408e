import Foundation
import LoveseatCore
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// `/api/documents`, `/api/document`, `/api/totals`, `/api/query` and `/api/blobs`.
struct DocumentTests {
    private static func name(_ number: Int) -> String { "d\(String(10_000 + number).dropFirst())" }

    private func fill(_ database: Database, _ count: Int) throws {
        let collection = try database.defaultCollection()
        try database.write { transaction in
            for number in 0..<count {
                _ = try transaction.save(
                    Document(
                        id: Self.name(number),
                        ["n": JSONValue(number), "text": .string("row \(number)")]
                    ),
                    in: collection
                )
            }
        }
    }

    @Test func `any page of a list is found by its position`() async throws {
        let server = try await InspectorServer { try fill($0, 2_345) }
        for offset in [0, 1, 499, 500, 501, 999, 1_000, 1_777, 2_300, 2_344] {
            let page = try await server.json("/api/documents", ["offset": "\(offset)", "limit": "50"])
            #expect(page["count"]?.int == 2_345)
            let ids = page["documents"]?.array?.compactMap { $0["id"]?.string }
            #expect(ids == (offset..<min(offset + 50, 2_345)).map(Self.name), "\(offset)")
        }
        #expect(try await server.json("/api/documents", ["offset": "2345"])["documents"] == [])
        let prefix = try await server.json("/api/documents", ["prefix": "d12", "offset": "95"])
        #expect(prefix["count"]?.int == 100)
        #expect(prefix["documents"]?.array?.count == 5)
        let condition = try await server.json(
            "/api/documents",
            ["where": "n >= 2000 AND n < 2200", "offset": "150"]
        )
        #expect(condition["count"]?.int == 200)
        #expect(condition["documents"]?[0]?["id"]?.string == Self.name(2_150))
        try await server.stop()
    }

    @Test func `a list shows what was saved meanwhile`() async throws {
        let server = try await InspectorServer()
        #expect(try await server.json("/api/documents")["count"]?.int == 0)
        try server.collection.save(Document(id: "a", ["n": 1]))
        #expect(try await server.json("/api/documents")["count"]?.int == 1)
        let made = try server.database.createCollection(name: "notes", scope: "travel")
        try made.save(Document(id: "b", ["n": 2]))
        let page = try await server.json("/api/documents", ["collection": "travel.notes"])
        #expect(page["documents"]?[0]?["id"]?.string == "b")
        try await server.stop()
    }

    @Test func `rows are cut to what fits, whatever a document contains`() async throws {
        let server = try await InspectorServer()
        let long = String(repeating: "<img src=x onerror=alert(1)>", count: 10_000)
        var properties: JSONObject = ["html": .string(long), "nested": .array([.object([long: 1])])]
        for number in 0..<50 { properties["p\(number)"] = JSONValue(number) }
        try server.collection.save(Document(id: "<b>hostile</b>", properties))
        let reply = try await server.get("/api/documents")
        #expect(reply.headers["content-type"] == "application/json")
        #expect(reply.body.count < 3_000)
        let row = try JSONValue(parsing: reply.text)["documents"]?[0]
        #expect(row?["id"]?.string == "<b>hostile</b>")
        #expect(row?["values"]?.array?.count == 8)
        #expect(row?["values"]?[0]?[1]?.string == "string")
        try await server.stop()
    }

    @Test func `a document has its body, revisions and blobs`() async throws {
        let server = try await InspectorServer()
        let png: [UInt8] =
            [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + [UInt8](repeating: 1, count: 300_000)
        let picture = try server.database.saveBlob(png, contentType: "image/png")
        let script = try server.database.saveBlob(
            Array("<script>alert(1)</script>".utf8),
            contentType: "image/png"
        )
        var document = Document(id: "a/b", ["photo": picture.json, "fake": script.json])
        try server.collection.save(&document)
        document["n"] = 2
        try server.collection.save(&document)
        let shown = try await server.json("/api/document", ["id": "a/b"])
        #expect(shown["body"]?["n"]?.int == 2)
        #expect(shown["revisions"]?.array?.count == 2)
        #expect(shown["conflicts"] == [])
        #expect(shown["blobs"]?.array?.count == 2)
        let list = try await server.json("/api/blobs")
        #expect(list["count"]?.int == 2)
        #expect(list["blobs"]?[0]?["digest"]?.string == picture.digest.text)
        #expect(list["blobs"]?[0]?["referrers"]?[0]?[1]?.string == "a/b")
        let content = try await server.get("/api/blob", ["digest": picture.digest.text])
        #expect(content.body == png)
        #expect(content.headers["content-type"] == "image/png")
        #expect(content.headers["content-security-policy"]?.hasPrefix("sandbox") == true)
        // The content decides what it is.
        let fake = try await server.get("/api/blob", ["digest": script.digest.text])
        #expect(fake.headers["content-type"] == "application/octet-stream")
        #expect(fake.headers["content-disposition"]?.hasPrefix("attachment") == true)
        try await server.stop()
    }

    @Test func `a revision has its versions, if the document has any`() async throws {
        let server = try await InspectorServer()
        let (ben, anna) = (
            "16345785d8a00000@ZwCGnI/3SA40pwpwiwKHAA", "16345785d8000000@VVebVXiW0M4XZMR/7WRPmw"
        )
        let ids = try server.collection.receive(
            [.init(id: "1-aabb"), .init(vector: "\(ben); \(anna)")],
            of: "a"
        )
        let shown = try await server.json("/api/document", ["id": "a"])["revisions"]
        #expect(shown?[0]?["id"]?.string == ids.first?.text)
        #expect(shown?[0]?["version"]?.string == ben)
        #expect(shown?[0]?["merged"] == [])
        #expect(shown?[0]?["previous"] == [.string(anna)])
        #expect(shown?[0]?["flags"] == ["current", "leaf", "derived"])
        #expect(shown?[1]?["version"] == nil)
        try await server.stop()
    }

    @Test func `totals count documents, tombstones, bytes and conflicts`() async throws {
        let server = try await InspectorServer()
        try server.collection.save(Document(id: "a", ["n": 1]))
        try server.collection.save(Document(id: "b", ["n": 22]))
        try server.collection.delete(id: "b")
        try server.collection.saveConflict("c")
        let totals = try await server.json("/api/totals")["collections"]?[0]
        #expect(totals?["name"]?.string == "_default._default")
        #expect(totals?["documents"]?.int == 2)
        #expect(totals?["tombstones"]?.int == 1)
        #expect(totals?["conflicts"]?.int == 1)
        #expect(totals?["bytes"]?.int == #"{"n":1}"#.utf8.count + 2 + #"{"text":"here"}"#.utf8.count)
        #expect(
            try await server.json("/api/documents", ["conflicts": "1"])["documents"]?[0]?["id"]?.string == "c"
        )
        try await server.stop()
    }

    @Test func `a query has columns, rows and a limit`() async throws {
        let server = try await InspectorServer { try fill($0, 1_500) }
        let some = try await server.json(
            "/api/query",
            ["sql": "SELECT meta().id AS id, n FROM _ WHERE n < 3 ORDER BY n"]
        )
        #expect(some["columns"] == ["id", "n"])
        #expect(some["rows"]?.array?.count == 3)
        #expect(some["isCut"] == false)
        let all = try await server.json("/api/query", ["sql": "SELECT n FROM _"])
        #expect(all["rows"]?.array?.count == 1_000)
        #expect(all["isCut"] == true)
        try await server.stop()
    }

    @Test func `an edit is saved, unless somebody was faster`() async throws {
        let server = try await InspectorServer()
        var document = Document(id: "a", ["n": 1])
        try server.collection.save(&document)
        let edit: JSONValue = [
            "collection": "_default._default", "id": "a", "body": ["n": 2],
            "revision": .string(document.revisionID?.text ?? ""),
        ]
        #expect(try await server.post("/api/save", edit).status == 200)
        #expect(try server.collection.document(id: "a")?["n"]?.int == 2)
        let late = try await server.post("/api/save", edit)
        #expect(late.status == 409)
        #expect(late.text.contains("changed meanwhile"))
        try await server.stop()
    }
}
