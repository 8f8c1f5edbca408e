import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Synchronization
import Testing

// Sinks are those of the process.
// Group in ./test: alone
/// Serialized, because the sinks are the process's. Other tests log meanwhile, so messages are told apart by their text.
@Suite(.serialized, .ownThreads) final class LogTests {
    private let scratch: Scratch
    private let mark = UUID().uuidString

    init() throws { scratch = try Scratch() }

    deinit {
        LogSinks.console = ConsoleLogSink(level: .warning)
        (LogSinks.file, LogSinks.custom) = (nil, nil)
    }

    private func log(_ level: LogLevel, _ domain: LogDomain = .database) {
        Log.log(domain: domain, level: level, message: "\(mark) \(level) \(domain)")
    }

    private func files(_ level: LogLevel) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: scratch.path)
            .filter { $0.hasPrefix("cbl_\(level)_") && $0.hasSuffix(".cbllog") }
            .sorted()
    }

    private func text(_ level: LogLevel) throws -> String {
        try files(level).map { try String(contentsOfFile: "\(scratch.path)/\($0)", encoding: .utf8) }.joined()
    }

    @Test func `warnings go to the console by default`() {
        #expect(LogSinks.console?.level == .warning)
        #expect(LogSinks.console?.domains == .all)
        #expect(LogSinks.file == nil)
        #expect(LogSinks.custom == nil)
    }

    @Test func `a custom sink gets the messages of its level and parts before the call returns`() {
        LogSinks.console = nil
        let sink = RecordingSink(mark)
        LogSinks.custom = CustomLogSink(level: .info, domains: [.database, .network], logSink: sink)
        log(.verbose)
        log(.info)
        log(.error, .network)
        log(.error, .query)
        log(.none)
        #expect(sink.lines == ["\(mark) info database", "\(mark) error network"])
        LogSinks.custom = nil
        log(.error)
        #expect(sink.lines.count == 2)
    }

    @Test func `the library's own messages reach a custom sink`() throws {
        LogSinks.console = nil
        let sink = RecordingSink(mark)
        LogSinks.custom = CustomLogSink(level: .info, logSink: sink)
        let database = try Database(name: mark, config: World.config(scratch.path))
        #expect(sink.lines.contains { $0.contains("opened") })
        LogSinks.custom = CustomLogSink(level: .warning, logSink: sink)
        let count = sink.lines.count
        try database.close()
        #expect(sink.lines.count == count)
    }

    @Test func `a resolver's document with another ID is a warning`() async throws {
        let pair = try ReplicaPair()
        try pair.makeConflict(mark)
        let sink = RecordingSink(mark)
        LogSinks.custom = CustomLogSink(level: .warning, logSink: sink)
        try await pair.replicate(pair.config(.pull) { $0.conflictResolver = OtherID() })
        let warning =
            "The document ID of the resolved document 'other' is not matching with the document ID of the conflicting document '\(mark)'."
        #expect(sink.lines.contains { $0.contains(warning) })
    }

    @Test func `each level has files of its own`() throws {
        LogSinks.console = nil
        LogSinks.file = FileLogSink(level: .info, directory: scratch.path, usePlainText: true)
        for level in [LogLevel.debug, .verbose, .info, .warning, .error] { log(level, .query) }
        #expect(try files(.debug).isEmpty)
        #expect(try files(.verbose).isEmpty)
        for level in [LogLevel.info, .warning, .error] {
            #expect(try files(level).count == 1)
            #expect(try text(level).contains("query: \(mark) \(level) query\n"))
        }
    }

    @Test func `full files are replaced, and the oldest are removed`() throws {
        LogSinks.console = nil
        LogSinks.file = FileLogSink(
            level: .error,
            directory: scratch.path,
            maxKeptFiles: 3,
            maxFileSize: 1_024
        )
        for number in 0..<100 {
            Log.log(domain: .database, level: .error, message: "\(mark) line \(number).")
        }
        #expect(try files(.error).count == 3)
        let text = try text(.error)
        #expect(text.contains("\(mark) line 99."))
        #expect(!text.contains("\(mark) line 0."))
    }

    @Test @available(*, deprecated) func `the log of Couchbase Lite 3 sets the sinks`() throws {
        Database.log.console.level = .error
        Database.log.console.domains = [.replicator]
        #expect(LogSinks.console?.level == .error)
        #expect(LogSinks.console?.domains == .replicator)
        let config = LogFileConfiguration(directory: scratch.path)
        config.maxRotateCount = 4
        Database.log.file.config = config
        #expect(LogSinks.file == nil)
        Database.log.file.level = .warning
        #expect(LogSinks.file?.level == .warning)
        #expect(LogSinks.file?.maxKeptFiles == 5)
        #expect(Database.log.file.config?.maxRotateCount == 4)
        let logger = RecordingSink(mark)
        Database.log.custom = logger
        log(.error)
        #expect(logger.lines.count == 1)
        #expect(Database.log.custom != nil)
        Database.log.custom = nil
        Database.log.file.config = nil
        #expect(LogSinks.custom == nil)
        #expect(LogSinks.file == nil)
    }
}

/// Resolves every conflict with a document that has another ID.
private struct OtherID: ConflictResolverProtocol {
    func resolve(conflict: Conflict) -> Document? { MutableDocument(id: "other", data: ["name": "new"]) }
}

/// Keeps the messages that contain a mark.
private final class RecordingSink: LogSinkProtocol, CouchbaseLiteSwift.Logger, Sendable {
    let level = LogLevel.warning
    private let mark: String
    private let all = Mutex<[String]>([])

    init(_ mark: String) { self.mark = mark }

    var lines: [String] { all.withLock { $0 } }

    func writeLog(level: LogLevel, domain: LogDomain, message: String) {
        if message.contains(mark) { all.withLock { $0.append(message) } }
    }

    func log(level: LogLevel, domain: LogDomain, message: String) {
        writeLog(level: level, domain: domain, message: message)
    }
}
