import Foundation
import Testing

/// Names that are mistyped, and what is said of them.
struct NearestNameTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("put", "big", "tower", "{}", "-c", "travel.sights")
        try folder.run("put", "big", "tower", "{}")
        try folder.run("index", "create", "big", "by-city", "city")
    }

    @Test(arguments: [
        (["info", "bgi"], "big"), (["ls", "./bgi"], "./big"), (["top", "bgi"], "big"),
        (["ls", "big", "-c", "travl.sights"], "travel.sights"),
        (["export", "big", "-c", "travel.sihgts"], "travel.sights"),
        (["get", "big", "towre"], "tower"), (["rm", "big", "twer"], "tower"),
        (["set", "big", "Tower", "n=1"], "tower"), (["index", "delete", "big", "by-citi"], "by-city"),
    ])
    func `a mistyped name ends with 66, and with the name that was meant`(
        _ arguments: [String],
        _ meant: String
    ) throws {
        let outcome = try folder.run(arguments)
        #expect(outcome.status == 66)
        #expect(outcome.errors.contains("did you mean \"\(meant)\"?"), "\(outcome.errors)")
        #expect(try folder.run("ls", "big").lines == ["tower"])
    }

    @Test(arguments: [
        (["ifno", "big"], "info"), (["index", "lst", "big"], "list"), (["identity", "crate"], "create"),
    ])
    func `a mistyped command ends with 64, and with the command that was meant`(
        _ arguments: [String],
        _ meant: String
    ) throws {
        let outcome = try folder.run(arguments)
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("did you mean \"\(meant)\"?"), "\(outcome.errors)")
    }

    @Test func `a name that is like no other has no hint`() throws {
        for arguments in [
            ["info", "elephant"], ["get", "big", "bridge-17"], ["elephant"], ["get", "big", "x"],
        ] {
            let outcome = try folder.run(arguments)
            #expect(outcome.status == (arguments.count == 1 ? 64 : 66))
            #expect(!outcome.errors.contains("did you mean"), "\(outcome.errors)")
        }
    }

    @Test func `of a missing collection only a command that can use a new one says how to create it`() throws
    {
        for arguments in [
            ["export", "./big", "-c", "nope"], ["index", "list", "./big", "-c", "nope"],
            ["ls", "./big", "-c", "nope"],
        ] {
            let outcome = try folder.run(arguments)
            #expect(outcome.status == 66, "\(arguments)")
            #expect(outcome.errors.contains("there is no collection _default.nope"), "\(outcome.errors)")
            #expect(!outcome.errors.contains("create"), "\(outcome.errors)")
        }
        for command in ["serve", "serve-stdio"] {
            let outcome = try folder.run(command, "./big", "--collections", "nope")
            #expect(outcome.status == 66, "\(command)")
            let advice = "create it with `loveseat create ./big --collections _default.nope`"
            #expect(outcome.errors.contains(advice), "\(outcome.errors)")
        }
    }

    @Test func `help is a command, and so is what comes before an option`() throws {
        for arguments in [
            ["help"], ["help", "index"], ["--version"], ["index", "--help"], ["info", "--help"],
        ] {
            #expect(try folder.run(arguments).status == 0, "\(arguments)")
        }
    }
}
