import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Dumps that CouchDB-Python's `couchdb-dump` wrote (Tests/Fixtures/couchdb/couchdb-python.mime).
struct MIMEDumpTests {
    private static let dump = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Fixtures/couchdb/couchdb-python.mime")

    @discardableResult
    private func load(_ bytes: [UInt8], pieces: Int = 64 << 10, into database: Database) throws -> Int {
        var importer = try DumpImporter(collection: try database.defaultCollection(), name: "dump")
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            try importer.receive(Array(bytes[start..<min(start + pieces, bytes.count)]))
        }
        try importer.finish()
        return importer.count
    }

    @Test(arguments: [1, 7, 64 << 10])
    func `documents, revisions and attachments of a dump in parts are kept`(_ pieces: Int) async throws {
        let bytes = Array(try Data(contentsOf: Self.dump))
        let served = try await ServedDatabase()
        for _ in 0..<2 { #expect(try load(bytes, pieces: pieces, into: served.database) == 4) }
        #expect(try await served.call("GET", "/main/_all_docs").ids == ["_design/d", "a", "z", "ü b/c"])
        let document = try await served.call("GET", "/main/a").json
        #expect(document["_rev"] == "1-3dbd2584853b1c79a5502062bc2f95a7c796e1a4")
        #expect(document["s"] == "é😀")
        let table = try await served.call("GET", "/main/z").json["_attachments"]
        let long = String(repeating: "ü", count: 40) + " lang.txt"
        #expect(table?.object.map { Set($0.keys) } == ["note.txt", "pä.bin", long])
        #expect(table?[long]?["content_type"] == "text/plain; charset=utf-8")
        for (path, content) in [
            ("/main/z/note.txt", "hello"), ("/main/z/p%C3%A4.bin", "a\r\n--x\r\nb"),
            ("/main/z/" + String(repeating: "%C3%BC", count: 40) + "%20lang.txt", "long name"),
        ] {
            #expect(try await served.call("GET", path).text == content)
        }
        await served.listener.stop()
    }

    @Test func `a dump in parts that is cut anywhere is refused, and says so`() throws {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        let bytes = Array(try Data(contentsOf: Self.dump))
        // The last line break is not a part of the message.
        for count in 1..<(bytes.count - 2) {
            let error = #expect(throws: LoveseatError.self) {
                try load(Array(bytes[..<count]), into: database)
            }
            #expect(error?.message.hasPrefix("dump") == true, "\(count): \(error?.message ?? "")")
        }
        #expect(try database.defaultCollection().count == 0)
    }

    @Test func `what was changed in a dump in parts is never a crash, and never other content`() throws {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        let collection = try database.defaultCollection()
        let bytes = Array(try Data(contentsOf: Self.dump))
        var generator = SeededGenerator(seed: 4)
        for _ in 0..<1_500 {
            var changed = bytes
            for _ in 0...Int.random(in: 0..<3, using: &generator) {
                let index = Int.random(in: changed.indices, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: changed[index] ^= UInt8.random(in: 1...255, using: &generator)
                case 1: changed.remove(at: index)
                default: changed.insert(UInt8.random(in: 0...255, using: &generator), at: index)
                }
            }
            do { try load(changed, pieces: 100, into: database) } catch is LoveseatError {}
        }
        // Each part has a sum.
        let document = try collection.document(id: "a")
        #expect(document == nil || document?["s"] == "é😀")
    }

    @Test(arguments: [
        ("Content-Type: text/plain\r\n\r\nx", "not a dump"),
        (String(repeating: "x", count: 20_000), "not a dump"),
        ("Content-Type: multipart/mixed; boundary=\"b\"\r\n\r\n--b\r\n\r\n[1]\r\n--b--", "not a document"),
        (
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-MD5: AAAA\r\n\r\n{\"_id\":\"a\"}\r\n--b--",
            "damaged"
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\n{\"_id\":\"a\"}\r\n--c\r\n\r\nx\r\n--c--\r\n--b--",
            "no name"
        ),
        (
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-ID: x\n y\n\r\n\r\n{\"_id\":\"a\"}\r\n--b--",
            "CRLF"
        ),
    ]) func `what is no dump in parts is refused with a reason`(_ text: String, _ reason: String) throws {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        let error = #expect(throws: LoveseatError.self) { try load(Array(text.utf8), into: database) }
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    @Test func `an attachment of a dump in parts is not held in memory, and is kept from a compaction`()
        throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        let size = 40 << 20
        var importer = try DumpImporter(collection: try database.defaultCollection(), name: "dump")
        func send(_ text: String) throws { try importer.receive(Array(text.utf8)) }
        try send(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
        )
        try send("--c\r\n\r\n{\"_id\":\"a\",\"_rev\":\"1-a\"}\r\n--c\r\nContent-ID: big\r\n\r\n")
        let piece = [UInt8](repeating: 7, count: 1 << 20)
        for _ in 0..<(size >> 20) { try importer.receive(piece) }
        try send("\r\n--c--\r\n--b")
        try database.performMaintenance(type: .compact)
        try send("--")
        try importer.finish()
        let blob = try #require(try database.defaultCollection().document(id: "a")?.attachment("big"))
        #expect(try database.blobLength(blob) == UInt64(size))
    }
}
