import Foundation
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

// Group in ./test: busy
/// Real processes, killed while they write.
@Suite(.serialized) struct CrashTests {
    /// The program that writes, beside the tests.
    private static var writer: URL {
        let tests = URL(filePath: ProcessInfo.processInfo.arguments[0]).deletingLastPathComponent()
        return tests.appending(path: "StoreWriter")
    }

    private static func start(_ folder: String, _ first: Int, _ options: [String] = []) throws -> (
        Process, Pipe
    ) {
        let process = Process()
        process.executableURL = writer
        process.arguments = [folder, String(first)] + options
        let output = Pipe()
        process.standardOutput = output
        try Lifeline.run(process)
        return (process, output)
    }

    /// Runs the program until it has said so many lines, kills it, and returns the numbers that it has said.
    private static func interrupt(
        _ folder: String,
        from first: Int,
        after lines: Int,
        _ options: String...
    ) throws -> [Int] {
        let (process, output) = try start(folder, first, options)
        var text = ""
        while text.count(where: { $0 == "\n" }) < lines {
            let piece = output.fileHandleForReading.availableData
            try #require(!piece.isEmpty, "the writer ended by itself")
            text += String(decoding: piece, as: UTF8.self)
        }
        kill(process.processIdentifier, SIGKILL)
        text += String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.split(separator: "\n").compactMap { Int($0) }
    }

    @Test func `two hundred kills lose no save that returned`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "loveseat-crash-\(UUID().uuidString)"
        ).path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var next = 0
        for round in 0..<200 {
            // Each round dies after another number of acknowledged saves.
            let acknowledged = try Self.interrupt(folder, from: next, after: 1 + round % 37)
            let last = try #require(acknowledged.last)

            let store = try DocumentStore.open(folder: folder)
            defer { try? store.close() }
            let collection = try #require(store.collection(.default))
            try store.readRows { view in
                for number in next...last {
                    let record = try view.record("doc\(number)", in: collection)
                    #expect(record.map { JSONElement($0.body)["n"]?.int } == number)
                }
            }
            if round % 50 == 49 { #expect(try store.check() == []) }
            next = last + 1
        }
    }

    @Test func `kills keep the source, and issue no version twice`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "loveseat-crash-\(UUID().uuidString)"
        ).path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var (next, last) = (0, UInt64(0))
        var source: SourceID?
        for round in 0..<30 {
            let acknowledged = try Self.interrupt(folder, from: next, after: 1 + round % 5, "versions")
            let store = try DocumentStore.open(folder: folder)
            defer { try? store.close() }
            let collection = try #require(store.collection(.default))
            let times = try store.readRows { view in
                try (next...(try #require(acknowledged.last))).map { number in
                    let version = try #require(try view.record("doc\(number)", in: collection)?.version)
                    #expect(version.source == source ?? version.source)
                    source = version.source
                    return version.time
                }
            }
            for time in times {
                #expect(time > last)
                last = time
            }
            #expect(store.source == source)
            next = try #require(acknowledged.last) + 1
        }
    }

    @Test func `kills beside compactions leave every saved document its blob`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "loveseat-crash-\(UUID().uuidString)"
        ).path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var next = 0
        for round in 0..<20 {
            let acknowledged = try Self.interrupt(folder, from: next, after: 2 + round % 7, "blobs")
            let last = try #require(acknowledged.last)
            let store = try DocumentStore.open(folder: folder)
            defer { try? store.close() }
            let collection = try #require(store.collection(.default))
            if round.isMultiple(of: 2) { _ = try store.compact() }
            try store.readRows { view in
                #expect(try view.record("doc\(last)", in: collection) != nil)
                try view.list(.init(), in: collection) { record in
                    for blob in BlobReference.all(in: record.body) {
                        #expect(store.blobs.length(blob.digest) != nil, "\(record.id)")
                    }
                    return true
                }
            }
            next = last + 1
        }
    }

    @Test func `a closed database is free, also while a child process has its descriptors`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "loveseat-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let store = try DocumentStore.open(folder: folder)
        let lock = try #require(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
                .first {
                    let path = try? FileManager.default.destinationOfSymbolicLink(
                        atPath: "/proc/self/fd/\($0)"
                    )
                    return path == "\(folder)/lock"
                }
        )
        // As one has between its fork and its exec.
        let child = Process()
        child.executableURL = URL(filePath: "/bin/sleep")
        child.arguments = ["60"]
        child.standardInput = FileHandle(fileDescriptor: lock, closeOnDealloc: false)
        try Lifeline.run(child)
        defer { child.terminate() }
        expectError(.busy) { try DocumentStore.open(folder: folder) }
        try store.close()
        try DocumentStore.open(folder: folder).close()
    }

    @Test func `a database that another process has open is refused with its number`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "loveseat-lock-\(UUID().uuidString)"
        ).path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (process, output) = try Self.start(folder, 0)
        _ = output.fileHandleForReading.availableData
        do {
            _ = try DocumentStore.open(folder: folder)
            Issue.record("opened twice")
        } catch {
            #expect(error.code == .busy)
            #expect(error.message.contains(String(process.processIdentifier)))
        }
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        let store = try DocumentStore.open(folder: folder)
        try store.close()
    }
}
