import Foundation
import LoveseatTesting
import Testing

/// Standard input, output and error that are closed, or cannot be used.
struct StandardFilesTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("put", "db", "d", "{}")
    }

    /// Starts a command in a shell; `command` names the program as `"$0"`.
    private func shell(_ command: String) throws -> (process: Process, output: Pipe) {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", command, try CommandLineFolder.program.path]
        process.currentDirectoryURL = URL(filePath: folder.path)
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try Lifeline.run(process)
        return (process, output)
    }

    @Test(arguments: [
        #""$0" put new d < ."#, #""$0" put new d <&-"#, #""$0" import new - < ."#, #""$0" import new - <&-"#,
        #""$0" get db d >&-"#, #""$0" get db d >&- 2>&- <&-"#,
    ])
    func `a command that cannot read its input, or write its output, ends with 74`(_ command: String) throws {
        let (process, _) = try shell("exec \(command)")
        process.waitUntilExit()
        #expect(process.terminationReason == .exit)
        #expect(process.terminationStatus == 74)
        #expect(try folder.run("info", "new").status == 66)
    }

    #if os(Linux)
    @Test func `no other file gets the number of one that is closed`() throws {
        let (process, output) = try shell(#"exec "$0" changes db --follow 2>&- <&-"#)
        // The first change: everything is open by then.
        _ = output.fileHandleForReading.availableData
        for number in [0, 2] {
            let link = "/proc/\(process.processIdentifier)/fd/\(number)"
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "/dev/null")
        }
        kill(process.processIdentifier, SIGTERM)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }
    #endif
}
