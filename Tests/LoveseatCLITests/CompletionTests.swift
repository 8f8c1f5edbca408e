import Foundation
import Testing

/// What shells propose.
struct CompletionTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    /// What bash proposes for a line.
    private func completions(_ line: String) throws -> Set<String> {
        let program = try CommandLineFolder.program.path
        let script = try folder.run("--generate-completion-script", "bash").output
        try folder.write(script, to: "completion.bash")
        let bin = "\(folder.path)/bin"
        if !FileManager.default.fileExists(atPath: bin) {
            try FileManager.default.createDirectory(atPath: bin, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: "\(bin)/loveseat",
                withDestinationPath: program
            )
        }
        try folder.write(
            """
            . ./completion.bash
            COMP_LINE=$1; COMP_POINT=${#1}; COMP_TYPE=9; COMP_KEY=9
            read -r -a COMP_WORDS <<< "$1"
            [[ $1 == *' ' ]] && COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            function=$(complete -p loveseat | sed -E 's/.*-F ([^ ]+).*/\\1/')
            $function loveseat "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """,
            to: "complete.sh"
        )
        let process = Process()
        process.executableURL = URL(filePath: "/bin/bash")
        process.arguments = ["complete.sh", line]
        process.currentDirectoryURL = URL(filePath: folder.path)
        process.environment = [
            "PATH": "\(bin):/usr/bin:/bin", "HOME": folder.path, "LOVESEAT_IDENTITIES": "\(folder.path)/ids",
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Set(said.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) })
    }

    @Test func `the shell completes databases, IDs, collections and labels`() throws {
        try folder.run("put", "trips", "tower", "{}")
        try folder.run("put", "trips", "town", "{}")
        try folder.run("put", "trips", "louvre", "{}")
        try folder.run("put", "trips", "note", "{}", "-c", "travel.notes")
        try folder.run("put", "other", "x", "{}")
        _ = try folder.run(
            ["identity", "create", "kiosk"],
            environment: ["LOVESEAT_IDENTITIES": "\(folder.path)/ids"]
        )
        #expect(try completions("loveseat get tr").contains("trips"))
        #expect(try completions("loveseat get tr").contains("other") == false)
        #expect(try completions("loveseat get trips to").isSuperset(of: ["tower", "town"]))
        #expect(try completions("loveseat get trips to").contains("louvre") == false)
        #expect(try completions("loveseat get trips --collection tr").contains("travel.notes"))
        try folder.run("put", "trips", "a", "{}", "-c", "cities")
        #expect(try completions("loveseat get trips --collection ci") == ["cities"])
        #expect(try completions("loveseat identity show ki").contains("kiosk"))
        try folder.run("index", "create", "trips", "by-city", "city")
        #expect(try completions("loveseat index delete trips by").contains("by-city"))
        #expect(try completions("loveseat sync trips --local-db ot").contains("other"))
        #expect(
            try completions("loveseat serve trips --collections travel.notes,_d")
                .contains("travel.notes,_default._default")
        )
    }

    @Test func `bash adds the slash behind a folder, which its completion has not`() throws {
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/data",
            withIntermediateDirectories: true
        )
        try folder.run("create", "data/trips")
        #expect(try completions("loveseat info da") == ["data"])
        #expect(try completions("loveseat info data/t") == ["data/trips"])
    }

    @Test func `the shell completes names of files where a file is wanted`() throws {
        try folder.run("create", "trips")
        for file in ["table.json", "tower.jpg"] { try folder.write("", to: file) }
        let starts = [
            "import trips", "import trips --from-couchdb", "blob put trips tower photo",
            "blob get trips tower photo",
            "serve trips --access", "serve trips --client-ca", "serve trips --user ana --password-file",
            "serve trips --tls", "sync trips ws://a --ca", "sync trips ws://a --identity",
            "identity import kiosk", "pair use trips --code-file",
        ]
        for start in starts {
            let words = try completions("loveseat \(start) t")
            #expect(words.isSuperset(of: ["table.json", "tower.jpg"]), "\(start): \(words)")
        }
        #expect(try completions("loveseat export trips --collection _d").contains("_default._default"))
    }
}
