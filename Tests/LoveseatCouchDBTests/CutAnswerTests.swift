import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatPlatform
import LoveseatStorage
import LoveseatTesting
import Testing

/// Answers that end before their end: the client sees it, and the log says why.
struct CutAnswerTests {
    init() { CapturedLog.begin() }

    /// Serves a database under its own name, so that what is logged of it can be told apart.
    private func serve(_ database: Database) async throws -> (listener: CouchDBListener, client: RawClient) {
        var configuration = CouchDBListenerConfiguration(database: database)
        configuration.disableTLS = true
        configuration.networkInterface = "127.0.0.1"
        configuration.allowsDatabaseCreation = true
        let listener = CouchDBListener(configuration)
        try await listener.start()
        return (listener, RawClient(port: try #require(listener.port)))
    }

    /// Sends a request, and returns all bytes of the answer.
    private func exchange(_ request: String, _ client: RawClient, _ headers: String = "") async throws
        -> String
    {
        let text = "\(request) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(headers)\r\n"
        return try await offPool {
            String(decoding: try client.exchange(Array(text.utf8)), as: UTF8.self)
        }
    }

    /// A database of three documents, of which the disk has damaged one.
    private func damaged(_ name: String, in scratch: Scratch) async throws -> Database {
        let database = try scratch.database(name)
        let collection = try database.defaultCollection()
        try collection.openStore().write { transaction in
            for (id, text) in [("a", "1-aa"), ("b", "1-cafe0001"), ("c", "1-cc")] {
                _ = try transaction.insertBranch(
                    [try #require(RevisionID(text))],
                    of: id,
                    in: collection.handle,
                    body: .emptyObject,
                    isDeleted: false
                )
            }
        }
        try await database.close()
        let file = URL(filePath: "\(scratch.path)/\(name).loveseat/db.sqlite")
        let bytes = Array(try Data(contentsOf: file))
        let changed = bytes.replacing(Array("1-cafe0001".utf8), with: Array("x-cafe0001".utf8))
        #expect(changed != bytes)
        try Data(changed).write(to: file)
        return try scratch.database(name)
    }

    @Test func `a list and a feed that meet a damaged document are cut, and logged`() async throws {
        let scratch = try Scratch()
        let served = try await serve(damaged("cutrows", in: scratch))
        for (path, query) in [
            ("_all_docs", ""), ("_all_docs", "?include_docs=true"), ("_changes", ""),
            ("_changes", "?feed=longpoll&timeout=1000"), ("_changes", "?feed=continuous&timeout=1000"),
            ("_changes", "?feed=eventsource&timeout=1000"),
        ] {
            let request = "GET /cutrows/\(path)"
            let before = CapturedLog.errors(about: request).count
            let answer = try await exchange(request + query, served.client)
            #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(path)\(query): \(answer)")
            #expect(!answer.hasSuffix("\r\n0\r\n\r\n"), "\(path)\(query): \(answer)")
            #expect(!answer.contains("last_seq"), "\(path)\(query): \(answer)")
            let logged = CapturedLog.errors(about: request)
            #expect(logged.count == before + 1, "\(path)\(query)")
            #expect(logged.last?.contains("document \"b\"") == true, "\(path)\(query)")
        }
        await served.listener.stop()
    }

    @Test
    func `an attachment whose file is damaged is cut and logged, and one that its client leaves is not`()
        async throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("cutblobs")
        let (listener, client) = try await serve(database)
        let gzip = try #require(Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJV8hAJwHjUT2NFwAAAA=="))
        let small = try await offPool {
            try client.send("PUT", "/cutblobs/small/x", [("Content-Encoding", "gzip")], body: Array(gzip))
        }
        #expect(small.status == 201)
        let folder = URL(filePath: try #require(database.path)).appending(path: "blobs")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(files.count == 1)
        for file in files {
            try FileManager.default.removeItem(at: folder.appending(path: file))
            try Data().write(to: folder.appending(path: file))
        }
        let large = try await offPool {
            try client.send("PUT", "/cutblobs/large/x", body: [UInt8](repeating: 7, count: 24 << 20))
        }
        #expect(large.status == 201)
        // The client takes the beginning, and goes.
        let beginning = try await offPool {
            try client.beginning(of: "GET /cutblobs/large/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        }
        #expect(beginning.hasPrefix("HTTP/1.1 200 "))
        try await eventually { listener.connectionCount == 0 }
        let answer = try await exchange("GET /cutblobs/small/x", client, "Accept-Encoding: gzip\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        #expect(answer.lowercased().contains("content-length: \(gzip.count)\r\n"))
        #expect(answer.hasSuffix("\r\n\r\n"))
        let logged = CapturedLog.errors(about: "GET /cutblobs/small/x")
        #expect(logged.count == 1)
        #expect(logged.first?.contains("shorter than it was") == true)
        #expect(CapturedLog.errors(about: "GET /cutblobs/large/x").isEmpty)
        await listener.stop()
    }

    @Test func `a continuous feed of a database that is deleted ends well, and is not logged`() async throws {
        let scratch = try Scratch()
        let (listener, client) = try await serve(scratch.database("cutend"))
        #expect(try await offPool { try client.send("PUT", "/cutgone") }.status == 201)
        let descriptor = try await offPool {
            let descriptor = try client.connect()
            let request =
                "GET /cutgone/_changes?feed=continuous&heartbeat=20000 HTTP/1.1\r\nHost: localhost\r\n"
            client.write(Array("\(request)Connection: close\r\n\r\n".utf8), to: descriptor)
            return descriptor
        }
        let head = try await offPool { Self.read(descriptor, until: "\r\n\r\n") }
        #expect(head.hasPrefix("HTTP/1.1 200 "))
        #expect(try await offPool { try client.send("DELETE", "/cutgone") }.status == 200)
        let rest = try await offPool {
            defer { close(descriptor) }
            return Self.read(descriptor, until: nil)
        }
        #expect(rest.contains("last_seq"))
        #expect(rest.hasSuffix("\r\n0\r\n\r\n"))
        #expect(CapturedLog.errors(about: "/cutgone/").isEmpty)
        await listener.stop()
    }

    /// Reads until some text has come, or until the other side closes.
    private static func read(_ descriptor: Int32, until end: String?) -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while end.map({ all.firstRange(of: Array($0.utf8)) == nil }) ?? true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            all += buffer[..<count]
        }
        return String(decoding: all, as: UTF8.self)
    }
}
