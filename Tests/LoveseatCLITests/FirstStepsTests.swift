import Foundation
import Testing

/// What a person meets who begins to use the command line.
@Suite(.timeLimit(.minutes(2)))
struct FirstStepsTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    // MARK: Help

    /// The commands, as lists of words.
    private func commands(_ words: [String] = []) throws -> [[String]] {
        let help = try folder.run(words + ["--help"], environment: ["COLUMNS": "80"]).output
        guard let list = help.range(of: "SUBCOMMANDS:") ?? help.range(of: "SUBCOMMANDS:") else {
            return [words]
        }
        var found = [words]
        for line in help[list.upperBound...].split(separator: "\n")
        where line.hasPrefix("  ") && !line.hasPrefix("   ") {
            // Aliases follow the name, after a comma.
            guard let name = line.split(whereSeparator: { " ,".contains($0) }).first.map(String.init),
                name != "help", name != "See"
            else { continue }
            found += try commands(words + [name])
        }
        return found
    }

    /// The examples in a command's help, with their continued lines joined.
    private func examples(_ words: [String], columns: Int) throws -> [String] {
        let help = try folder.run(words + ["--help"], environment: ["COLUMNS": "\(columns)"]).output
        var examples: [String] = []
        var (isInside, goesOn) = (false, false)
        for line in help.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("EXAMPLE") {
                isInside = true
            } else if isInside, goesOn || line.hasPrefix("  ") {
                var text = line.trimmingCharacters(in: .whitespaces)
                let isContinued = goesOn
                goesOn = text.hasSuffix("\\")
                if goesOn { text.removeLast() }
                if isContinued { examples[examples.count - 1] += text } else { examples.append(text) }
            } else {
                isInside = false
            }
        }
        return examples
    }

    @Test func `every example in the help can be pasted into a shell, however narrow the terminal is`() throws
    {
        let program = try CommandLineFolder.program
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/bin",
            withIntermediateDirectories: true
        )
        try FileManager.default.createSymbolicLink(
            atPath: "\(folder.path)/bin/loveseat",
            withDestinationPath: program.path
        )
        var count = 0
        for words in try commands() {
            let examples = try examples(words, columns: 80)
            #expect(try self.examples(words, columns: 40) == examples, "\(words)")
            for example in examples where !example.hasPrefix("#") {
                count += 1
                let start = example.split(separator: " ").first
                #expect(start == "loveseat" || start == "echo", "\(words): \(example)")
                // It would look for peers on the network.
                if example.contains(" browse") || example.contains("--find") { continue }
                // Nobody listens there.
                let safe = example.replacing(/(wss?|https?):\/\/[a-z0-9.]+(:\d+)?/) {
                    "\($0.output.1)://127.0.0.1:1"
                }
                .replacing("ssh host loveseat", with: "false").replacing(/pair show (\w+)/) {
                    "pair show no\($0.output.1)"
                }
                let process = Process()
                process.executableURL = URL(filePath: "/bin/sh")
                let begin = "cd \"$(mktemp -d \(folder.path)/run-XXXXXX)\"; echo {} > tower.json"
                process.arguments = ["-c", "\(begin); \(safe)"]
                process.currentDirectoryURL = URL(filePath: folder.path)
                process.environment = ProcessInfo.processInfo.environment.merging([
                    "PATH": "\(folder.path)/bin:/usr/bin:/bin",
                    "LOVESEAT_IDENTITIES": "\(folder.path)/identities",
                    // Nobody can be asked for it here.
                    "LOVESEAT_PASSWORD": "secret",
                ]) { $1 }
                let errors = Pipe()
                (process.standardOutput, process.standardError) = (FileHandle.nullDevice, errors)
                process.standardInput = FileHandle.nullDevice
                try process.run()
                let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                process.waitUntilExit()
                // There is no such database here, but the shell and the program understand it.
                #expect(![2, 64, 126, 127].contains(process.terminationStatus), "\(example): \(said)")
            }
        }
        #expect(count > 30, "\(count) examples were found")
    }

    // MARK: Mistyped

    @Test func `set creates nothing unless it is asked to`() throws {
        try folder.run("put", "a", "d", "{\"n\":1}")
        let mistyped = [["a", "dd"], ["a", "d", "--collection", "mistyped"], ["aa", "d"]]
        for words in mistyped {
            let said = try folder.run(["set", words[0], words[1], "n=2"] + words.dropFirst(2))
            #expect(said.status == 66, "\(words)")
            #expect(!said.errors.isEmpty, "\(words)")
        }
        #expect(try folder.run("ls", "a").lines == ["d"])
        #expect(try folder.run("info", "a", "--json").output.contains("mistyped") == false)
        #expect(try folder.run("info", "aa").status == 66)
        for words in mistyped {
            let arguments = ["set", words[0], words[1], "n=2", "--create"] + words.dropFirst(2)
            #expect(try folder.run(arguments).status == 0, "\(words)")
        }
        #expect(try folder.run("get", "aa", "d", "--raw").lines == ["{\"n\":2}"])
    }

    @Test func `what is created without being asked for is said, but not with --quiet`() throws {
        #expect(try folder.run("put", "a", "d", "{}").errors.contains("created the database a"))
        #expect(try folder.run("put", "a", "d", "{}").errors.isEmpty)
        #expect(
            try folder.run("put", "a", "d", "{}", "-c", "x.y").errors.contains("created the collection x.y")
        )
        #expect(try folder.run("put", "b", "d", "{}", "--quiet").errors.isEmpty)
    }

    @Test func `a database that must not be read is not said to be missing`() throws {
        guard geteuid() != 0 else {
            // Root may read everything: another user asks.
            return try expectRefusal(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
        }
        try expectRefusal([])
    }

    private func expectRefusal(_ prefix: [String]) throws {
        try folder.run("put", "a", "d", "{}")
        // The build's own folder may not be open to that user.
        let copy = "\(folder.path)/loveseat"
        if !prefix.isEmpty {
            try FileManager.default.copyItem(atPath: try CommandLineFolder.program.path, toPath: copy)
        }
        let files = FileManager.default
        try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        let (database, file) = ("\(folder.path)/a.loveseat", "\(folder.path)/a.loveseat/db.sqlite")
        for hidden in [database, file] {
            try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: database)
            try files.setAttributes([.posixPermissions: 0], ofItemAtPath: hidden)
            for words in [
                ["info", "a"], ["get", "a", "d"], ["put", "a", "e", "{}"], ["check", "a"], ["export", "a"],
                ["ls", "a"],
            ] {
                let process = Process()
                process.executableURL = URL(filePath: "/usr/bin/env")
                process.arguments =
                    prefix.isEmpty ? [try CommandLineFolder.program.path] + words : prefix + [copy] + words
                process.currentDirectoryURL = URL(filePath: folder.path)
                process.environment = ["HOME": "/", "PATH": "/usr/bin:/bin"]
                let errors = Pipe()
                (process.standardOutput, process.standardError) = (FileHandle.nullDevice, errors)
                try process.run()
                let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                process.waitUntilExit()
                #expect(process.terminationStatus == 77, "\(hidden) \(words): \(said)")
                #expect(said.lowercased().contains("permission"), "\(words): \(said)")
            }
        }
        try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: database)
    }

    @Test func `an address that cannot be listened at is named`() throws {
        try folder.run("create", "a")
        let said = try folder.run("serve", "a", "--no-tls", "--interface", "192.0.2.7", "--port", "45678")
        #expect(said.status != 0)
        #expect(said.errors.contains("192.0.2.7"), "\(said.errors)")
        #expect(said.errors.contains("45678"), "\(said.errors)")
    }

    // MARK: Answers for programs

    @Test func `a failure before the start is JSON, too`() throws {
        let cases = [
            ["sync", "none", "ws://127.0.0.1:1/x", "--json"], ["check", "none", "--json"],
            ["sync", "none", "--json"],
            ["info", "none", "--json"], ["index", "list", "none", "--json"],
            ["pair", "list", "none", "--json"],
        ]
        for arguments in cases {
            let said = try folder.run(arguments)
            #expect(said.status != 0)
            #expect(said.lines.count == 1)
            let answer = try JSONSerialization.jsonObject(with: Data(said.output.utf8)) as? [String: Any]
            #expect(answer?["exitCode"] as? Int == Int(said.status), "\(arguments) \(said.output)")
            #expect((answer?["error"] as? String)?.isEmpty == false)
        }
        // What was printed before is not followed by another object.
        try folder.run("create", "a")
        let late = try folder.run("sync", "a", "ws://127.0.0.1:1/x", "--json")
        #expect(late.status == 69)
        #expect(late.lines.count == 1)
        #expect(late.output.contains("\"pushed\":0"))
    }

    @Test func `lists are printed as JSON`() throws {
        try folder.run("create", "a", "--collections", "x.y")
        try folder.run("index", "create", "a", "n", "n", "--where", "n > 0")
        try folder.run(
            "index",
            "create",
            "a",
            "words",
            "text",
            "--full-text",
            "--language",
            "en",
            "-c",
            "x.y"
        )
        func objects(_ arguments: String...) throws -> [[String: Any]] {
            try folder.run(arguments, environment: ["LOVESEAT_IDENTITIES": "\(folder.path)/ids"]).lines.map {
                try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
        }
        let indexes = try objects("index", "list", "a", "--json")
        #expect(indexes.map { $0["name"] as? String } == ["n", "words"])
        #expect(indexes.map { $0["collection"] as? String } == ["_default._default", "x.y"])
        #expect(indexes[0]["where"] as? String == "n > 0")
        #expect(indexes[1]["language"] as? String == "en")
        let lines = try folder.run("index", "list", "a").lines
        #expect(lines == ["n\tvalue\tn\twhere n > 0", "words\tfull-text\ttext\tlanguage en\tin x.y"])
        #expect(
            try folder.run("index", "list", "a", "-c", "x.y").lines == ["words\tfull-text\ttext\tlanguage en"]
        )
        #expect(try objects("check", "a", "--json")[0]["problems"] as? [String] == [])
        #expect(try objects("pair", "list", "a", "--json").isEmpty)
        _ = try folder.run(
            ["identity", "create", "me"],
            environment: ["LOVESEAT_IDENTITIES": "\(folder.path)/ids"]
        )
        #expect(try objects("identity", "list", "--json").map { $0["label"] as? String } == ["me"])
    }

    @Test func `every command takes --quiet`() throws {
        for words in try commands() where !words.isEmpty {
            let help = try folder.run(words + ["--help"]).output
            // Commands that only contain others have nothing to say.
            guard !help.contains("SUBCOMMANDS:") else { continue }
            #expect(help.contains("--quiet"), "\(words)")
        }
        try folder.write("{\"_id\":\"a\"}\n", to: "in")
        for words in [
            ["import", "a", "in"], ["check", "a"], ["put", "b", "x", "{}"], ["sync", "a", "--local-db", "b"],
        ] {
            let said = try folder.run(words + ["--quiet"])
            #expect(said.status == 0, "\(words): \(said.errors)")
            #expect(said.errors.isEmpty, "\(words): \(said.errors)")
        }
    }

    // MARK: Progress

    @Test func `a share is shown when it is known, and never falls`() throws {
        let text = String(repeating: "x", count: 900)
        try folder.write((0..<8_000).map { "{\"_id\":\"d\($0)\",\"t\":\"\(text)\"}\n" }.joined(), to: "in")
        let importing = try Terminal(folder, ["import", "a", "in"], environment: [:])
        try importing.wait(for: "importing")
        try importing.wait(for: "% of the file")
        try importing.wait(for: "8000 documents")
        #expect(try importing.end() == 0)
        try folder.run("create", "b")
        let server = try folder.serve("a")
        defer { _ = server.interrupt() }
        let (process, _, _) = try folder.start(["create", "c"])
        process.waitUntilExit()
        // A terminal of its own, of which all is kept.
        let script = Process()
        script.executableURL = URL(filePath: "/usr/bin/script")
        let program = try CommandLineFolder.program.path
        script.arguments = ["-qec", "'\(program)' pull b \(server.url)", "/dev/null"]
        script.currentDirectoryURL = URL(filePath: folder.path)
        script.standardInput = FileHandle.nullDevice
        let output = Pipe()
        (script.standardOutput, script.standardError) = (output, output)
        try script.run()
        let shown = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        script.waitUntilExit()
        #expect(script.terminationStatus == 0)
        let first = try #require(shown.firstRange(of: "connecting"))
        #expect(!shown[..<first.lowerBound].contains("%"))
        let shares = shown.matches(of: /\] (\d+) %/).compactMap { Int($0.output.1) }
        #expect(shares == shares.sorted())
        #expect(shown.contains("8000 pulled"))
    }

    @Test(arguments: ["set", "rm"])
    func `the first comparison counts what moves, and not what the peer has newer`(_ edit: String) throws {
        try folder.write((0..<300).map { "{\"_id\":\"d\($0)\",\"n\":\($0)}\n" }.joined(), to: "in")
        for name in ["a", "b"] { try folder.run("import", name, "in") }
        for id in ["d7", "d70"] {
            try folder.run(edit == "set" ? ["set", "b", id, "n=0"] : ["rm", "b", id])
        }
        try folder.run("set", "a", "d200", "n=1")
        try folder.run("put", "a", "new", "{}")
        let server = try folder.serve("b")
        defer { _ = server.interrupt() }
        let said = try folder.run("sync", "a", server.url, "--json").output
        #expect(said.contains("\"pulled\":2,\"pushed\":2,"), "\(said)")
        let again = try folder.run("sync", "a", server.url, "--json", "--reset").output
        #expect(again.contains("\"pulled\":0,\"pushed\":0,"), "\(again)")
    }
}
