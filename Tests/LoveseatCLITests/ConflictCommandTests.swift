import Foundation
import LoveseatModel
import Testing

/// `conflicts`, `resolve` and what `push` says of a document that both sides have edited.
struct ConflictCommandTests {
    private let folder: CommandLineFolder

    init() throws {
        folder = try CommandLineFolder()
        try folder.run("put", "here", "d", #"{"n":1}"#)
        try folder.run("create", "there")
        #expect(try folder.run("push", "here", "--local-db", "there").status == 0)
        for n in [2, 3] { try folder.run("put", "there", "d", #"{"n":\#(n)}"#) }
        try folder.run("put", "here", "d", #"{"n":4}"#)
    }

    private func revision(_ database: String) throws -> String {
        try #require(try folder.run("ls", database, "-l").lines.first?.split(separator: "\t")).map(
            String.init
        )[1]
    }

    @Test func `a conflict that the rule decided is listed with all live leaves until somebody ends it`()
        throws
    {
        let (mine, theirs) = (try revision("here"), try revision("there"))
        #expect(try folder.run("sync", "here", "--local-db", "there").status == 0)
        for name in ["here", "there"] {
            #expect(
                try folder.run("conflicts", name).lines == [
                    "_default._default\td\tdecided\t\(theirs)\t\(mine)"
                ]
            )
            let json = try JSONValue(parsing: try folder.run("conflicts", name, "--json").output)
            #expect(json["state"]?.string == "decided")
            #expect(json["revisions"] == [.string(theirs), .string(mine)])
        }
        #expect(try folder.run("resolve", "here", "d", "--keep", mine).status == 0)
        #expect(try folder.run("get", "here", "d", "--raw").lines == [#"{"n":4}"#])
        #expect(try folder.run("conflicts", "here").lines.isEmpty)
        #expect(try folder.run("sync", "here", "--local-db", "there").status == 0)
        #expect(try folder.run("conflicts", "there").lines.isEmpty)
    }

    @Test func `a push of a version that the peer stores beside its own did not fail, and says how to agree`()
        throws
    {
        let mine = try revision("here")
        let push = try folder.run("push", "here", "--local-db", "there", "--json")
        #expect(push.status == 1)
        let counts = try JSONValue(parsing: push.output)
        #expect(counts["failed"] == 0)
        #expect(counts["inConflict"] == 1)
        #expect(push.errors.contains("was stored at the peer"), "\(push.errors)")
        #expect(!push.errors.contains("cannot push"), "\(push.errors)")
        #expect(try folder.run("conflicts", "there").lines.first?.hasSuffix("\t\(mine)") == true)
        #expect(try folder.run("pull", "here", "--local-db", "there").status == 0)
        #expect(try folder.run("push", "here", "--local-db", "there").status == 0)
        #expect(try revision("here") == revision("there"))
    }

    @Test
    func `revisions may be abbreviated, and what does not name one is answered with those that there are`()
        throws
    {
        let (mine, theirs) = (try revision("here"), try revision("there"))
        #expect(try folder.run("sync", "here", "--local-db", "there").status == 0)
        #expect(
            try folder.run("get", "here", "d", "--rev", String(mine.prefix(9)), "--raw").lines == [
                #"{"n":4}"#
            ]
        )
        let unknown = try folder.run("resolve", "here", "d", "--keep", "9-ab")
        #expect(unknown.status == 65)
        for leaf in [mine, theirs] { #expect(unknown.errors.contains(leaf), "\(unknown.errors)") }
        let wrong = try folder.run("resolve", "here", "d", "--keep", "new")
        #expect(wrong.status == 65)
        #expect(wrong.errors.contains("nor the beginning of one"), "\(wrong.errors)")
        #expect(try folder.run("get", "here", "d", "--rev", "9-ab").status == 66)
        #expect(try folder.run("resolve", "here", "d", "--keep", String(mine.prefix(6))).status == 0)
        #expect(try folder.run("get", "here", "d", "--raw").lines == [#"{"n":4}"#])
        // Both sides have made a second revision.
        let several = try folder.run("get", "here", "d", "--rev", "2-")
        #expect(several.status == 65)
        #expect(several.errors.contains("several"), "\(several.errors)")
    }

    @Test func `an edit that lost to a deletion is listed`() throws {
        try folder.run("rm", "there", "d")
        let mine = try revision("here")
        #expect(try folder.run("sync", "here", "--local-db", "there").status == 0)
        #expect(try folder.run("get", "here", "d").status == 66)
        let line = try #require(try folder.run("conflicts", "here").lines.first)
        #expect(line.hasPrefix("_default._default\td\tdecided\t4-"))
        #expect(line.hasSuffix("\t\(mine)"))
    }
}
