import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// Revisions over `CBMobile_4`: `rev`, `history` and what stands beside them (version-vectors.md §11.3 to §11.6).
struct VersionedRevisionTests {
    /// A session that pulls, and has asked for document `d`.
    private func asked(
        _ name: String,
        _ change: (inout ActivePlan) -> Void = { _ in },
        _ prepare: (VersionedReplica) throws -> Void = { _ in }
    ) throws -> VersionedTalk {
        let talk = VersionedTalk(active: {
            $0.pulls = true
            change(&$0)
        })
        try prepare(talk.replica)
        try talk.begin()
        try talk.answer(try talk.take("subChanges"))
        _ = try talk.ask("changes", #"[[1,"d","\#(name)",0,20]]"#)
        return talk
    }

    private func subscribed(
        _ properties: MessageProperties = [:],
        _ prepare: (VersionedReplica) throws -> Void
    ) throws -> VersionedTalk {
        let talk = VersionedTalk(passive: { $0.usesDeltas = true })
        try prepare(talk.replica)
        try talk.begin()
        var all: MessageProperties = ["versioning": "version-vectors"]
        for (name, value) in properties.pairs { all[name] = value }
        _ = try talk.say("subChanges", all)?.get()
        return talk
    }

    private func revision(_ rev: String, _ more: MessageProperties = [:]) -> MessageProperties {
        var properties: MessageProperties = ["id": "d", "rev": rev, "sequence": "1"]
        for (name, value) in more.pairs { properties[name] = value }
        return properties
    }

    /// The rows of version-vectors.md §13.4.
    static let rows: [(vector: String, legacy: [String], rev: String, history: String?)] = [
        (Texts.a1, [], Texts.a1, nil),
        (Texts.vectorB3, [], Texts.b3, Texts.a1),
        (Texts.vectorM6, [], Texts.d6, "\(Texts.c4), \(Texts.b3); \(Texts.a1)"),
        ("\(Texts.d6), \(Texts.c4), \(Texts.b3);", [], Texts.d6, "\(Texts.c4), \(Texts.b3);"),
        (Texts.a1, ["2-bb", "1-aa"], Texts.a1, "2-bb, 1-aa"),
        (Texts.vectorB3, ["2-bb"], Texts.b3, "\(Texts.a1), 2-bb"),
        ("\(Texts.d6), \(Texts.c4), \(Texts.b3);", ["2-bb"], Texts.d6, "\(Texts.c4), \(Texts.b3); 2-bb"),
        ("", ["2-bb", "1-aa"], "2-bb", "1-aa"),
    ]

    @Test(arguments: rows.indices)
    func `a sent revision has the texts of the specification, and arrives as the state that was sent`(
        _ index: Int
    ) throws {
        let row = Self.rows[index]
        let sender = try subscribed { try $0.save("d", row.vector, revisions: row.legacy, #"{"n":1}"#) }
        let list = try sender.take("changes")
        try sender.answer(list, ["blobs": "true"], "[[]]")
        let sent = try sender.take("rev").message.properties
        #expect(sent["rev"] == row.rev)
        #expect(sent["history"] == row.history)
        #expect(sent["noconflicts"] == nil)

        let receiver = try asked(row.rev)
        var properties = revision(row.rev)
        properties["history"] = sent["history"]
        #expect(try receiver.refusal("rev", properties, #"{"n":1}"#) == "taken: ")
        let state = StateHistory(
            try VersionVector(row.vector),
            revisions: row.legacy.compactMap { RevisionID($0) }
        )
        #expect(receiver.replica.received.map(\.history) == [.state(state)])
        #expect(receiver.replica.received.first?.name.text == row.rev)
        #expect(receiver.replica.received.first?.sender == .versions)
        #expect(receiver.replica.documents["d"]?.state == state)
    }

    @Test(arguments: [
        ("\(Texts.b3),\(Texts.c4);\(Texts.a1)", Texts.vectorM6, [String]()),
        (
            "\(Texts.c4),\(Texts.b3);,3-abcd,2-bb", "\(Texts.d6), \(Texts.c4), \(Texts.b3);",
            ["3-abcd", "2-bb"]
        ),
        ("\(Texts.a1),\(Texts.b3)", "\(Texts.d6); \(Texts.b3), \(Texts.a1)", []),
        ("\(Texts.a1),2-bb,1-aa", "\(Texts.d6); \(Texts.a1)", ["2-bb", "1-aa"]),
        ("\(Texts.a1);", "\(Texts.d6), \(Texts.a1);", []),
    ])
    func `a history in a gateway's spelling is read as the same state`(
        _ history: String,
        _ vector: String,
        _ legacy: [String]
    ) throws {
        let talk = try asked(Texts.d6)
        #expect(try talk.refusal("rev", revision(Texts.d6, ["history": history]), "{}") == "taken: ")
        let state = StateHistory(try VersionVector(vector), revisions: legacy.compactMap { RevisionID($0) })
        #expect(talk.replica.received.map(\.history) == [.state(state)])
    }

    /// Names that are not valid, with the other properties.
    static let invalid: [(rev: String, more: MessageProperties)] = [
        ("1@*", [:]), ("*", [:]), ("", [:]), (Texts.vectorB3, [:]), ("3000000000-aa", [:]), ("2-b", [:]),
        (Texts.d6, ["history": "1@*"]), (Texts.d6, ["history": "\(Texts.a1), 18e9f1f010000000@*"]),
        (Texts.d6, ["history": "2-bb, \(Texts.a1)"]), (Texts.d6, ["history": "2-bb; \(Texts.a1)"]),
        (Texts.d6, ["history": "\(Texts.d6)"]),
        (Texts.d6, ["history": "\(Texts.a1); \(Texts.b3); \(Texts.c4)"]),
        (Texts.d6, ["history": "\(Texts.a1),"]), ("2-bb", ["history": Texts.a1]),
        ("2-bb", ["history": "1-a"]), (Texts.d6, ["history": "4294967294-aa"]),
        (Texts.d6, ["history": "\(Texts.a1), 2147483649-aa"]), ("2-bb", ["history": "4294967295-aa"]),
        (Texts.d6, ["deltaSrc": "1@*"]), (Texts.d6, ["deltaSrc": ""]), (Texts.d6, ["replacedRev": "1@*"]),
        (Texts.d6, ["replacedRev": "x"]),
    ]

    @Test(arguments: invalid.indices)
    func `a revision with a name that is not valid is refused, and the next one is taken`(
        _ index: Int
    ) throws {
        let (rev, more) = Self.invalid[index]
        let talk = try asked(Texts.d6)
        #expect(try talk.refusal("rev", revision(rev, more), "{}") == "HTTP/400")
        #expect(talk.replica.received.isEmpty)
        #expect(talk.documentErrors.keys.sorted() == ["d"])
        _ = try talk.ask("changes", #"[[2,"e","\#(Texts.a1)"]]"#)
        let next: MessageProperties = ["id": "e", "rev": Texts.a1, "sequence": "2"]
        #expect(try talk.refusal("rev", next, "{}") == "taken: ")
        #expect(talk.failure == nil)
    }

    @Test func `a revision in place of an announced one is taken`() throws {
        let talk = try asked(Texts.vectorB3)
        let replaced = revision(Texts.d6, ["replacedRev": Texts.vectorB3, "sequence": "7"])
        #expect(try talk.refusal("rev", replaced, "{}") == "taken: ")
        #expect(talk.replica.received.map(\.name.text) == [Texts.d6])
    }

    @Test func `a revision that is covered is taken as nothing new, and one in conflict as the side decides`()
        throws
    {
        let covered = try asked(Texts.d6, { _ in }) { try $0.save("d", Texts.a1, "{}") }
        try covered.replica.save("d", "18e9f1f090000000@\(Texts.a); \(Texts.d6)", "{}")
        let answer = try covered.say("rev", revision(Texts.d6), "{}")?.get()
        #expect(answer?.properties["noop"] == "true")

        let active = try asked(Texts.b3) { _ in
        } _: {
            try $0.save("d", Texts.c4, "{}")
        }
        #expect(try active.refusal("rev", revision(Texts.b3), "{}") == "taken: ")
        #expect(active.replica.documents["d"]?.rival?.name.text == Texts.b3)

        let passive = VersionedTalk()
        try passive.begin()
        #expect(try passive.ask("proposeChanges", #"[["d","\#(Texts.b3)","",9]]"#) == "[]")
        try passive.replica.save("d", Texts.c4, "{}")
        let pushed = revision(Texts.b3, ["noconflicts": "1"])
        #expect(try passive.refusal("rev", pushed, "{}") == "HTTP/409")
    }

    @Test func `the app's filter sees the version`() throws {
        let talk = VersionedTalk(passive: { $0.filtersIncoming = true })
        try talk.begin()
        _ = try talk.ask("proposeChanges", #"[["d","\#(Texts.vectorB3)","",9]]"#)
        #expect(try talk.refusal("rev", revision(Texts.b3, ["history": Texts.a1]), "{}") == "taken: ")
        #expect(talk.replica.candidates.map(\.revision.text) == [Texts.b3])
    }

    // MARK: Deltas and attachments

    private static let text = String(repeating: "long ", count: 60)

    @Test func `a delta is made against the version that the peer has`() throws {
        let sender = try subscribed { replica in
            try replica.save("d", Texts.vectorB3, #"{"n":2,"text":"\#(Self.text)"}"#)
            replica.bodies[try RevisionName(Texts.a1)] = try JSONText(#"{"n":1,"text":"\#(Self.text)"}"#)
        }
        let list = try sender.take("changes")
        try sender.answer(list, ["blobs": "true", "deltas": "true"], #"[["\#(Texts.a1)"]]"#)
        let sent = try sender.take("rev")
        #expect(sent.message.properties["deltaSrc"] == Texts.a1)
        #expect(sender.replica.requests.first?.known.map(\.text) == [Texts.a1])

        let receiver = try asked(Texts.vectorB3, { $0.usesDeltas = true }) { replica in
            try replica.save("d", Texts.a1, #"{"n":1,"text":"\#(Self.text)"}"#)
        }
        let delta = String(decoding: sent.message.body, as: UTF8.self)
        let properties = revision(Texts.b3, ["history": Texts.a1, "deltaSrc": Texts.a1])
        #expect(try receiver.refusal("rev", properties, delta) == "taken: ")
        #expect(receiver.replica.documents["d"]?.body.description == #"{"n":2,"text":"\#(Self.text)"}"#)

        // A base that is not here.
        let other = try asked(Texts.vectorB3, { $0.usesDeltas = true })
        #expect(try other.refusal("rev", properties, delta) == "HTTP/422")
        #expect(try other.refusal("rev", revision(Texts.b3, ["history": Texts.a1]), "{}") == "taken: ")
    }

    @Test func `a table of attachments has no generations`() throws {
        let body = #"{"p":{"@type":"blob","digest":"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=","length":0}}"#
        let sender = try subscribed { try $0.save("d", Texts.a1, body) }
        try sender.answer(try sender.take("changes"), [:], "[[]]")
        let sent = try JSONElement(parsing: sender.take("rev").message.body)
        #expect(sent["_attachments"]?["blob_/p"]?["stub"]?.bool == true)
        #expect(sent["_attachments"]?["blob_/p"]?["revpos"] == nil)
    }

    // MARK: Revisions that are gone

    @Test func `a newer revision comes in place of an announced one, and says which`() throws {
        let sender = try subscribed(["sendReplacementRevs": "1"]) { try $0.save("d", Texts.vectorB3, "{}") }
        let list = try sender.take("changes")
        try sender.replica.save("d", Texts.vectorM6, "{}")
        try sender.answer(list, ["blobs": "true"], "[[]]")
        let sent = try sender.take("rev").message.properties
        #expect(sent["rev"] == Texts.d6)
        #expect(sent["replacedRev"] == Texts.vectorB3)
    }

    @Test func `a revision that is gone is named by its version, with or without a sequence`() throws {
        let sender = try subscribed { try $0.save("d", Texts.vectorB3, "{}") }
        let list = try sender.take("changes")
        try sender.replica.save("d", Texts.vectorM6, "{}")
        try sender.answer(list, ["blobs": "true"], "[[]]")
        let gone = try sender.take("norev").message.properties
        #expect(gone["rev"] == Texts.b3)
        #expect(gone["sequence"] == "1")

        let receiver = try asked(Texts.vectorB3)
        try receiver.say("norev", ["id": "d", "rev": Texts.b3, "error": "404"])
        #expect(try receiver.refusal("rev", revision(Texts.b3), "{}") == "HTTP/403")
    }

    @Test func `a passive session does not announce back what its peer has just pushed`() throws {
        let talk = try subscribed(["continuous": "true"]) { try $0.save("other", Texts.a1, "{}") }
        try talk.answer(try talk.take("changes"), [:], "[0]")
        _ = try talk.take("changes")
        _ = try talk.ask("proposeChanges", #"[["d","\#(Texts.vectorB3)","",9]]"#)
        #expect(try talk.refusal("rev", revision(Texts.b3, ["history": Texts.a1]), "{}") == "taken: ")
        talk.localChange()
        #expect(!talk.has("changes"))
        try talk.replica.save("d", Texts.vectorM6, "{}")
        talk.localChange()
        #expect(talk.has("changes"))
    }

    @Test(arguments: [("LiteCore", 8), ("HTTP", 409), ("LiteCore", 4), ("HTTP", 403)])
    func `a pushed revision that the peer refuses is reported, and nothing more is sent`(
        _ domain: String,
        _ code: Int
    ) throws {
        let talk = VersionedTalk(active: { $0.pushes = true })
        try talk.replica.save("d", Texts.vectorB3, "{}")
        try talk.begin()
        try talk.answer(try talk.take("proposeChanges"), ["blobs": "true"], "[0]")
        // What is forbidden is tried once more.
        while talk.has("rev") { try talk.refuse(try talk.take("rev"), domain, code) }
        #expect(talk.documentErrors.keys.sorted() == ["d"])
        #expect(talk.replica.documents["d"]?.remote == nil)
        #expect(!talk.has("proposeChanges"))
        #expect(talk.failure == nil)
    }
}
