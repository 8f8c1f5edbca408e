import Foundation
import Testing

/// What a peer refuses with 403: it is final, and named wherever somebody would look for it.
struct RefusedTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.write("s3cret\n", to: "password")
        try folder.write(
            "{\"*\":{\"*\":{\"access\":\"write\",\"if\":\"owner = \\\"bob\\\"\"}}}",
            to: "access.json"
        )
        try folder.run("create", "far")
    }

    @Test func `what was refused is not sent again, and is named by why, pending and the summary`() throws {
        let environment = ["LOVESEAT_PASSWORD": "s3cret"]
        let server = try folder.serve(
            "far",
            "--user",
            "bob",
            "--password-file",
            "password",
            "--access",
            "access.json"
        )
        let peer = [server.url, "--user", "bob"]
        func run(_ command: String, _ arguments: String...) throws -> CommandLineFolder.Outcome {
            try folder.run([command, "near"] + arguments + peer, environment: environment)
        }
        func sync() throws -> CommandLineFolder.Outcome {
            try folder.run(["sync", "near"] + peer + ["--json"], environment: environment)
        }
        for (id, owner) in [("mine", "bob"), ("one", "ana"), ("two", "ana")] {
            try folder.run("put", "near", id, "{\"owner\":\"\(owner)\"}")
        }
        let first = try sync()
        #expect(first.status == 1)
        #expect(first.output.contains("\"failed\":2"))
        #expect(first.output.contains("\"refusedEarlier\":0"))
        let second = try sync()
        #expect(second.status == 1, "\(second.errors)")
        #expect(second.output.contains("\"failed\":0"))
        #expect(second.output.contains("\"refusedEarlier\":2"))
        #expect(try run("sync").errors.contains("0 failed, 2 refused earlier"))
        #expect(try folder.run(["pull", "near"] + peer, environment: environment).status == 0)
        // Not pending, but named.
        #expect(try run("pending").lines.isEmpty)
        let refused = try folder.run(["pending", "near"] + peer + ["--refused"], environment: environment)
        #expect(refused.lines.count == 2)
        #expect(refused.output.contains("one"))
        #expect(refused.output.contains("you may not"))
        let json = try folder.run(
            ["pending", "near"] + peer + ["--refused", "--json"],
            environment: environment
        )
        #expect(json.lines.allSatisfy { $0.contains("\"error\":") })
        let why = try run("why", "one")
        #expect(why.output.hasPrefix("refused: "))
        #expect(why.output.contains("--reset"))
        // What changes is sent again.
        try folder.run("put", "near", "one", "{\"owner\":\"bob\"}")
        #expect(try run("pending").lines.count == 1)
        let third = try sync()
        #expect(third.status == 1, "\(third.errors)")
        #expect(third.output.contains("\"refusedEarlier\":1"), "\(third.errors)")
        #expect(third.output.contains("\"pushed\":1"))
        // As is everything after a reset.
        let reset = try folder.run(["push", "near"] + peer + ["--reset"], environment: environment)
        #expect(reset.status == 1, "\(reset.errors)")
        #expect(reset.errors.contains("1 failed in"), "\(reset.errors)")
        #expect(server.interrupt() == 0)
    }
}
