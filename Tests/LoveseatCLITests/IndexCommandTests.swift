import Foundation
import GRDB
import Testing

/// Indexes on disks that are full or damaged, as the command line meets them.
struct IndexCommandTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        let words = (0..<20_000).map { number in
            "{\"_id\":\"d\(number)\",\"text\":\"word\(number) \(String(number * 7_919, radix: 36)) and some more text\"}\n"
        }
        try folder.write(words.joined(), to: "texts.jsonl")
        try folder.run("import", "db", "texts.jsonl")
    }

    @Test func `an index that the disk has no room for leaves the database as it was`() throws {
        let size = try folder.run("query", "db", "SELECT COUNT(*) AS n FROM _").output
        // Writes beyond a size fail, as on a full disk.
        let limited = Process()
        limited.executableURL = URL(filePath: "/bin/sh")
        let program = try CommandLineFolder.program.path
        let command = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" index create db words text --full-text"
        limited.arguments = ["-c", command, program]
        limited.currentDirectoryURL = URL(filePath: folder.path)
        let errors = Pipe()
        limited.standardError = errors
        try limited.run()
        let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        limited.waitUntilExit()
        #expect(limited.terminationStatus == 74, "\(said)")
        #expect(try folder.run("index", "list", "db").output.isEmpty)
        #expect(try folder.run("check", "db").status == 0)
        #expect(try folder.run("query", "db", "SELECT COUNT(*) AS n FROM _").output == size)
        #expect(try folder.run("index", "create", "db", "words", "text", "--full-text").status == 0)
        let found = try folder.run("query", "db", "SELECT meta().id FROM _ WHERE MATCH(words, 'word7')")
        #expect(found.lines == ["{\"id\":\"d7\"}"])
    }

    @Test func `a check finds damaged words, or says that it could not look`() throws {
        try folder.run("index", "create", "db", "words", "text", "--full-text")
        #expect(try folder.run("check", "db").status == 0)
        let file = try DatabaseQueue(path: "\(folder.path)/db.loveseat/db.sqlite")
        try file.write { db in
            let table = try String.fetchOne(
                db,
                sql: "SELECT name FROM sqlite_schema WHERE name LIKE '%items_data'"
            )
            try db.execute(sql: "DELETE FROM \"\(try #require(table))\" WHERE id > 10")
        }
        try file.close()
        let damaged = try folder.run("check", "db")
        #expect(damaged.status == 65)
        #expect(damaged.output.contains("index \"words\": its words are damaged"))
        let server = try folder.serve("db")
        defer { _ = server.interrupt() }
        let beside = try folder.run("check", "db")
        #expect(beside.status == 0)
        #expect(beside.errors.contains("the words of full-text indexes are not checked"), "\(beside.errors)")
    }
}
