import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

// Group of this target in ./test: busy

/// `revs` of documents that have version vectors.
struct VersionCommandTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    private static let anna = "VVebVXiW0M4XZMR/7WRPmw"
    private static let ben = "ZwCGnI/3SA40pwpwiwKHAA"
    private static let cleo = "y90Q1yAAs6QGig6myZrsaw"
    private static let dora = "adsxl26tN7hcxCpJyV/Qbg"

    /// A version of some seconds after 2020-09-13 12:26:40 UTC.
    private static func version(_ seconds: UInt64, _ source: String) -> String {
        let time: UInt64 = (1_600_000_000 + seconds) * 1_000_000_000
        return "\(String(time, radix: 16))@\(source)"
    }

    private func receive(_ line: [LoveseatCore.Collection.VersionedRevision]) throws -> [RevisionID] {
        let database = try Database(name: "db", config: DatabaseConfiguration(directory: folder.path))
        let ids = try database.defaultCollection().receive(line, of: "tower")
        try database.close()
        return ids
    }

    @Test func `revisions have their versions below them, and the words say where they come from`() throws {
        let first = Self.version(1, Self.anna)
        let merge = [
            Self.version(6, Self.dora), Self.version(4, Self.cleo), Self.version(3, Self.ben),
        ].joined(separator: ", ")
        let ids = try receive([
            .init(id: "1-aabbccddeeff"), .init(vector: "\(first); 1aabbccddee@Revision+Tree+Encoding"),
            .init(id: "3-0123456789ab", vector: "\(merge); \(first)"), .init(id: "4-00ab"),
        ])
        let merged = [
            "\tprevious\t\(Self.version(6, Self.dora))\t2020-09-13T12:26:46.000Z",
            "\tprevious\t\(Self.version(4, Self.cleo))\t2020-09-13T12:26:44.000Z",
            "\tprevious\t\(Self.version(3, Self.ben))\t2020-09-13T12:26:43.000Z",
            "\tprevious\t\(first)\t2020-09-13T12:26:41.000Z",
        ]
        let lines = try folder.run("revs", "db", "tower").lines
        #expect(
            lines == [
                "4-00ab\t3-0123456789ab\tcurrent leaf\t400ab000000@Revision+Tree+Encoding\t4-00ab000000"
            ] + merged + [
                "3-0123456789ab\t\(ids[2])\t\t\(Self.version(6, Self.dora))\t2020-09-13T12:26:46.000Z",
                "\tmerged\t\(Self.version(4, Self.cleo))\t2020-09-13T12:26:44.000Z",
                "\tmerged\t\(Self.version(3, Self.ben))\t2020-09-13T12:26:43.000Z",
                "\tprevious\t\(first)\t2020-09-13T12:26:41.000Z",
                "\tprevious\t1aabbccddee@Revision+Tree+Encoding\t1-aabbccddee",
                "\(ids[2])\t1-aabbccddeeff\tderived\t\(first)\t2020-09-13T12:26:41.000Z",
                "\tprevious\t1aabbccddee@Revision+Tree+Encoding\t1-aabbccddee",
                "1-aabbccddeeff\t-\t",
            ]
        )
    }

    @Test func `as JSON, a revision lists its versions`() throws {
        let (first, second) = (Self.version(1, Self.anna), Self.version(2, Self.ben))
        let ids = try receive([.init(id: "1-aabb"), .init(vector: "\(second), \(first);")])
        let lines = try folder.run("revs", "db", "tower", "--json").lines.map { try JSONValue(parsing: $0) }
        #expect(lines.map { $0["revision"]?.string } == ids.map(\.text))
        #expect(lines.first?["version"]?.string == second)
        #expect(lines.first?["merged"] == [.string(first)])
        #expect(lines.first?["previous"] == [])
        #expect(lines.first?["flags"] == ["current", "leaf", "derived"])
        // Peers of Couchbase Lite 4 are told the ID.
        for name in ["version", "merged", "previous"] {
            #expect(lines.last?.object?.keys.contains(name) == false)
        }
    }

    @Test func `versions that this database made are its own`() throws {
        let database = try Database(name: "db", config: DatabaseConfiguration(directory: folder.path))
        try database.store.beginVersions()
        let collection = try database.defaultCollection()
        _ = try collection.receive([.init(vector: Self.version(1, Self.anna))], of: "tower")
        try collection.save(Document(id: "tower", ["likes": 4]))
        try database.close()
        let fields = try folder.run("revs", "db", "tower").lines.map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
        try #require(fields.map(\.count) == [6, 4, 5])
        #expect(fields[0][5] == "own")
        #expect(fields[0][1] == fields[2][0])
        #expect(Array(fields[1][1...2]) == ["previous", Self.version(1, Self.anna)])
        #expect(fields[2][2] == "derived")
        let json = try folder.run("revs", "db", "tower", "--json").lines.map { try JSONValue(parsing: $0) }
        #expect(json.map { $0["isOwn"]?.bool } == [true, false])
        #expect(json.map { $0["time"]?.string } == [fields[0][4], fields[2][4]])
        #expect(json.map { $0["version"]?.string } == [fields[0][3], fields[2][3]])
    }

    @Test func `a version names its revision, in whole or abbreviated`() throws {
        let (first, second) = (Self.version(1, Self.anna), Self.version(2, Self.ben))
        let ids = try receive([.init(vector: first), .init(vector: "\(second); \(first)")])
        for name in [second, "\(second.prefix { $0 != "@" })@"] {
            let content = try folder.run("get", "db", "tower", "--rev", name, "--raw")
            #expect(content.lines == [#"{"text":"there"}"#])
            #expect(try folder.run("resolve", "db", "tower", "--keep", name).lines == [ids[0].text])
        }
        #expect(try folder.run("get", "db", "tower", "--rev", Self.version(3, Self.ben)).status == 66)
        #expect(try folder.run("put", "db", "tower", "{}", "--rev", first).status == 65)
        #expect(try folder.run("put", "db", "tower", "{}", "--rev", second).status == 0)
    }

    @Test func `two authors' versions of one time are told apart`() throws {
        let (first, second) = (Self.version(1, Self.anna), Self.version(1, Self.ben))
        _ = try receive([.init(vector: first), .init(vector: "\(second); \(first)")])
        let time = "\(first.prefix { $0 != "@" })@"
        let several = try folder.run("get", "db", "tower", "--rev", time)
        #expect(several.status == 65)
        for version in [first, second] { #expect(several.errors.contains(version), "\(several.errors)") }
        #expect(try folder.run("get", "db", "tower", "--rev", "\(time)Z").status == 0)
    }

    @Test func `the source of a database is printed when it has one`() throws {
        try folder.run("create", "db")
        #expect(try !folder.run("info", "db").output.contains("source"))
        #expect(try JSONValue(parsing: folder.run("info", "db", "--json").output)["source"] == .null)
        let database = try Database(name: "db", config: DatabaseConfiguration(directory: folder.path))
        try database.store.beginVersions()
        try database.defaultCollection().save(Document(id: "tower"))
        try database.close()
        let revision = try JSONValue(parsing: folder.run("revs", "db", "tower", "--json").output)
        let source = try #require(revision["version"]?.string?.split(separator: "@").last)
        #expect(try folder.run("info", "db").lines.contains("source      \(source)"))
        let info = try JSONValue(parsing: folder.run("info", "db", "--json").output)
        #expect(info["source"]?.string == String(source))
    }

    @Test func `a document without versions is shown as ever`() throws {
        try folder.run("put", "db", "tower", "{}")
        let line = try #require(try folder.run("revs", "db", "tower").lines.first)
        #expect(line.split(separator: "\t").dropFirst() == ["-", "current leaf"])
        let json = try JSONValue(parsing: try folder.run("revs", "db", "tower", "--json").output)
        #expect(
            json.object.map { Set($0.keys) } == ["revision", "parent", "flags", "copyOf", "origins"]
        )
    }
}
