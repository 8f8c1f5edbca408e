import Foundation
import LoveseatTesting
import Testing

/// `check`, where one needs it most.
struct CheckCommandTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        for number in 0..<200 {
            try folder.run(
                "put",
                "db",
                "d\(number)",
                "{\"n\":\(number),\"text\":\"\(String(repeating: "x", count: 200))\"}"
            )
        }
    }

    private var file: String { "\(folder.path)/db.loveseat/db.sqlite" }

    /// All files with their content and times.
    private func files() throws -> [String: String] {
        let root = "\(folder.path)/db.loveseat"
        var found: [String: String] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: root) {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(root)/\(name)")
            found[name] =
                "\(attributes[.modificationDate] ?? "") \(FileManager.default.contents(atPath: "\(root)/\(name)") ?? Data())"
        }
        return found
    }

    @Test func `a check writes nothing, and works where nothing can be written`() throws {
        let before = try files()
        #expect(try folder.run("check", "db").status == 0)
        #expect(try files() == before)
        let root = "\(folder.path)/db.loveseat"
        try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: file)
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: root)
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: root) }
        #expect(try folder.run("check", "db").status == 0)
        #expect(try files().keys.sorted() == before.keys.sorted())
    }

    /// Whether this user may mount file systems in a namespace.
    private static let mayMount: Bool = {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        process.standardError = FileHandle.nullDevice
        guard (try? Lifeline.run(process)) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    @Test(.enabled(if: mayMount)) func `a check works on a full disk and on one that is mounted read-only`()
        throws
    {
        let program = try CommandLineFolder.program.path
        let script = """
            mount -t tmpfs -o size=4m tmpfs "$1" && cd "$1" && "$0" put a d '{"n":1}' > /dev/null || exit 2
            dd if=/dev/zero of=filler bs=4k 2> /dev/null
            "$0" check a || exit 3
            mount -o remount,ro "$1" && "$0" check a || exit 4
            """
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["unshare", "-rm", "bash", "-c", script, program, folder.path]
        try Lifeline.run(process)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }

    @Test func `a check beside a process that writes reads what it has committed`() throws {
        let server = try folder.serve("db")
        #expect(try folder.run("check", "db").status == 0)
        #expect(server.interrupt() == 0)
        #expect(try folder.run("check", "db").status == 0)
    }

    @Test func `each damage of the file ends with 65 and a sentence`() throws {
        let whole = try #require(FileManager.default.contents(atPath: file))
        var generator = SeededGenerator(seed: 5)
        var found = 0
        for round in 0..<14 {
            var damaged = whole
            switch round {
            case 0: damaged = Data("this is no database, and never was one".utf8)
            case 1: damaged = whole.prefix(whole.count / 2)
            case 2, 3: damaged = whole.prefix(round - 2)
            default:
                // A page or more of noise, not in the first one, which says what the file is.
                let start = generator.int(4_096...whole.count - 9_000)
                damaged.replaceSubrange(start..<start + 8_192, with: generator.bytes(8_192))
            }
            try damaged.write(to: URL(filePath: file))
            let outcome = try folder.run("check", "db")
            #expect([0, 65].contains(outcome.status), "round \(round): \(outcome.status) \(outcome.errors)")
            if outcome.status == 65 {
                found += 1
                #expect(outcome.output.contains(" "), "round \(round): \(outcome.output)")
            }
        }
        #expect(found >= 12)
        try whole.write(to: URL(filePath: file))
        #expect(try folder.run("check", "db").status == 0)
    }
}
