import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import Testing

/// Lines of replication.md Part G that are about values, not messages.
struct ChecklistValueTests {
    private static func checkpointID(_ change: (inout CheckpointID) -> Void = { _ in }) -> [UInt8] {
        var id = CheckpointID(
            privateUUID: Array(0..<16),
            collection: .default,
            pulls: true,
            pushes: true,
            remote: "ws://h/db"
        )
        change(&id)
        return id.hashInput
    }

    @Test func `6: replications that must not share a checkpoint have different ones`() throws {
        let notes = try #require(CollectionName(path: "s.notes"))
        let all = [
            Self.checkpointID(), Self.checkpointID { $0.remote = "ws://h/other" },
            Self.checkpointID { $0.channels = ["a", "b"] }, Self.checkpointID { $0.channels = ["ab"] },
            Self.checkpointID { $0.documentIDs = ["a", "b"] }, Self.checkpointID { $0.documentIDs = ["a"] },
            Self.checkpointID { $0.collection = notes },
            Self.checkpointID {
                $0.collection = notes
                $0.pushes = false
            },
            Self.checkpointID { $0.privateUUID[0] = 9 },
        ]
        #expect(Set(all).count == all.count)
    }

    @Test(arguments: [
        // Ours and the peer's; what is left, and whether they agreed.
        (#"{"local":10,"remote":5}"#, #"{"local":10,"remote":5}"#, #"{"local":10,"remote":5}"#, true),
        (#"{"local":10,"remote":5}"#, #"{"local":7,"remote":5}"#, #"{"local":7,"remote":5}"#, false),
        (#"{"local":10,"remote":5}"#, #"{"local":10,"remote":3}"#, #"{"local":10,"remote":3}"#, false),
        (#"{"local":10,"remote":5}"#, #"{"local":10,"remote":8}"#, #"{"local":10,"remote":5}"#, true),
        (#"{"local":10,"remote":5}"#, #"{"local":10,"remote":"x"}"#, #"{"local":10}"#, false),
        (
            #"{"local":10,"remote":"7:5"}"#, #"{"local":10,"remote":"6"}"#, #"{"local":10,"remote":"6"}"#,
            false
        ),
        (
            #"{"local":10,"localCompleted":[0,11,12,2]}"#, #"{"local":12}"#,
            #"{"local":10,"localCompleted":[0,11,12,1]}"#, false
        ),
        (#"{"local":10,"remote":5}"#, #"{}"#, #"{}"#, false),
    ])
    func `7: of two checkpoints what both know is left`(
        _ ours: String,
        _ theirs: String,
        _ left: String,
        _ agrees: Bool
    ) throws {
        var checkpoint = Checkpoint(try JSONElement(parsing: Array(ours.utf8)))
        #expect(checkpoint.intersect(Checkpoint(try JSONElement(parsing: Array(theirs.utf8)))) == agrees)
        var value = try #require(JSONElement(checkpoint.json(time: 0)).value.object)
        value["time"] = nil
        #expect(try JSONValue.object(value) == JSONElement(parsing: Array(left.utf8)).value)
    }

    private static func history(_ ancestors: String, of revision: String, known: String = "", limit: Int = 50)
        throws -> String
    {
        func list(_ text: String) throws -> [RevisionID] {
            try text.split(separator: ",").map { try #require(RevisionID($0)) }
        }
        return RevisionHistory.toSend(
            try list(ancestors),
            of: try #require(RevisionID(revision)),
            known: try list(known),
            limit: limit
        ).map(\.text).joined(separator: ",")
    }

    @Test func `25: a history stops at what the peer knows, and always has it`() throws {
        #expect(try Self.history("3-cc,2-bb,1-aa", of: "4-dd") == "3-cc,2-bb,1-aa")
        #expect(try Self.history("3-cc,2-bb,1-aa", of: "4-dd", known: "2-bb") == "3-cc,2-bb")
        #expect(try Self.history("3-cc,2-bb,1-aa", of: "4-dd", limit: 3) == "3-cc,2-bb")
        // The common ancestor takes the last place.
        #expect(try Self.history("3-cc,2-bb,1-aa", of: "4-dd", known: "1-aa", limit: 3) == "3-cc,1-aa")
        #expect(try Self.history("", of: "1-aa") == "")
    }

    @Test func `25: pruned generations get names, so that the chain has no gap`() throws {
        let history = try Self.history("5-ee,2-bb", of: "6-ff").split(separator: ",")
        #expect(history.map { $0.prefix(2) } == ["5-", "4-", "3-", "2-"])
        #expect(history[1].hasPrefix("4-faded000"))
        #expect(history[2].hasPrefix("3-faded000"))
        #expect(history[1].count == "4-faded000".count + 16)
        // The same every time, so that sending twice makes no second branch.
        #expect(try Self.history("5-ee,2-bb", of: "6-ff").split(separator: ",") == history)
    }

    private static func side(_ revision: String, _ body: String, isDeleted: Bool = false) throws
        -> ConflictCase.Side
    {
        .init(
            revision: try #require(RevisionID(revision)),
            isDeleted: isDeleted,
            body: try JSONText(Array(body.utf8))
        )
    }

    @Test func `39: a deletion wins, then the longer history, then the greater revision`() throws {
        let edit = try Self.side("3-aa", #"{"n":1}"#)
        let gone = try Self.side("2-bb", "{}", isDeleted: true)
        let higher = try Self.side("4-00", #"{"n":2}"#)
        let greater = try Self.side("3-bb", #"{"n":3}"#)
        func winner(_ local: ConflictCase.Side, _ remote: ConflictCase.Side) -> Resolution {
            DefaultConflictResolver.resolve(
                ConflictCase(documentID: "d", local: local, remote: remote, base: nil)
            )
        }
        #expect(winner(edit, gone) == .deleted)
        #expect(winner(gone, edit) == .deleted)
        #expect(winner(edit, higher) == .remote)
        #expect(winner(higher, edit) == .local)
        #expect(winner(edit, greater) == .remote)
        #expect(winner(greater, edit) == .local)
    }

    @Test(arguments: [
        // The later version wins, of two with the same time that of the greater source, and any over none.
        ("5-aa", "30@ZwCGnI/3SA40pwpwiwKHAA", "2-bb", "40@VVebVXiW0M4XZMR/7WRPmw", false),
        ("5-aa", "30@ZwCGnI/3SA40pwpwiwKHAA", "2-bb", "30@VVebVXiW0M4XZMR/7WRPmw", true),
        ("2-aa", "30@ZwCGnI/3SA40pwpwiwKHAA", "5-bb", nil, true),
        ("2-aa", nil, "5-bb", nil, false),
    ])
    func `where versions decide, the default resolver takes the greater one`(
        _ revision: String,
        _ version: String?,
        _ otherRevision: String,
        _ otherVersion: String?,
        _ isFirst: Bool
    ) throws {
        func side(_ revision: String, _ version: String?) throws -> ConflictCase.Side {
            ConflictCase.Side(
                revision: try #require(RevisionID(revision)),
                version: try version.map { try Version($0) },
                isDeleted: false,
                body: .emptyObject
            )
        }
        let (one, other) = (try side(revision, version), try side(otherRevision, otherVersion))
        var comparesVersions = true
        func winner(_ local: ConflictCase.Side, _ remote: ConflictCase.Side) -> Resolution {
            DefaultConflictResolver.resolve(
                ConflictCase(
                    documentID: "d",
                    local: local,
                    remote: remote,
                    base: nil,
                    comparesVersions: comparesVersions
                )
            )
        }
        #expect(winner(one, other) == (isFirst ? .local : .remote))
        #expect(winner(other, one) == (isFirst ? .remote : .local))
        // Peers with trees compare revision IDs.
        comparesVersions = false
        let isGreater = one.revision > other.revision
        #expect(winner(one, other) == (isGreater ? .local : .remote))
    }

    private static func cookie(_ header: String, parent: Bool = false) -> Cookie? {
        Cookie(
            header: header,
            host: "db.example.com",
            path: "/a/b/_blipsync",
            now: 1_000,
            acceptsParentDomain: parent
        )
    }

    @Test(arguments: [
        ("a=b", "db.example.com", "/a/b/x", true), ("a=b", "other.example.com", "/a/b/x", false),
        ("a=b", "x.db.example.com", "/a/b", true), ("a=b", "db.example.com", "/c", false),
        ("a=b; Path=/", "db.example.com", "/c", true), ("a=b; Path=/a", "db.example.com", "/ab", false),
        ("a=b; Max-Age=5", "db.example.com", "/a/b", true),
        ("a=b; Max-Age=0", "db.example.com", "/a/b", false),
        ("a=b; Expires=Thu, 01 Jan 1970 00:16:41 GMT", "db.example.com", "/a/b", true),
        ("a=b; Expires=Thu, 01-Jan-70 00:16:40 GMT", "db.example.com", "/a/b", false),
        ("a=b; Secure", "db.example.com", "/a/b", false), ("a=b; Domain=evil.com", "evil.com", "/a/b", false),
        ("a=b; Domain=example.com", "db.example.com", "/a/b", false), ("=b", "db.example.com", "/a/b", false),
    ])
    func `58: a cookie goes where it may, as long as it lasts`(
        _ header: String,
        _ host: String,
        _ path: String,
        _ goes: Bool
    ) {
        var jar = CookieJar()
        if let cookie = Self.cookie(header) { jar.add(cookie, now: 1_000) }
        let sent = jar.matching(host: host, path: path, isSecure: false, credentials: nil, now: 1_000)
        #expect((sent.map { "\($0.name)=\($0.value)" } == ["a=b"]) == goes)
    }

    @Test func `58: a cookie for the parent domain is taken only where that is allowed`() {
        #expect(Self.cookie("a=b; Domain=.example.com") == nil)
        #expect(Self.cookie("a=b; Domain=.example.com", parent: true)?.domain == "example.com")
        #expect(Self.cookie("a=b; Domain=com", parent: true) == nil)
    }
}
