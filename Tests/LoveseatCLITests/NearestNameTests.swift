import Foundation
import Testing

/// Names that are mistyped, and what is said of them.
struct NearestNameTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("put", "big", "tower", "{}", "-c", "travel.sights")
        try folder.run("put", "big", "tower", "{}")
        try folder.write("picture", to: "photo")
        try folder.run("blob", "put", "big", "tower", "photo", "photo")
        try folder.run("index", "create", "big", "by-city", "city")
    }

    @Test(arguments: [
        (["info", "bgi"], "big"), (["ls", "./bgi"], "./big"), (["top", "bgi"], "big"),
        (["ls", "big", "-c", "travl.sights"], "travel.sights"),
        (["export", "big", "-c", "travel.sihgts"], "travel.sights"),
        (["get", "big", "towre"], "tower"), (["rm", "big", "twer"], "tower"),
        (["set", "big", "Tower", "n=1"], "tower"), (["index", "delete", "big", "by-citi"], "by-city"),
        (["purge", "big", "towre"], "tower"), (["revs", "big", "towre"], "tower"),
        (["get", "big", "towre", "--rev", "1-aa"], "tower"),
        (["resolve", "big", "towre", "--keep", "1-aa"], "tower"),
        (["blob", "get", "big", "towre", "photo"], "tower"),
        (["blob", "get", "big", "tower", "phtoo"], "photo"),
        (["query", "big", "SELECT * FROM travel.sihgts"], "travel.sights"),
        (["query", "big", "SELECT * FROM sights"], "travel.sights"),
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
        (["show", "big", "tower"], "get"), (["update", "big"], "set"), (["vacuum", "big"], "compact"),
        (["identity", "new"], "create"), (["pair", "remove"], "forget"), (["replicate", "big"], "sync"),
    ])
    func `a mistyped command ends with 64, and with the command that was meant`(
        _ arguments: [String],
        _ meant: String
    ) throws {
        let outcome = try folder.run(arguments)
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("did you mean \"\(meant)\"?"), "\(outcome.errors)")
    }

    @Test(arguments: [
        (["list", "big"], "tower"), (["index", "ls", "big"], "by-city"), (["pair", "ls", "big"], ""),
        (["index", "drop", "big", "by-city"], ""), (["delete", "big", "tower"], ""),
        (["identity", "ls"], ""), (["collection", "rm", "big", "travel.sights", "--yes"], ""),
    ])
    func `a conventional name of a command is an alias`(_ arguments: [String], _ output: String) throws {
        let outcome = try folder.run(
            arguments,
            environment: ["LOVESEAT_IDENTITIES": "\(folder.path)/identities"]
        )
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.hasPrefix(output), "\(outcome.output)")
    }

    @Test(arguments: [
        (["collection", "create", "big", "x.y"], 64, "use `loveseat create DB --collections NAME`"),
        (["collection", "list", "big"], 64, "use `loveseat info DB`"),
        (["set", "big", "tower", "n=1", "-c", "nope"], 66, "use --create to create it"),
        (["query", "SELECT * FROM _", "big"], 66, "the database comes first, as in big 'SELECT * FROM _'"),
        (["get", "tower", "big"], 66, "the database comes first, as in big tower"),
        (
            ["ls", "big/sihgts"], 66,
            "the database is big, and --collection names one of its collections, as in -c travel.sights"
        ),
        (["info", "a b"], 66, "create it with `loveseat create 'a b'`"),
        (["put", "big", "tower", "tower.json"], 65, "write < tower.json"),
        (["put", "big", "tower", "photo"], 65, "write < photo"),
        (["pair", "use", "big", "garbage"], 64, "a pairing code has six digits"),
        (["query", "big", "SELECT * FROM _ WHERE MATCH(x, 'a')"], 66, "create it (at character 23)"),
        (
            ["index", "create", "big", "w", "text", "--full-text", "--language", "xx"], 64,
            "--language xx is not known: use one of da, de, en,"
        ),
    ])
    func `a common mistake is answered with what to do`(
        _ arguments: [String],
        _ status: Int,
        _ advice: String
    ) throws {
        let outcome = try folder.run(arguments)
        #expect(outcome.status == Int32(status), "\(outcome.errors)")
        #expect(outcome.errors.contains(advice), "\(outcome.errors)")
    }

    @Test
    func `a document that is created beside one with a similar ID is remarked, unless only numbers differ`()
        throws
    {
        #expect(try folder.run("put", "big", "towre", "{}").errors.contains("did you mean \"tower\"?"))
        #expect(try folder.run("put", "big", "towre", "{}").errors.isEmpty)
        #expect(try folder.run("put", "big", "trip-1", "{}").errors.isEmpty)
        #expect(try folder.run("put", "big", "trip-2", "{}").errors.isEmpty)
        let blob = try folder.run("blob", "put", "big", "twoer", "photo", "photo")
        #expect(blob.errors.contains("created the document \"twoer\": did you mean \""), "\(blob.errors)")
        #expect(try folder.run("put", "big", "tovver", "{}", "--quiet").errors.isEmpty)
    }

    @Test(arguments: [
        (["put", "cities", "tower", "{}"], ""), (["put", "citees", "tower", "{}"], "cities"),
        (["put", "data/citees", "tower", "{}"], ""), (["put", "cities2", "tower", "{}"], ""),
        (["put", "big", "tower", "{}", "-c", "travel.sihgts"], "travel.sights"),
        (["put", "big", "tower", "{}", "-c", "sightseeing"], ""),
    ])
    func `a database or collection that is created beside a similar one is remarked`(
        _ arguments: [String],
        _ meant: String
    ) throws {
        if meant == "cities" || arguments[1] == "cities2" { try folder.run("create", "cities") }
        let outcome = try folder.run(arguments)
        #expect(outcome.status == 0)
        #expect(outcome.errors.contains("loveseat: created the "), "\(outcome.errors)")
        #expect(outcome.errors.contains("did you mean") == !meant.isEmpty, "\(outcome.errors)")
        #expect(outcome.errors.contains("did you mean \"\(meant)\"?") == !meant.isEmpty, "\(outcome.errors)")
    }

    @Test func `a command that saves nothing leaves nothing that it created`() throws {
        for arguments in [
            ["put", "new", "x", #"{"_bad":1}"#], ["put", "new", "x", "{}", "--rev", "1-a"],
            ["put", "new", "", "{}"],
            ["set", "new", "x", "_bad=1", "--create"], ["blob", "put", "new", "x", "_bad", "photo"],
        ] {
            let outcome = try folder.run(arguments)
            #expect(outcome.status == 65, "\(arguments)")
            #expect(!outcome.errors.contains("created"), "\(outcome.errors)")
            #expect(try folder.run("info", "new").status == 66, "\(arguments)")
            var inBig = arguments
            inBig[arguments[0] == "blob" ? 2 : 1] = "big"
            #expect(try folder.run(inBig + ["-c", "other"]).status == 65, "\(arguments)")
            #expect(try folder.run("ls", "big", "-c", "other").status == 66, "\(arguments)")
        }
        #expect(try folder.run("ls", "big").lines == ["tower"])
    }

    @Test func `a path through a database makes no database unless create was asked to make one`() throws {
        try folder.write(#"{"_id":"a"}"#, to: "a.json")
        for database in ["big/sights", "big.loveseat/sights"] {
            for arguments in [
                ["put", database, "tower", "{}"], ["import", database, "a.json"],
                ["set", database, "tower", "n=1", "--create"],
                ["blob", "put", database, "a", "photo", "photo"],
            ] {
                let outcome = try folder.run(arguments)
                #expect(outcome.status == 66, "\(arguments)")
                #expect(outcome.errors.contains("as in -c travel.sights"), "\(outcome.errors)")
                #expect(try folder.run("info", database).status == 66)
            }
        }
        #expect(try folder.run("create", "big/sights").status == 0)
        #expect(try folder.run("put", "big/others", "tower", "{}").status == 0)
    }

    @Test func `a name that is like no other has no hint`() throws {
        try folder.run("put", "data/abc", "tower", "{}", "-c", "xyz")
        for arguments in [
            ["info", "elephant"], ["get", "big", "bridge-17"], ["elephant"], ["get", "big", "x"],
            ["info", "data/uvw"], ["ls", "data/abc", "-c", "uvw"],
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
