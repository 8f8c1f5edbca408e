import Foundation
import Testing

/// Runs the real `loveseat` in a folder that is gone when the test is over.
final class CommandLineFolder: Sendable {
    let path: String

    init() throws {
        path =
            FileManager.default.temporaryDirectory.appending(path: "loveseat-cli-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// What a command wrote and how it ended.
    struct Outcome {
        let output: String
        let errors: String
        let status: Int32

        var lines: [String] { output.split(separator: "\n").map(String.init) }
    }

    /// The program, which the package manager puts beside the tests under its target's name or its product's.
    static var program: URL {
        get throws {
            let folder = URL(filePath: ProcessInfo.processInfo.arguments[0]).deletingLastPathComponent()
            let names = ["loveseat", "LoveseatCLI"].map { folder.appending(path: $0) }
            return try #require(names.first { FileManager.default.isExecutableFile(atPath: $0.path) })
        }
    }

    func start(_ arguments: [String], environment: [String: String] = [:]) throws -> (Process, Pipe, Pipe) {
        let process = Process()
        process.executableURL = try Self.program
        process.arguments = arguments
        process.currentDirectoryURL = URL(filePath: path)
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        process.standardInput = FileHandle.nullDevice
        try process.run()
        return (process, output, errors)
    }

    @discardableResult
    func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Outcome {
        try run(arguments, environment: environment)
    }

    @discardableResult
    func run(_ arguments: [String], environment: [String: String] = [:]) throws -> Outcome {
        let (process, output, errors) = try start(arguments, environment: environment)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let problems = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Outcome(output: text, errors: problems, status: process.terminationStatus)
    }

    func write(_ text: String, to file: String) throws {
        try text.write(toFile: "\(path)/\(file)", atomically: true, encoding: .utf8)
    }

    /// Serves a database, and returns when it accepts connections.
    func serve(_ database: String, _ arguments: String...) throws -> Server {
        let all = ["serve", database, "--interface", "127.0.0.1", "--no-tls"] + arguments
        let (process, output, _) = try start(all)
        var line = ""
        while !line.contains("\n") {
            let piece = output.fileHandleForReading.availableData
            try #require(!piece.isEmpty, "the listener ended by itself")
            line += String(decoding: piece, as: UTF8.self)
        }
        return Server(process: process, url: line.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    struct Server {
        let process: Process
        let url: String

        var port: String { URL(string: url)?.port.map(String.init) ?? "" }

        func interrupt() -> Int32 {
            process.terminate()
            process.waitUntilExit()
            return process.terminationStatus
        }
    }
}
