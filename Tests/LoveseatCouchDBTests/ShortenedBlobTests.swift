import CZlib
import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: programs
/// Content whose file on the disk was shortened: whatever is made of it breaks off, and never looks whole.
struct ShortenedBlobTests {
    /// A member of gzip that contains bytes as they are, so that its length is known: 23 bytes more.
    private static func member(_ bytes: [UInt8]) -> [UInt8] {
        func little(_ number: UInt32, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * UInt32($0))) }
        }
        let length = little(UInt32(bytes.count), 2)
        let sum = UInt32(truncatingIfNeeded: crc32(0, bytes, UInt32(bytes.count)))
        let head: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255, 1]
        return head + length + length.map { ~$0 } + bytes + little(sum, 4) + little(UInt32(bytes.count), 4)
    }

    private static let plain = [UInt8](repeating: 0x61, count: 4_073) + Array("and the rest".utf8)
    /// The first member is as long as the pieces in which compressed content is read.
    private static let packed = member(Array(plain.prefix(4_073))) + member(Array(plain.dropFirst(4_073)))

    /// Serves a document with one attachment.
    private func serve(compressed: Bool) async throws -> ServedDatabase {
        let served = try await ServedDatabase()
        let client = served.client
        let headers = [("Content-Type", "text/plain")] + (compressed ? [("Content-Encoding", "gzip")] : [])
        let body = compressed ? Self.packed : Self.plain
        let answer = try await offPool { try client.send("PUT", "/main/x/a", headers, body: body) }
        #expect(answer.status == 201, "\(answer.text)")
        return served
    }

    /// Shortens all blobs of a database.
    private static func shorten(_ name: String, in scratch: Scratch, to length: Int) throws {
        let folder = URL(filePath: "\(scratch.path)/\(name).loveseat/blobs")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        #expect(!files.isEmpty)
        for file in files {
            let bytes = try Data(contentsOf: file)
            try FileManager.default.removeItem(at: file)
            try bytes.prefix(length).write(to: file)
        }
    }

    /// Whether an answer ends before its end.
    private static func isCut(_ answer: [UInt8]) throws -> Bool {
        let end = try #require(answer.firstRange(of: Array("\r\n\r\n".utf8)))
        let head = String(decoding: answer[..<end.lowerBound], as: UTF8.self).lowercased()
        // An error instead of an answer is as good.
        guard head.hasPrefix("http/1.1 200 ") else { return true }
        if let announced = head.firstMatch(of: /content-length: ([0-9]+)/).flatMap({ Int($0.1) }) {
            return answer.count - end.upperBound < announced
        }
        return !String(decoding: answer.suffix(7), as: UTF8.self).hasSuffix("\r\n0\r\n\r\n")
    }

    private static let inlineRequests = [
        ("GET", "/main/x?attachments=true", ""),
        ("GET", "/main/_changes?include_docs=true&attachments=true", ""),
        ("POST", "/main/_bulk_get?attachments=true", #"{"docs":[{"id":"x"}]}"#),
        ("GET", "/main/_all_docs?include_docs=true&attachments=true", ""),
    ]

    /// Sends a request, and returns all bytes of the answer.
    private func exchange(_ method: String, _ path: String, _ body: String, _ client: RawClient) async throws
        -> [UInt8]
    {
        let head =
            "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        return try await offPool { try client.exchange(Array((head + body).utf8)) }
    }

    @Test func `content is whole wherever its parts of gzip end`() async throws {
        let served = try await serve(compressed: true)
        #expect(Self.packed.count > 4_096)
        #expect(try await served.call("GET", "/main/x/a").body == Self.plain)
        let inline = try await served.call(
            "GET",
            "/main/x?attachments=true",
            nil,
            [("Accept", "application/json")]
        )
        #expect(inline.json["_attachments"]?["a"]?["data"]?.string == Base64.encode(Self.plain))
        for (method, path, body) in Self.inlineRequests {
            #expect(try await !Self.isCut(exchange(method, path, body, served.client)), "\(path)")
        }
        await served.listener.stop()
    }

    @Test(arguments: [0, 1, 100, 4_095, 4_096, 4_100])
    func `compressed content that was shortened breaks off`(_ length: Int) async throws {
        let served = try await serve(compressed: true)
        try Self.shorten("main", in: served.scratch, to: length)
        for (method, path, body) in [("GET", "/main/x/a", "")] + Self.inlineRequests {
            #expect(try await Self.isCut(exchange(method, path, body, served.client)), "\(path)")
        }
        await served.listener.stop()
    }

    @Test(arguments: [0, 1, 3_000, 4_084])
    func `content that was shortened breaks off in Base64 as well`(_ length: Int) async throws {
        let served = try await serve(compressed: false)
        try Self.shorten("main", in: served.scratch, to: length)
        for (method, path, body) in Self.inlineRequests {
            #expect(try await Self.isCut(exchange(method, path, body, served.client)), "\(path)")
        }
        await served.listener.stop()
    }

    @Test(arguments: [[], ["--no-multipart"]])
    func `a document whose content was shortened is not pushed, and the others are`(_ form: [String])
        async throws
    {
        let couch = try await FakeCouch(form)
        try await couch.send("PUT", "/db")
        for id in ["x", "y"] {
            let content = id == "x" ? Data(Self.plain).base64EncodedString() : "eQ=="
            let answer = try await couch.send(
                "PUT",
                "/db/\(id)?new_edits=false",
                #"{"_rev":"1-a","_attachments":{"a":{"content_type":"image/png","revpos":1,"data":"\#(content)"}}}"#
            )
            #expect(answer.status < 300, "\(answer.text)")
        }
        let active = try ActiveSide()
        #expect(try await active.replicate(couch.url(), .pull).pulled == ["x", "y"])
        try Self.shorten("local", in: active.scratch, to: 2_000)
        var endpoint = CouchDBEndpoint(url: try couch.url("copy"))
        endpoint.createsTarget = true
        let pass = try await active.replicate(try active.configuration(endpoint, .push))
        #expect(pass.status.error == nil)
        #expect(pass.pushed == ["y"])
        #expect(pass.failed.mapValues(\.code) == ["x": .corruptData])
        #expect(try await couch.send("GET", "/copy/x").status == 404)
    }
}
