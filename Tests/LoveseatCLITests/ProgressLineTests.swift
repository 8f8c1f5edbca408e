import Foundation
import Testing

/// The line of progress on terminals that are narrow, or cannot replace a line.
@Suite(.timeLimit(.minutes(2)))
struct ProgressLineTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        let text = String(repeating: "x", count: 900)
        try folder.write((0..<4_000).map { "{\"_id\":\"d\($0)\",\"t\":\"\(text)\"}\n" }.joined(), to: "in")
    }

    /// What an import shows on a terminal with so many columns.
    private func shown(columns: Int, _ environment: [String: String], of count: Int = 4_000) throws -> String
    {
        let script = Process()
        script.executableURL = URL(filePath: "/usr/bin/script")
        let program = try CommandLineFolder.program.path
        script.arguments = ["-qec", "stty cols \(columns); '\(program)' import a in", "/dev/null"]
        script.currentDirectoryURL = URL(filePath: folder.path)
        script.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        script.standardInput = FileHandle.nullDevice
        let output = Pipe()
        (script.standardOutput, script.standardError) = (output, output)
        try script.run()
        let shown = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        script.waitUntilExit()
        #expect(script.terminationStatus == 0)
        #expect(shown.contains("importing"), "\(shown)")
        #expect(shown.contains("\(count) documents"), "\(shown)")
        return shown
    }

    @Test func `a line of progress is never as wide as the terminal`() throws {
        let pieces = try shown(columns: 24, ["TERM": "xterm"]).components(separatedBy: "\r\u{1B}[K")
            .dropFirst()
        // The last piece is behind the line, which is cleared then.
        let lines = pieces.dropLast()
        #expect(!lines.isEmpty)
        for line in lines { #expect(line.count < 24, "\(line)") }
    }

    @Test(arguments: [
        ("{\"_id\":\"d", "\"}\n", ""), ("[{\"_id\":\"d", "\"}", "]"), ("{\"_id\":\"d", "\"} ", ""),
    ])
    func `the share is that of the documents that were counted, and not of what was read ahead`(
        _ start: String,
        _ end: String,
        _ last: String
    ) throws {
        // All of it is read at once. Each document is as long as the others.
        let documents = (100_000..<130_000).map {
            "\($0 == 100_000 ? start : start.replacing("[", with: ","))\($0)\(end)"
        }
        try folder.write(documents.joined() + last, to: "in")
        let shown = try shown(columns: 80, ["TERM": "xterm"], of: 30_000)
        let lines = shown.matches(of: /(\d+) documents, (\d+) % of the file/)
        #expect(!lines.isEmpty, "\(shown)")
        for line in lines {
            let (count, share) = (Int(line.output.1) ?? 0, Int(line.output.2) ?? 0)
            // The brackets of an array count, too.
            #expect(abs(share - count * 100 / 30_000) <= 1, "\(line.output.0)")
        }
    }

    @Test func `a terminal that cannot replace a line gets one line after another`() throws {
        let shown = try shown(columns: 80, ["TERM": "dumb"])
        #expect(!shown.contains("\u{1B}"), "\(shown)")
        #expect(shown.contains("% of the file\r\n"), "\(shown)")
    }
}
