import Foundation
import LoveseatTesting
import Testing

/// A server that has no file descriptors left.
@Suite(.enabled(if: FileManager.default.fileExists(atPath: "/proc/self/stat"))) struct DescriptorLimitTests {
    /// Seconds of processor time that a process has used, from `/proc`.
    private func processorTime(_ process: Process) throws -> Double {
        let text = try String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)
        let fields = try #require(text.split(separator: ")").last).split(separator: " ")
        // 14 and 15 of all, of which two stand before the parenthesis; in hundredths.
        return [11, 12].reduce(0) { $0 + (Double(fields[$1]) ?? 0) / 100 }
    }

    @Test func `accepting waits while there are no file descriptors`() throws {
        let folder = try CommandLineFolder()
        try folder.run("put", "a", "d", "{}")
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = [
            "-c", "ulimit -n 64; exec \"$0\" serve a --no-tls --quiet --interface 127.0.0.1",
            try CommandLineFolder.program.path,
        ]
        process.currentDirectoryURL = URL(filePath: folder.path)
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try Lifeline.run(process)
        defer { process.terminate() }
        let line = try output.text { $0.contains("\n") }
        let url = line.trimmingCharacters(in: .whitespacesAndNewlines)
        let port = try #require(URL(string: url)?.port.flatMap { UInt16(exactly: $0) })
        let peers = try (0..<100).map { _ in try HostilePeer(port: port, upgrades: false) }
        // Another process of this computer asks, and has to wait, too.
        let (top, shown, _) = try folder.start(["top", "a", "--once"])
        // Over two seconds a process that tries again and again uses a processor for one at least.
        let before = try processorTime(process)
        Thread.sleep(forTimeInterval: 2)
        #expect(try processorTime(process) - before < 0.5)
        peers.forEach { $0.close() }
        #expect(!shown.fileHandleForReading.readDataToEndOfFile().isEmpty)
        top.waitUntilExit()
        #expect(top.terminationStatus == 0)
        // Who comes when descriptors are free again is served.
        try folder.run("create", "b")
        #expect(try folder.run("pull", "b", url).status == 0)
        #expect(try folder.run("get", "b", "d").status == 0)
    }
}
