import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Long attachments that come as Base64 within the JSON of a request (protocol/couchdb.md §6.1).
struct InlineAttachmentTests {
    private static let content = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    private static func document(_ id: String, _ digits: String) -> String {
        #"{"_id":"\#(id)","kind":"photo","_attachments":{"x":{"content_type":"image/png","data":"\#(digits)"}}}"#
    }

    private static var digits: String { Data(content).base64EncodedString() }

    private func send(_ served: ServedDatabase, _ method: String, _ path: String, _ text: String) async throws
        -> RawClient.Answer
    {
        let client = served.client
        return try await offPool {
            try client.send(method, path, [("Content-Type", "application/json")], body: Array(text.utf8))
        }
    }

    private static func files(of database: Database) throws -> [String] {
        let folder = URL(filePath: try #require(database.path)).appending(path: "blobs")
        return try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { path in
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(
                atPath: folder.appending(path: path).path,
                isDirectory: &isFolder
            )
            return !isFolder.boolValue
        }
    }

    @Test func `they are stored by every request that takes documents, however they are written`()
        async throws
    {
        let served = try await ServedDatabase { $0.maximumRequestSize = 200_000 }
        let escaped = Self.digits.replacing("/", with: #"\/"#).replacing("+", with: #"\u002B"#)
        #expect(try await send(served, "PUT", "/main/a", Self.document("a", Self.digits)).status == 201)
        #expect(try await send(served, "POST", "/main", Self.document("b", escaped)).status == 201)
        let batch =
            "{\"docs\":[\(Self.document("c", escaped)),\(Self.document("d", "QUJD")),\(Self.document("e", Self.digits))]}"
        #expect(try await send(served, "POST", "/main/_bulk_docs", batch).status == 201)
        for id in ["a", "b", "c", "e"] {
            let answer = try await served.call("GET", "/main/\(id)/x")
            #expect(answer.status == 200, "\(id)")
            #expect(answer.body == Self.content, "\(id)")
        }
        #expect(try await served.call("GET", "/main/d/x").text == "ABC")
        // All of them are one blob, and nothing else is left.
        #expect(try Self.files(of: served.database).count == 2)
        await served.listener.stop()
    }

    @Test func `what is no Base64, too large or cut is refused, and leaves nothing`() async throws {
        let served = try await ServedDatabase { $0.maximumInlineAttachments = 1_500_000 }
        for digits in [Self.digits + "é", Self.digits + #"\""#, Self.digits + "A", "*0", "*"] {
            let answer = try await send(served, "PUT", "/main/a", Self.document("a", digits))
            #expect(answer.status == 400)
            #expect(answer.json["reason"]?.string?.hasPrefix("Invalid attachment data") == true)
        }
        let forged = #"{"_attachments":{"x":{"data":"\#(Self.digits)"},"y":{"\u0064ata":"*0"}}}"#
        #expect(try await send(served, "PUT", "/main/a", forged).status == 400)
        let two = "{\"docs\":[\(Self.document("a", Self.digits)),\(Self.document("b", Self.digits))]}"
        let answer = try await send(served, "POST", "/main/_bulk_docs", two)
        #expect(answer.status == 413)
        #expect(answer.json["reason"]?.string?.contains("1500000") == true)
        #expect(
            try await send(served, "PUT", "/main/a", String(Self.document("a", Self.digits).dropLast(30)))
                .status == 400
        )
        #expect(try await served.call("GET", "/main/_all_docs").ids.isEmpty)
        #expect(try Self.files(of: served.database).isEmpty)
        await served.listener.stop()
    }

    @Test func `a filter knows their length, and a refused one is not stored`() async throws {
        let served = try await ServedDatabase {
            $0.incomingFilter = { _, document, _ in
                document["_attachments"]?["x"]?["length"]?.int == Self.content.count
                    ? LoveseatError(.httpForbidden, "too long") : nil
            }
        }
        #expect(try await send(served, "PUT", "/main/a", Self.document("a", Self.digits)).status == 403)
        let batch = "{\"docs\":[\(Self.document("a", Self.digits)),\(Self.document("b", "QUJD"))]}"
        let answer = try await send(served, "POST", "/main/_bulk_docs", batch)
        #expect(answer.json[0]?["error"] == "forbidden")
        #expect(answer.json[1]?["ok"] == true)
        #expect(try Self.files(of: served.database).count == 1)
        await served.listener.stop()
    }

    @Test func `what is said to be gzip is looked at before others rely on it`() async throws {
        let served = try await ServedDatabase {
            $0.incomingFilter = { _, document, _ in
                document["_attachments"]?["x"]?["length"]?.int ?? 0 > 100_000
                    ? LoveseatError(LoveseatError.Code(10_413), "too long") : nil
            }
        }
        // Twenty thousand zeros.
        let small = "H4sIAAAAAAACA+3BMQEAAADCoPVPbQ0PoAAAAAAAAAAAAAAAAAAAAAAAAAB4MAJTL5cgTgAA"
        func put(_ id: String, _ data: String, _ encoding: String, _ length: Int) async throws -> Int {
            let attachment: JSONValue = [
                "data": .string(data), "encoding": .string(encoding), "length": JSONValue(length),
                "encoded_length": JSONValue(3),
            ]
            let document: JSONValue = ["_attachments": ["x": attachment]]
            return try await served.call("PUT", "/main/\(id)", document).status
        }
        #expect(try await put("true", small, "gzip", 20_000) == 201)
        #expect(try await put("false", small, "gzip", 5) == 201)
        #expect(try await put("none", "bm90IGd6aXA=", "gzip", 5) == 201)
        #expect(try await put("other", "bm90IGd6aXA=", "br", 5) == 201)
        #expect(try await put("long", small, "gzip", 200_000) == 413)
        for (id, length) in [("true", 20_000), ("false", 20_000), ("none", 8), ("other", 8)] {
            let stub = try await served.call("GET", "/main/\(id)").json["_attachments"]?["x"]
            #expect(stub?["length"]?.int == length, "\(id)")
            #expect(try await served.call("GET", "/main/\(id)/x").body.count == length, "\(id)")
        }
        let all = try await served.call("GET", "/main/_all_docs?include_docs=true&attachments=true")
        #expect(all.json["rows"]?.array?.count == 4)
        await served.listener.stop()
    }

    @Test func `unfinished requests have a limit together`() async throws {
        let served = try await ServedDatabase { $0.maximumInlineAttachments = 1_000_000 }
        let begun = #"{"_attachments":{"x":{"data":"\#(Self.digits.prefix(1_200_000))"#
        let request =
            "PUT /main/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n\(begun)"
        let client = served.client
        let open = try await offPool {
            try (0..<2).map { _ in
                let connection = try client.connect()
                client.write(Array(request.utf8), to: connection)
                return connection
            }
        }
        try await waitForFiles(of: served.database, bytes: 1_700_000)
        let document = Self.document("b", String(Self.digits.prefix(800_000)))
        #expect(try await send(served, "PUT", "/main/b", document).status == 503)
        for connection in open { close(connection) }
        try await waitForFiles(of: served.database, bytes: 0)
        #expect(try await send(served, "PUT", "/main/b", document).status == 201)
        await served.listener.stop()
    }

    /// Waits until so many bytes are in the folder of blobs; 0 stands for no file.
    private func waitForFiles(of database: Database, bytes: Int) async throws {
        let folder = URL(filePath: try #require(database.path)).appending(path: "blobs")
        let deadline = ContinuousClock.now + .seconds(120)
        while true {
            let files = try Self.files(of: database)
            let sizes = files.map { name in
                let attributes = try? FileManager.default.attributesOfItem(
                    atPath: folder.appending(path: name).path
                )
                return attributes?[.size] as? Int ?? 0
            }
            if bytes == 0 ? files.isEmpty : sizes.reduce(0, +) >= bytes { return }
            try #require(ContinuousClock.now < deadline, "\(files) \(sizes)")
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    @Test func `a local document keeps none`() async throws {
        let served = try await ServedDatabase()
        let answer = try await send(served, "POST", "/main", Self.document("_local/a", Self.digits))
        #expect(answer.status == 201)
        #expect(try await served.call("GET", "/main/_local/a").json["_attachments"] == nil)
        #expect(try Self.files(of: served.database).isEmpty)
        await served.listener.stop()
    }
}
