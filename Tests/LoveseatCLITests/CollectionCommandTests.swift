import Foundation
import Testing

/// The command that deletes a collection.
@Suite(.timeLimit(.minutes(2)))
struct CollectionCommandTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("put", "trips", "tower", "{}", "-c", "travel.sights")
        try folder.run("create", "trips", "--collections", "travel.empty")
    }

    private var collections: String {
        get throws { try folder.run("info", "trips", "--json").output }
    }

    @Test func `a collection with documents is deleted only with --yes, and an empty one without it`() throws
    {
        let refused = try folder.run("collection", "delete", "trips", "travel.sights")
        #expect(refused.status == 64)
        #expect(refused.errors.contains("travel.sights has 1 document: delete it with --yes"))
        #expect(try collections.contains("\"travel.sights\":1"))
        let deleted = try folder.run("collection", "delete", "trips", "travel.sights", "--yes", "--json")
        #expect(deleted.lines == ["{\"collection\":\"travel.sights\",\"documents\":1}"])
        #expect(try folder.run("collection", "delete", "trips", "travel.empty").status == 0)
        #expect(try collections.contains("travel") == false)
        #expect(try folder.run("check", "trips").status == 0)
    }

    @Test(arguments: [("n", 77), ("", 77), ("y", 0)] as [(String, Int32)])
    func `at a terminal it asks, and does nothing without a yes`(_ answer: String, _ status: Int32) throws {
        let terminal = try Terminal(
            folder,
            ["collection", "delete", "trips", "travel.sights"],
            environment: ["TERM": "dumb"]
        )
        try terminal.wait(for: "Delete travel.sights with 1 document? [y/N]")
        try terminal.type("\(answer)\n")
        #expect(try terminal.end() == status)
        #expect(try collections.contains("travel.sights") == (status != 0))
    }

    @Test func `only a named collection that exists can be deleted`() throws {
        let missing = try folder.run("collection", "delete", "trips", "travel.sigths", "--yes")
        #expect(missing.status == 66)
        #expect(missing.errors.contains("did you mean \"travel.sights\"?"), "\(missing.errors)")
        #expect(try folder.run("collection", "delete", "none", "travel.sights").status == 66)
        let standard = try folder.run("collection", "delete", "trips", "_default", "--yes")
        #expect(standard.status == 64)
        #expect(try folder.run("collection", "delete", "trips", "a.b.c").status == 64)
    }
}
