import Foundation
import GRDB
import LoveseatModel
import LoveseatStorage
import Testing

/// Databases that have lost their tables, beside those whose creation did not finish.
struct EmptiedFileTests {
    private let temporary: TemporaryStore
    private let files = FileManager.default

    init() throws {
        temporary = try TemporaryStore()
        _ = try temporary.save("tower", #"{"city":"Paris"}"#)
    }

    private var file: String { "\(temporary.folder)/db.sqlite" }

    private static var reading: DocumentStore.Options {
        var options = DocumentStore.Options()
        options.isReadOnly = true
        return options
    }

    /// Neither opening does anything to the files.
    private func expectRefusal(_ code: LoveseatError.Code, of folder: String) throws {
        let before = try files.contentsOfDirectory(atPath: folder).sorted()
        let sizes = try before.map {
            try files.attributesOfItem(atPath: "\(folder)/\($0)")[.size] as? Int
        }
        expectError(code) { try DocumentStore.open(folder: folder, options: Self.reading) }
        expectError(code) { try DocumentStore.open(folder: folder) }
        for (name, size) in zip(before, sizes) where name != "lock" {
            #expect(try files.attributesOfItem(atPath: "\(folder)/\(name)")[.size] as? Int == size, "\(name)")
        }
    }

    @Test(arguments: [0, 1])
    func `a database whose file was cut to nothing is damaged, and does not begin afresh`(size: UInt64) throws
    {
        try temporary.store.close()
        let handle = try #require(FileHandle(forWritingAtPath: file))
        try handle.truncate(atOffset: size)
        try handle.close()
        try expectRefusal(.corruptData, of: temporary.folder)
    }

    @Test func `a database whose file was removed is damaged`() throws {
        try temporary.store.close()
        try files.removeItem(atPath: file)
        try expectRefusal(.corruptData, of: temporary.folder)
    }

    @Test func `a log without its database is kept, also without blobs`() throws {
        let folder = "\(temporary.folder)-log"
        defer { try? files.removeItem(atPath: folder) }
        // As a process leaves it that was killed: its commits are in the log.
        try files.copyItem(atPath: temporary.folder, toPath: folder)
        try files.removeItem(atPath: "\(folder)/blobs")
        #expect(try Data(contentsOf: URL(filePath: "\(folder)/db.sqlite-wal")).count > 0)
        try Data().write(to: URL(filePath: "\(folder)/db.sqlite"))
        try expectRefusal(.corruptData, of: folder)
    }

    @Test func `an empty database of SQLite in the place of another is damaged`() throws {
        try temporary.store.close()
        for name in ["db.sqlite", "db.sqlite-wal", "db.sqlite-shm"] {
            try? files.removeItem(atPath: "\(temporary.folder)/\(name)")
        }
        let empty = try DatabaseQueue(path: file)
        try empty.write { try $0.execute(sql: "CREATE TABLE t (a); DROP TABLE t") }
        try empty.close()
        try expectRefusal(.corruptData, of: temporary.folder)
    }

    @Test func `a creation that did not finish is finished by the next opening for writing`() throws {
        for (number, text) in ["", "PRAGMA journal_mode = WAL"].enumerated() {
            let folder = "\(temporary.folder)-unfinished\(number)"
            defer { try? files.removeItem(atPath: folder) }
            try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
            try Data().write(to: URL(filePath: "\(folder)/db.sqlite"))
            if !text.isEmpty {
                let begun = try DatabaseQueue(path: "\(folder)/db.sqlite")
                try begun.writeWithoutTransaction { _ = try Row.fetchAll($0, sql: text) }
                try begun.close()
            }
            expectError(.notFound) { try DocumentStore.open(folder: folder, options: Self.reading) }
            let store = try DocumentStore.open(folder: folder)
            defer { try? store.close() }
            #expect(try store.check() == [])
            #expect(files.fileExists(atPath: "\(folder)/blobs"))
        }
    }

    @Test func `the tables of a new database are in its file before anything is stored`() throws {
        let folder = "\(temporary.folder)-new"
        let copy = "\(temporary.folder)-without-log"
        defer { for path in [folder, copy] { try? files.removeItem(atPath: path) } }
        let store = try DocumentStore.open(folder: folder)
        defer { try? store.close() }
        // A loss of power may leave what a database has of its log at that moment: nothing.
        try files.createDirectory(atPath: copy, withIntermediateDirectories: false)
        try files.createDirectory(atPath: "\(copy)/blobs", withIntermediateDirectories: false)
        try files.copyItem(atPath: "\(folder)/db.sqlite", toPath: "\(copy)/db.sqlite")
        let again = try DocumentStore.open(folder: copy)
        defer { try? again.close() }
        #expect(try again.check() == [])
        #expect(again.collection(.default) != nil)
    }
}
