import Foundation

/// Programs that are used if they are installed.
package enum Programs {
    /// The path of a program; nil if it is not installed.
    package static func path(of name: String) -> String? {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return folders.map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }

    /// The result of a program that has ended.
    package struct Result: Sendable {
        package let status: Int32
        package let output: Data
    }

    /// Runs a program, and returns its exit code and what it wrote to standard output; nil if it cannot be started.
    ///
    /// `inheritsInput`: whether it reads this process's standard input.
    package static func run(_ path: String, _ arguments: [String], inheritsInput: Bool = false) async
        -> Result?
    {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                continuation.resume(returning: runBlocking(path, arguments, inheritsInput))
            }
            thread.start()
        }
    }

    private static func runBlocking(_ path: String, _ arguments: [String], _ inheritsInput: Bool) -> Result? {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        if !inheritsInput { process.standardInput = FileHandle.nullDevice }
        process.standardError = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        do { try process.run() } catch { return nil }
        let output = (try? pipe.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        return Result(status: process.terminationStatus, output: output)
    }
}
