import Foundation
import LoveseatTesting
import Testing

/// What interrupts do to the command line.
struct SignalTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("put", "db", "d", "{}")
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `an interrupt right after the URL line ends a listener in good order`(_ signal: Int32) throws {
        for _ in 0..<20 {
            let server = try folder.serve("db")
            kill(server.process.processIdentifier, signal)
            server.process.waitUntilExit()
            #expect(server.process.terminationReason == .exit)
            #expect(server.process.terminationStatus == 0)
        }
    }

    @Test func `a listener goes on after a hangup, also without an access file`() throws {
        let (server, errors) = try folder.serve("db", ["--no-tls"], environment: [:])
        kill(server.process.processIdentifier, SIGHUP)
        _ = try errors.text { $0.contains("--access") }
        try folder.run("create", "copy")
        #expect(try folder.run("pull", "copy", server.url).status == 0)
        #expect(server.interrupt() == 0)
    }

    @Test func `what goes on until a signal ends with 0, and the help says so`() throws {
        let (process, output, _) = try folder.start(["changes", "db", "--follow"])
        _ = output.fileHandleForReading.availableData
        kill(process.processIdentifier, SIGTERM)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        let help = try folder.run("--help").output.split { $0.isWhitespace }.joined(separator: " ")
        #expect(
            help.contains(
                "Commands that run until a signal (serve, serve-stdio, --continuous, --follow) exit with 0"
            )
        )
    }

    /// Whether this process, and so the programs that it starts, ignore SIGHUP.
    private static var ignoresHangup: Bool {
        let handler = signal(SIGHUP, SIG_IGN)
        signal(SIGHUP, handler)
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    @Test(arguments: [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] as [(Int32, Int32)])
    func `an atomic import from a pipe that is interrupted leaves nothing, or what was there`(
        _ number: Int32,
        _ status: Int32
    ) throws {
        // Under nohup, a hangup ends nothing.
        if number == SIGHUP, Self.ignoresHangup { return }
        for database in ["new", "db"] {
            let process = Process()
            process.executableURL = try CommandLineFolder.program
            process.arguments = ["import", database, "-", "--atomic"]
            process.currentDirectoryURL = URL(filePath: folder.path)
            let (input, errors) = (Pipe(), Pipe())
            (process.standardInput, process.standardError) = (input, errors)
            process.standardOutput = FileHandle.nullDevice
            try Lifeline.run(process)
            let lines = (0..<3_000).map { "{\"_id\":\"x\($0)\"}\n" }.joined()
            try input.fileHandleForWriting.write(contentsOf: Data(lines.utf8))
            // Documents are in the transaction by then, and more could come.
            _ = try errors.text { $0.contains("importing") }
            kill(process.processIdentifier, number)
            // When a terminal closes, its shell sends another hangup: the work is undone all the same.
            while number == SIGHUP, process.isRunning {
                usleep(1_000)
                kill(process.processIdentifier, SIGHUP)
            }
            process.waitUntilExit()
            #expect(process.terminationReason == .exit)
            #expect(process.terminationStatus == status)
        }
        #expect(try folder.run("info", "new").status == 66)
        #expect(try folder.run("ls", "db").lines == ["d"])
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `serving over standard input and output ends with 0 at a signal`(_ signal: Int32) throws {
        let process = Process()
        process.executableURL = try CommandLineFolder.program
        process.arguments = ["serve-stdio", "db", "--verbose"]
        process.currentDirectoryURL = URL(filePath: folder.path)
        let (input, output, errors) = (Pipe(), Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = errors
        try Lifeline.run(process)
        // The first line of the log: from then on no signal is lost.
        _ = errors.fileHandleForReading.availableData
        kill(process.processIdentifier, signal)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit)
        #expect(process.terminationStatus == 0)
        withExtendedLifetime((input, output)) {}
    }

    @Test(arguments: [(SIGINT, 130), (SIGTERM, 143)] as [(Int32, Int32)])
    func `an interrupted pass says so, in its exit code and its JSON`(_ signal: Int32, _ status: Int32) throws
    {
        let server = try SilentServer()
        let (process, output, errors) = try folder.start([
            "sync", "db", "ws://127.0.0.1:\(server.port)/db", "--json",
        ])
        let (connection, _) = try server.hear()
        kill(process.processIdentifier, signal)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        _ = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        close(connection)
        #expect(process.terminationStatus == status)
        #expect(text.contains("\"interrupted\":true"))
    }

    @Test func `a continuous sync that is interrupted has done what it should`() throws {
        let server = try SilentServer()
        let (process, output, errors) = try folder.start([
            "sync", "db", "ws://127.0.0.1:\(server.port)/db", "--continuous", "--json",
        ])
        let (connection, _) = try server.hear()
        kill(process.processIdentifier, SIGINT)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        _ = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        close(connection)
        #expect(process.terminationStatus == 0)
        #expect(text.contains("\"interrupted\":false"))
    }

    @Test func `a sync ends well though nobody reads what it says of its progress`() throws {
        try folder.run("create", "other")
        let process = Process()
        process.executableURL = try CommandLineFolder.program
        process.arguments = ["sync", "db", "--local-db", "other"]
        process.currentDirectoryURL = URL(filePath: folder.path)
        let errors = Pipe()
        process.standardError = errors
        process.standardOutput = FileHandle.nullDevice
        try errors.fileHandleForReading.close()
        try Lifeline.run(process)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit)
        #expect(process.terminationStatus == 0)
        #expect(try folder.run("get", "other", "d").status == 0)
    }

    @Test func `a second interrupt ends a process that is stuck`() throws {
        let lines = (0..<5_000).map { "{\"_id\":\"document \($0) of this database\"}" }
        try folder.write(lines.joined(separator: "\n"), to: "in.jsonl")
        try folder.run("import", "db", "in.jsonl")
        // Nobody reads on, so it cannot write on.
        let (process, output, _) = try folder.start(["changes", "db", "--follow"])
        var byte: UInt8 = 0
        try #require(read(output.fileHandleForReading.fileDescriptor, &byte, 1) == 1)
        // Two signals that come together count as one, so each comes a millisecond after the last, until the process is gone.
        while process.isRunning {
            kill(process.processIdentifier, SIGINT)
            usleep(1_000)
        }
        #expect(process.terminationReason == .exit)
        #expect(process.terminationStatus == 130)
    }
}
