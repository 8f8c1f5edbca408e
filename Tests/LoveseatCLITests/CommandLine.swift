import Foundation
import LoveseatTesting
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

    /// `input` is what it reads; nil for nothing.
    func start(_ arguments: [String], environment: [String: String] = [:], input: Data? = nil) throws -> (
        Process, Pipe, Pipe
    ) {
        let process = Process()
        process.executableURL = try Self.program
        process.arguments = arguments
        process.currentDirectoryURL = URL(filePath: path)
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        process.standardInput = FileHandle.nullDevice
        if let input {
            try input.write(to: URL(filePath: "\(path)/input"))
            process.standardInput = try FileHandle(forReadingFrom: URL(filePath: "\(path)/input"))
        }
        try Lifeline.run(process)
        return (process, output, errors)
    }

    @discardableResult
    func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Outcome {
        try run(arguments, environment: environment)
    }

    @discardableResult
    func run(_ arguments: [String], environment: [String: String] = [:], input: Data? = nil) throws -> Outcome
    {
        let (process, output, errors) = try start(arguments, environment: environment, input: input)
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let problems = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Outcome(output: text, errors: problems, status: process.terminationStatus)
    }

    func write(_ text: String, to file: String) throws {
        try text.write(toFile: "\(path)/\(file)", atomically: true, encoding: .utf8)
    }

    /// Serves a database in the clear, and returns when it accepts connections.
    func serve(_ database: String, _ arguments: String...) throws -> Server {
        try serve(database, ["--no-tls"] + arguments, environment: [:]).server
    }

    /// Serves a database over TLS, and returns when it accepts connections.
    func serveSecurely(_ database: String, _ arguments: [String], environment: [String: String]) throws
        -> SecureServer
    {
        let (server, errors) = try serve(database, arguments, environment: environment)
        // It was said before the URLs.
        let said = String(decoding: errors.fileHandleForReading.availableData, as: UTF8.self)
        let pin = try #require(said.split(separator: "pin ").last?.prefix { $0 != "\n" })
        return SecureServer(server: server, pin: String(pin), errors: errors)
    }

    /// Serves a database, and returns when it accepts connections.
    func serve(_ database: String, _ arguments: [String], environment: [String: String]) throws
        -> (server: Server, errors: Pipe)
    {
        let all = ["serve", database, "--interface", "127.0.0.1"] + arguments
        let (process, output, errors) = try start(all, environment: environment)
        let line = try output.text { $0.contains("\n") }
        let url = line.trimmingCharacters(in: .whitespacesAndNewlines)
        return (Server(process: process, url: url), errors)
    }

    struct SecureServer {
        let server: Server
        let pin: String
        let errors: Pipe

        /// Waits until it says something on standard error.
        func awaitLine(_ isMeant: (String) -> Bool) throws -> String { try errors.text(until: isMeant) }

        var url: String { server.url }
        func interrupt() -> Int32 { server.interrupt() }
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

extension Pipe {
    /// Reads what a program writes until it is what the test waits for, and returns it all. A program that ends before fails the test.
    func text(until isMeant: (String) -> Bool) throws -> String {
        var said = ""
        while !isMeant(said) {
            let piece = fileHandleForReading.availableData
            try #require(!piece.isEmpty, "the program ended after: \(said)")
            said += String(decoding: piece, as: UTF8.self)
        }
        return said
    }
}
