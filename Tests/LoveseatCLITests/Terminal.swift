import Foundation
import LoveseatTesting
import Testing

/// A program at a terminal, as a person sees it.
final class Terminal {
    private let process: Process
    private let master: Int32
    private var screen: [UInt8] = []

    struct NotSeen: Error, CustomStringConvertible {
        let text: String
        let screen: String
        var description: String { "\"\(text)\" did not appear: \(screen)" }
    }

    /// `command`: what to run instead of the program with the arguments.
    init(
        _ folder: CommandLineFolder,
        _ arguments: [String] = [],
        command: [String]? = nil,
        environment: [String: String]
    ) throws {
        var ends: (Int32, Int32) = (-1, -1)
        guard openpty(&ends.0, &ends.1, nil, nil, nil) == 0 else { throw POSIXError(.ENOTTY) }
        master = ends.0
        for end in [ends.0, ends.1] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let handle = FileHandle(fileDescriptor: ends.1, closeOnDealloc: true)
        process = Process()
        // In a session of its own: libedit passes signals on to the whole group of processes. `setsid` forks, so it has to wait.
        process.executableURL = URL(filePath: "/usr/bin/setsid")
        let command = try command ?? [CommandLineFolder.program.path] + arguments
        process.arguments = ["--ctty", "--wait"] + command
        process.currentDirectoryURL = URL(filePath: folder.path)
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = handle
        process.standardOutput = handle
        process.standardError = handle
        try Lifeline.run(process)
    }

    deinit { close(master) }

    func type(_ text: String) throws {
        var bytes = Array(text.utf8)
        while !bytes.isEmpty {
            let count = write(master, bytes, bytes.count)
            guard count > 0 else { throw POSIXError(.EIO) }
            bytes.removeFirst(count)
        }
    }

    /// Presses Ctrl-C.
    func interrupt() throws { try type("\u{3}") }

    /// Waits until a text stands on the screen, and forgets what was before it.
    func wait(for text: String) throws {
        guard try wait(for: text, atMost: .seconds(60)) else {
            throw NotSeen(text: text, screen: String(decoding: screen, as: UTF8.self))
        }
    }

    /// Returns whether it appeared.
    func wait(for text: String, atMost limit: Duration) throws -> Bool {
        let end = ContinuousClock.now + limit
        let wanted = Array(text.utf8)
        while true {
            if let place = screen.firstRange(of: wanted) {
                screen.removeSubrange(..<place.upperBound)
                return true
            }
            let left = end - .now
            guard left > .zero else { return false }
            var ready = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
            _ = poll(&ready, 1, Int32(left / .milliseconds(1)) + 1)
            guard ready.revents & Int16(POLLIN) != 0 else {
                if ready.revents != 0 { return false }
                continue
            }
            var piece = [UInt8](repeating: 0, count: 4_096)
            let count = read(master, &piece, piece.count)
            if count > 0 { screen += piece[..<count] }
        }
    }

    /// Waits for the end of the program, pressing keys again and again, and returns its exit code.
    func end(pressing keys: String = "") throws -> Int32 {
        let limit = ContinuousClock.now + .seconds(60)
        while process.isRunning {
            guard .now < limit else {
                throw NotSeen(text: "the end", screen: String(decoding: screen, as: UTF8.self))
            }
            // A program that has just ended takes no keys.
            try? type(keys)
            // What it still writes must not block it.
            _ = try wait(for: "\u{0}", atMost: .milliseconds(200))
        }
        return process.terminationStatus
    }
}
