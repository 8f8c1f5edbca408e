import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatTesting
import Testing

/// The gateway's twin with versions, line by line of version-vectors.md §15 and of what other sections say about Sync Gateway. No recording shows
/// these rules.
struct GatewayVersionTests {
    private typealias Client = GatewayVersionClient
    private var a1: String { Client.a1 }
    private var b3: String { Client.b3 }
    private var c4: String { Client.c4 }
    private var d6: String { Client.d6 }
    private var g1: String { Client.g1 }
    private var g2: String { Client.g2 }

    // MARK: The handshake

    /// "takes the first of the client's list that it knows" (§10)
    @Test(
        arguments: [
            ("432", true, "4"), ("342", true, "3"), ("24", true, "2"), ("94", true, "4"),
            ("432", false, "3"), ("4", false, nil),
        ] as [(String, Bool, String?)]
    )
    func `of the forms that a client offers, the gateway takes the first that it knows`(
        _ offered: String,
        _ hasVersions: Bool,
        _ taken: String?
    ) throws {
        let twin = try hasVersions ? Client.newGateway() : Client.oldGateway()
        let upgrade = GatewayTwin.Upgrade(
            database: "db",
            login: ("ana", "pw"),
            protocols: offered.map { "BLIP_3+CBMobile_\($0)" }
        )
        do throws(GatewayTwin.UpgradeRefusal) {
            let accepted = try twin.accept(upgrade)
            #expect(accepted.negotiated.rawValue == taken.map { "BLIP_3+CBMobile_\($0)" })
        } catch {
            #expect(taken == nil)
            #expect(error.status == 500)
        }
    }

    // MARK: Writes

    /// "Each write through SG … gets (cas or HLC value, SG's source) as cv; previous cv goes to pv" (§15, 1st item)
    @Test func `a write over REST gets a version by the gateway, and the previous one goes behind it`() throws
    {
        let client = try Client(Client.newGateway())
        try client.write(1)
        #expect(client.vector() == g1)
        #expect(try client.push(a1, g1) == 0)
        try client.write(2)
        #expect(client.vector() == "\(g2); \(a1)")
        try client.write(3, isDeleted: true)
        #expect(client.vector()?.hasSuffix("; \(a1)") == true)
    }

    /// "mvs are moved to pv except one with cv's source" (§15, 1st item)
    @Test func `a write over a merge makes previous versions of the merge versions, without the twin`() throws
    {
        let client = try Client(Client.newGateway())
        #expect(try client.push(d6, "\(c4), \(b3); \(a1)") == 0)
        try client.write(1)
        #expect(client.vector() == "\(g1); \(d6), \(c4), \(b3), \(a1)")
        #expect(try client.push(d6, "\(c4), 18e9f1f020000000@\(Client.d);", of: "twin") == 0)
        try client.write(1, of: "twin")
        #expect(client.vector(of: "twin") == "\(g2); \(d6), \(c4)")
    }

    /// "a v4 push gets a new tree revision as child of the current one, so that v3 clients see a child" (§15, 2nd item)
    @Test func `a pushed version becomes a child in the tree, which clients with trees are sent`() throws {
        let client = try Client(Client.newGateway())
        let first = try client.write(1)
        #expect(try client.push(a1, g1) == 0)
        #expect(client.vector() == "\(a1); \(g1)")
        #expect(client.treeID().hasPrefix("2-"))
        let old = try Client(client.twin, ["BLIP_3+CBMobile_3"])
        let (announced, delivered) = try old.pull("[[]]")
        #expect(announced == [client.treeID()])
        #expect(delivered == [.init(profile: "rev", rev: client.treeID(), history: first)])
    }

    /// "A v3 push gets a new cv by SG's source" (§15, 2nd item)
    @Test func `a revision pushed by a client with trees gets a version by the gateway`() throws {
        let client = try Client(Client.newGateway())
        #expect(try client.push(a1) == 0)
        let old = try Client(client.twin, ["BLIP_3+CBMobile_3"])
        #expect(try old.push("2-bb", client.treeID()) == 0)
        #expect(client.treeID() == "2-bb")
        #expect(client.vector() == "\(g1); \(a1)")
    }

    /// "A *legacy* `rev` pushed over v4 gets the encoded version as cv" (§15, 2nd item)
    @Test func `a revision ID pushed by a client with versions gets the version that stands for it`() throws {
        let client = try Client(Client.newGateway())
        #expect(try client.push("2-bb", "1-aa") == 0)
        #expect(client.treeID() == "2-bb")
        #expect(client.vector() == Client.encoded("2-bb"))
        #expect(try client.push("2-cc", "1-aa") == 409, "the tree decides")
        #expect(try client.push("3-bb", "2-bb, 1-aa") == 0)
        #expect(client.vector() == Client.encoded("3-bb"))
        #expect(try client.push("3-bb", "2-bb, 1-aa") == 0, "what is there is taken again")
    }

    /// "A document never written since the upgrade has no vector ("legacy on the server") and travels as L" (§15, 2nd item)
    @Test func `a document from before the upgrade travels by its revision ID`() throws {
        let twin = Client.oldGateway()
        let first = try Client.write(twin, 1)
        let second = try Client.write(twin, 2)
        try Client.upgrade(twin)
        let client = try Client(twin)
        #expect(client.vector() == "")
        let (announced, delivered) = try client.pull("[[]]")
        #expect(announced == [second])
        #expect(delivered == [.init(profile: "rev", rev: second, history: first)])
    }

    /// "**Implicit vector**: where one is needed for a document without, SG uses the encoded version of its current tree ID" (§15, 3rd item)
    @Test(arguments: [true, false])
    func `a document from before the upgrade is compared by the version that stands for it`(_ keeps: Bool)
        throws
    {
        let twin = Client.oldGateway()
        twin.databases["db"]?.options.keepsImplicitVersions = keeps
        let first = try Client.write(twin, 1)
        try Client.upgrade(twin)
        let client = try Client(twin)
        let encoded = Client.encoded(first)
        #expect(try client.push(b3, a1) == 409)
        #expect(try client.push(encoded) == 0, "it is here")
        #expect(client.vector() == "")
        #expect(try client.push(b3, encoded) == 0)
        #expect(client.vector() == "\(b3); \(encoded)")
    }

    /// What the option of the model says, since it was not read.
    @Test(arguments: [true, false])
    func `the first write after the upgrade includes the version of the revision before or not`(_ keeps: Bool)
        throws
    {
        let twin = Client.oldGateway()
        twin.databases["db"]?.options.keepsImplicitVersions = keeps
        let first = try Client.write(twin, 1)
        try Client.upgrade(twin)
        try Client.write(twin, 2)
        let client = try Client(twin)
        #expect(client.vector() == (keeps ? "\(g1); \(Client.encoded(first))" : g1))
    }

    /// "SG does add them" (§11.5, 5th step)
    @Test func `a pushed vector gets the entries of the replaced one that it lacks`() throws {
        let client = try Client(Client.newGateway())
        #expect(try client.push(b3, a1) == 0)
        #expect(try client.push(c4, b3) == 0)
        #expect(client.vector() == "\(c4); \(b3), \(a1)")
    }

    /// "SG compacts when pv has more than 5 entries: drops pvs older than the server's version pruning window …, oldest first, keeping at least 3"
    /// (§7.5)
    @Test func `of more than five previous versions the old ones are dropped, until three are left`() throws {
        func pushed(_ count: Int, window: UInt64) throws -> Int? {
            let client = try Client(Client.newGateway())
            client.twin.databases["db"]?.options.versionPruningWindow = window
            let previous = (1...count).map { number in
                "18e9f1f00000000\(number)@\(SourceID(high: 1, low: UInt64(number)).text)"
            }
            #expect(try client.push(d6, previous.joined(separator: ",")) == 0)
            #expect(client.vector()?.contains(previous.last ?? "") == true)
            return client.twin.databases["db"]?.vector(of: "d")?.previous.count
        }
        #expect(try pushed(5, window: 1) == 5)
        #expect(try pushed(6, window: 1) == 3)
        #expect(try pushed(9, window: 1) == 3)
        #expect(try pushed(9, window: 30 * 86_400 * 1_000_000_000) == 9)
    }

    // MARK: Conflicts

    /// "vectors conflict → if the client sent legacy IDs and they do not conflict with the tree → accepted; else `HTTP`/409 …" (§15, 6th item)
    @Test func `a vector in conflict is refused, unless it comes with the current revision behind it`() throws
    {
        let twin = Client.oldGateway()
        let first = try Client.write(twin, 1)
        let second = try Client.write(twin, 2)
        try Client.upgrade(twin)
        let client = try Client(twin)
        #expect(try client.push(b3) == 409)
        #expect(try client.push(b3, first) == 409, "an edit of the revision before the current one")
        #expect(try client.push(b3, "3-cc,2-bb") == 409)
        #expect(try client.push(b3, "\(second), \(first)") == 0)
        #expect(client.treeID().hasPrefix("3-"))
        #expect(try client.push(c4, second) == 409, "the tree has gone on")
        #expect(try client.push(c4, client.treeID()) == 0)
    }

    /// "Already covered → success, nothing stored" (§15, 6th item)
    @Test func `a version that the document includes is taken, and changes nothing`() throws {
        let client = try Client(Client.newGateway())
        #expect(try client.push(b3, a1) == 0)
        let sequence = client.twin.databases["db"]?.lastSequence
        for rev in [b3, a1, "18e9f1f000000000@\(Client.a)"] { #expect(try client.push(rev) == 0) }
        #expect(try client.push(a1, "\(d6), \(c4)") == 0, "whatever else it includes")
        #expect(client.twin.databases["db"]?.lastSequence == sequence)
        #expect(client.vector() == "\(b3); \(a1)")
    }

    /// "Same mvs on both sides → no conflict (bodies are not compared)" (§15, 6th item)
    @Test func `two merges of the same versions are not in conflict`() throws {
        let client = try Client(Client.newGateway())
        #expect(try client.push(d6, "\(c4), \(b3);", #"{"n":1}"#) == 0)
        #expect(try client.push("18e9f1f070000000@\(Client.a)", "\(c4), \(a1);", #"{"n":2}"#) == 409)
        #expect(try client.push("18e9f1f070000000@\(Client.a)", "\(b3), \(c4);", #"{"n":2}"#) == 0)
        #expect(client.vector()?.hasPrefix("18e9f1f070000000@\(Client.a)") == true)
    }

    /// The list has no exception for tombstones.
    @Test func `a document that was made over an unknown tombstone is refused`() throws {
        let client = try Client(Client.newGateway())
        #expect(try client.push(a1) == 0)
        #expect(try client.push(b3, a1, "{}", ["deleted": "1"]) == 0)
        #expect(try client.push(c4) == 409)
        #expect(try client.push(c4, "\(b3), \(a1)") == 0)
        #expect(client.twin.databases["db"]?.currentRevision(of: "d")?.isDeleted == false)
    }

    // MARK: Errors

    /// "Unparsable vector 422; `noconflicts` unparsable 400; deltas disabled 400" (§15, 7th item)
    @Test func `errors of a pushed revision have their codes`() throws {
        let client = try Client(Client.newGateway())
        for rev in ["1@*", "18e9f1f010000000@short", "@\(Client.a)", "\(a1); \(b3)"] {
            #expect(try client.push(rev) == 422)
        }
        for history in ["\(a1)", "2-bb, \(b3)", "\(b3); \(c4); \(d6)", "x"] {
            #expect(try client.push("18e9f1f090000000@\(Client.a)", history) == 422)
        }
        #expect(try client.push("nonsense") == 400)
        #expect(try client.push(a1, of: "d", ["noconflicts": "maybe"]) == 400)
        #expect(try client.push(a1, of: "d", ["deltaSrc": b3]) == 400)
        #expect(client.vector() == nil)
    }

    /// "delta base unknown/tombstone/unpatchable 422" (§15, 7th item)
    @Test func `a delta needs a base that is here, and that it fits`() throws {
        let client = try Client(Client.newGateway())
        client.twin.databases["db"]?.options.takesDeltas = true
        #expect(try client.push(a1, nil, #"{"n":1,"m":2}"#) == 0)
        #expect(try client.push(b3, a1, #"{"n":5}"#, ["deltaSrc": c4]) == 422)
        #expect(try client.push(b3, a1, #"{"n":[1,2,3,4]}"#, ["deltaSrc": a1]) == 422)
        #expect(try client.push(b3, a1, #"{"n":5}"#, ["deltaSrc": a1]) == 0)
        #expect(client.twin.databases["db"]?.content(of: "d", for: "ana")?.body == ["n": 5, "m": 2])
        #expect(try client.push(c4, "\(b3), \(a1)", "{}", ["deleted": "1"]) == 0)
        #expect(try client.push(d6, "\(c4), \(b3)", #"{"n":7}"#, ["deltaSrc": c4]) == 422)
    }
}
