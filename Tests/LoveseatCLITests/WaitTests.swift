import Foundation
import Testing

/// What a command says while it waits for its next attempt.
struct WaitTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("create", "db")
    }

    private static func isWait(_ line: Substring, for reason: String) -> Bool {
        line.hasPrefix("offline: ") && line.contains(reason)
            && line.contains(#/; next attempt in 1 s, at \d\d:\d\d:\d\d/#)
    }

    @Test func `a wait for a peer that cannot be reached says why, how long and until when`() throws {
        let arguments = ["sync", "db", "ws://127.0.0.1:1/db", "--max-attempts", "2", "--max-wait", "1"]
        let outcome = try folder.run(arguments)
        #expect(outcome.status == 69)
        let lines = outcome.errors.split(separator: "\n")
        #expect(lines.count { Self.isWait($0, for: "connection refused") } == 1, "\(outcome.errors)")
        let quiet = try folder.run(arguments + ["--quiet"])
        #expect(!quiet.errors.contains("next attempt"), "\(quiet.errors)")
    }

    @Test func `no maximum of attempts, or 0, is one attempt of a single pass`() throws {
        for options in [[], ["--max-attempts", "0"]] {
            let outcome = try folder.run(["sync", "db", "ws://127.0.0.1:1/db", "--max-wait", "1"] + options)
            #expect(outcome.status == 69)
            #expect(!outcome.errors.contains("next attempt"), "\(outcome.errors)")
        }
    }

    @Test func `a wait for a server that refuses with 429 and names no time says so, too`() throws {
        let server = try SilentServer()
        let url = "ws://127.0.0.1:\(server.port)/db"
        let (process, output, errors) = try folder.start(
            ["sync", "db", url, "--max-attempts", "2", "--max-wait", "1"]
        )
        for _ in 0..<2 {
            let (connection, _) = try server.hear()
            let answer = Array(
                "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8
            )
            #expect(write(connection, answer, answer.count) == answer.count)
            close(connection)
        }
        let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        _ = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 69)
        #expect(said.split(separator: "\n").count { Self.isWait($0, for: "429") } == 1, "\(said)")
    }
}
