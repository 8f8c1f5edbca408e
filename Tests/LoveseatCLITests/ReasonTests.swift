import Foundation
import Testing

/// Files that cannot be opened, and what is said of them.
struct ReasonTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    @Test func `a database that cannot be opened is not one that does not exist`() throws {
        try FileManager.default.createSymbolicLink(
            atPath: "\(folder.path)/loop.loveseat",
            withDestinationPath: "loop.loveseat"
        )
        for (name, reason) in [
            ("loop", "symbolic links"), (String(repeating: "x", count: 300), "too long"),
        ] {
            let outcome = try folder.run("ls", name)
            #expect(outcome.status == 66)
            #expect(outcome.errors.contains(reason), "\(outcome.errors)")
            #expect(!outcome.errors.contains("there is no database"), "\(outcome.errors)")
        }
        #expect(try folder.run("ls", "none").errors.contains("there is no database"))
    }

    @Test(arguments: [
        ["--user", "ana", "--password-file"], ["--tls"], ["--client-ca"], ["--access"],
    ])
    func `a file that cannot be read is named with the reason`(_ options: [String]) throws {
        try folder.run("create", "db")
        try FileManager.default.createDirectory(
            atPath: "\(folder.path)/folder.pem",
            withIntermediateDirectories: false
        )
        for (file, reason) in [("./none.pem", "No such file"), ("./folder.pem", "directory")] {
            let outcome = try folder.run(
                ["serve", "db", "--interface", "127.0.0.1"] + options + [file],
                environment: ["LOVESEAT_IDENTITIES": "\(folder.path)/identities"]
            )
            #expect(outcome.status == 66)
            #expect(outcome.errors.contains("cannot read \(file): "), "\(outcome.errors)")
            #expect(outcome.errors.contains(reason), "\(outcome.errors)")
        }
        let missing = try folder.run("import", "db", "none.json")
        #expect(missing.errors.contains("cannot read none.json: No such file"), "\(missing.errors)")
    }
}
