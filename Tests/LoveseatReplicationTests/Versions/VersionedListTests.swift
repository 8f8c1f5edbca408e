import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// Lists of changes over `CBMobile_4`: how revisions are named, and what is answered (version-vectors.md §10, §11).
struct VersionedListTests {
    private func pulling(_ change: (VersionedReplica) throws -> Void = { _ in }) throws -> VersionedTalk {
        let talk = VersionedTalk(active: { $0.pulls = true })
        try change(talk.replica)
        try talk.begin()
        try talk.answer(try talk.take("subChanges"))
        return talk
    }

    private func pushing(_ change: (VersionedReplica) throws -> Void) throws -> VersionedTalk {
        let talk = VersionedTalk(active: { $0.pushes = true })
        try change(talk.replica)
        try talk.begin()
        return talk
    }

    private func passive(_ change: (VersionedReplica) throws -> Void = { _ in }) throws -> VersionedTalk {
        let talk = VersionedTalk()
        try change(talk.replica)
        try talk.begin()
        return talk
    }

    private func text(_ message: Message) -> String { String(decoding: message.body, as: UTF8.self) }

    // MARK: The handshake

    @Test func `an active session asks for its collections, and subscribes to versions without extensions`()
        throws
    {
        let talk = VersionedTalk(active: { ($0.pulls, $0.pushes) = (true, true) })
        try talk.replica.save("d", Texts.a1, "{}")
        try talk.begin()
        let subscription = try talk.take("subChanges").message.properties
        #expect(subscription["versioning"] == "version-vectors")
        #expect(subscription["collection"] == "0")
        #expect(subscription["revocations"] == "true")
        #expect(try talk.take("proposeChanges").message.properties["loveseat"] == nil)
        #expect(subscription["loveseat"] == nil)
        // The source of its versions, `fUdaPDZFQmioPFKm9bbaIQ`, as recorded peers write it.
        #expect(talk.opening?.properties["uuid"] == "7d475a3c-3645-4268-a83c-52a6f5b6da21")
    }

    @Test func `only a session with versions names its source`() throws {
        let name = try #require(CollectionName(scope: "s", name: "c"))
        let talk = VersionedTalk(active: {
            $0 = ActivePlan(
                collections: [.init(name: name, checkpointID: "cp-x")],
                pushes: true,
                pulls: false,
                isContinuous: false
            )
        })
        try talk.begin(.mobile3)
        #expect(talk.opening != nil)
        #expect(talk.opening?.properties["uuid"] == nil)
    }

    @Test(
        arguments: [
            (ReplicationProtocol.mobile4, "version-vectors", true), (.mobile4, "rev-trees", false),
            (.mobile4, nil, false), (.mobile4, "Version-Vectors", false),
            (.mobile3, "rev-trees", true), (.mobile3, nil, true), (.mobile3, "version-vectors", false),
        ] as [(ReplicationProtocol, String?, Bool)]
    )
    func `a passive session serves a subscription only if it wants revisions named as agreed`(
        _ form: ReplicationProtocol,
        _ versioning: String?,
        _ isServed: Bool
    ) throws {
        let talk = VersionedTalk()
        try talk.begin(form)
        var properties: MessageProperties = ["batch": "200"]
        properties["versioning"] = versioning
        let answer = try talk.refusal("subChanges", properties)
        #expect(answer == (isServed ? "taken: " : "LiteCore/501"))
        #expect(talk.failure == nil)
    }

    @Test func `a list that a peer refuses is announced document by document, and only one is given up`()
        throws
    {
        let talk = try passive {
            for id in ["a", "b", "c"] { try $0.save(id, Texts.a1, "{}") }
        }
        _ = try talk.say("subChanges", ["versioning": "version-vectors"])
        try talk.refuse(try talk.take("changes"), "SQLite", 1)
        for id in ["a", "b", "c"] {
            let list = try talk.take("changes")
            #expect(text(list.message).contains(#""\#(id)""#))
            #expect(!talk.requests.contains { text($0.message) == "[]" }, "the backlog is not announced yet")
            if id == "b" { try talk.refuse(list, "SQLite", 1) } else { try talk.answer(list, [:], "[[]]") }
        }
        #expect(try text(talk.take("changes").message) == "[]")
        #expect(try talk.take("rev").message.properties["id"] == "a")
        #expect(try talk.take("rev").message.properties["id"] == "c")
        #expect(Array(talk.documentErrors.keys) == ["b"])
        #expect(talk.failure == nil)
    }

    // MARK: Announcements

    @Test func `an announced revision is a version, a vector in any spelling, or the revision of a tree`()
        throws
    {
        let talk = try pulling()
        let spelled = "\(Texts.d6),\(Texts.b3),\(Texts.c4);\(Texts.a1)"
        let answer = try talk.ask(
            "changes",
            """
            [[1,"s","\(Texts.a1)",0,9],[2,"v","\(Texts.vectorM6)",0,9],[3,"g","\(spelled)"],
            [4,"l","2-bbbb"],[5,"x","18E9F1F010000000@\(Texts.a)",1]]
            """
        )
        #expect(answer == "[[],[],[],[],[]]")
        let m6 = try VersionVector(Texts.vectorM6)
        #expect(
            talk.replica.announced.map(\.revision.text) == [Texts.a1, Texts.d6, Texts.d6, "2-bbbb", Texts.a1]
        )
        #expect(talk.replica.announced.map(\.vector) == [nil, m6, m6, nil, nil])
        #expect(talk.replica.peers == [.versions])
    }

    /// Texts that name nothing, or more than a peer may name.
    static let hostile: [String] = {
        let many = (0...1_000).map { number in
            let bytes = [UInt8(number >> 8), UInt8(number & 255)] + [UInt8](repeating: 7, count: 14)
            return "18e9f1f010000000@\((try? SourceID(bytes: bytes))?.text ?? "")"
        }
        return [
            "", " ", "*", "1@*", "18e9f1f010000000@*", "\(Texts.a1); 18e9f1f010000000@*", "\(Texts.a1),",
            "18e9f1f010000000@AAAAAAAAAAAAAAAAAAAAAA", "18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmx",
            "0@\(Texts.a)", "118e9f1f010000000@\(Texts.a)", "\(Texts.a1) ", " \(Texts.a1)",
            "\(Texts.b3); \(Texts.a1); \(Texts.c4)", "\(Texts.a1); 18e9f1f000000000@\(Texts.a)",
            "\(Texts.a1); 2-bb", "1-", "1-a", "1-AA", "0-11", "3000000000-aa", "2-bb, 1-aa",
            many.joined(separator: ", "), "\(Texts.a1); " + String(repeating: " ", count: 70_000) + Texts.b3,
        ]
    }()

    @Test(arguments: hostile.indices)
    func `an announced name that is not valid is refused, and the rest of the list is not`(_ index: Int)
        throws
    {
        let name = Self.hostile[index]
        let entries = #"[[1,"bad","\#(name)"],[2,"good","\#(Texts.a1)"]]"#
        let active = try pulling()
        #expect(try active.ask("changes", entries) == "[0,[]]")
        #expect(active.documentErrors == ["bad": .badRevisionID])
        #expect(active.failure == nil)
        // A passive side refuses the list, since the peer can send another one.
        #expect(try passive().refusal("changes", [:], entries) == "BLIP/400")
    }

    @Test
    func `an answer names a version and a revision ID at most, and what is here is not wanted`()
        throws
    {
        let talk = try pulling { replica in
            try replica.save("older", Texts.a1, "{}")
            try replica.save("same", Texts.vectorB3, "{}")
            try replica.save("newer", Texts.vectorM6, "{}")
            try replica.save("conflict", "\(Texts.c4); \(Texts.a1)", "{}")
        }
        let entries = ["older", "same", "newer", "conflict"].enumerated().map { number, id in
            #"[\#(number + 1),"\#(id)","\#(Texts.vectorB3)",0,20]"#
        }
        #expect(
            try talk.ask("changes", "[\(entries.joined(separator: ","))]")
                == #"[["\#(Texts.a1)"],0,0,["\#(Texts.c4)"]]"#
        )
        let many = try [Texts.c4, Texts.b3, Texts.a1].map { try RevisionName($0) }
        let trees = ["5-aa", "4-aa", "3-aa"].compactMap { RevisionID($0) }.map { RevisionName.revision($0) }
        var sequence = 4
        func answer(_ names: [RevisionName]) throws -> String {
            talk.replica.verdict = .wanted(ancestors: names)
            // A document that was asked for is not asked for once more.
            sequence += 1
            return try talk.ask("changes", #"[[\#(sequence),"x\#(sequence)","\#(Texts.d6)"]]"#)
        }
        #expect(try answer(many) == #"[["\#(Texts.c4)"]]"#)
        #expect(try answer(many + trees) == #"[["\#(Texts.c4)","5-aa"]]"#)
        #expect(try answer(trees) == #"[["5-aa","4-aa","3-aa"]]"#)
        #expect(try answer(trees + many) == #"[["5-aa","4-aa","3-aa"]]"#)
    }

    @Test func `answers to lists do not ask for history`() throws {
        let answer = try passive().say("changes", [:], #"[[1,"d","\#(Texts.a1)"]]"#)?.get()
        #expect(answer?.properties["maxHistory"] == nil)
        #expect(answer?.properties["blobs"] == "true")
        #expect(answer?.properties["loveseat"] == nil)
    }

    @Test func `a passive session answers a conflict with 409, an active one asks for the revision`() throws {
        let entry = #"[[1,"d","\#(Texts.vectorB3)"]]"#
        #expect(try passive { try $0.save("d", Texts.c4, "{}") }.ask("changes", entry) == "[409]")
        #expect(
            try pulling { try $0.save("d", Texts.c4, "{}") }.ask("changes", entry) == #"[["\#(Texts.c4)"]]"#
        )
    }

    // MARK: Proposals

    @Test func `a proposal names its revision and its base in every form, and a conflict the whole vector`()
        throws
    {
        let talk = try passive { replica in
            try replica.save("d", Texts.vectorM6, "{}")
            try replica.save("l", "", revisions: ["2-bb", "1-aa"], "{}")
        }
        let body = """
            [["new","\(Texts.a1)","",8],["new2","2-bb"],["d","\(Texts.d6)","\(Texts.b3)"],
            ["d","\(Texts.vectorB3)","\(Texts.a1)",9],["d","18e9f1f090000000@\(Texts.a)","\(Texts.vectorM6)",9],
            ["d","18e9f1f090000000@\(Texts.a)","1-aa",9],["l","\(Texts.a1)","2-bb",9],
            ["l","\(Texts.a1)","2bb00000000@Revision+Tree+Encoding",9],["l","\(Texts.a1)","1-aa",9],
            ["none","\(Texts.b3)","\(Texts.a1)",9]]
            """
        let answer = try talk.ask("proposeChanges", body)
        #expect(
            answer == """
                [0,0,304,304,0,{"rev":"\(Texts.vectorM6)","status":409},0,0,{"rev":"2-bb","status":409},\
                {"rev":"","status":409}]
                """
        )
        #expect(talk.replica.proposed[4].serverRevision?.text == Texts.d6)
        #expect(talk.replica.proposed[3].vector?.text == Texts.vectorB3)
        // Without the question, the answer names nothing.
        let plain = try talk.say("proposeChanges", [:], #"[["d","18e9f1f090000000@\#(Texts.a)","",9]]"#)
        #expect(try plain.map { text(try $0.get()) } == "[409]")
    }

    @Test(arguments: hostile.indices)
    func `a proposal with a name that is not valid is refused`(_ index: Int) throws {
        let name = Self.hostile[index]
        let talk = try passive()
        #expect(try talk.refusal("proposeChanges", [:], #"[["d","\#(name)","",9]]"#) == "BLIP/400")
        if !name.isEmpty {
            let base = #"[["d","\#(Texts.a1)","\#(name)",9]]"#
            // A generation that is too high is only a base that is not here.
            let isHigh = name.hasPrefix("3000000000-")
            #expect(try talk.refusal("proposeChanges", [:], base) == (isHigh ? "taken: [409]" : "BLIP/400"))
        }
        #expect(talk.failure == nil)
    }

    @Test func `a push proposes whole vectors, over the revision that the peer has`() throws {
        let talk = try pushing { replica in
            try replica.save("one", Texts.a1, "{}")
            try replica.save("merged", Texts.vectorM6, "{}")
            try replica.save("legacy", "", revisions: ["2-bb", "1-aa"], "{}")
        }
        #expect(
            try text(talk.take("proposeChanges").message) == """
                [["one","\(Texts.a1)","",2],["merged","\(Texts.vectorM6)","",2],["legacy","2-bb","",2]]
                """
        )
    }

    /// What the peer answers a proposal of ``Texts/vectorM6`` with, and the base of the next proposal; nil if there is none.
    @Test(
        arguments: [
            (Texts.c4, Texts.c4), (Texts.vectorB3, Texts.b3), ("", ""), ("18e9f1f050000000@\(Texts.a)", nil),
            ("\(Texts.a1); 18e9f1f090000000@\(Texts.c)", Texts.a1), ("2-bb", nil), ("1@*", nil),
            ("nonsense", nil),
            (nil, nil),
        ] as [(String?, String?)]
    )
    func `a push proposes again over the peer's revision exactly if its own includes that`(
        _ theirs: String?,
        _ base: String?
    ) throws {
        let talk = try pushing { try $0.save("d", Texts.vectorM6, "{}") }
        let item = theirs.map { #"{"status":409,"rev":"\#($0)"}"# } ?? "409"
        try talk.answer(try talk.take("proposeChanges"), ["blobs": "true"], "[\(item)]")
        #expect(talk.has("proposeChanges") == (base != nil))
        guard let base else {
            #expect(talk.documentErrors == ["d": .httpConflict])
            return
        }
        let again = try talk.take("proposeChanges")
        #expect(text(again.message) == #"[["d","\#(Texts.vectorM6)","\#(base)",2]]"#)
        try talk.answer(again, ["blobs": "true"], "[0]")
        #expect(try talk.take("rev").message.properties["rev"] == Texts.d6)
    }

    @Test func `a revision that the peer has counts as pushed`() throws {
        let talk = try pushing { try $0.save("d", Texts.vectorB3, "{}") }
        try talk.answer(try talk.take("proposeChanges"), ["blobs": "true"], "[304]")
        #expect(talk.replica.documents["d"]?.remote?.text == Texts.b3)
        #expect(!talk.has("rev"))
    }

    @Test func `a feed announces whole vectors, and of long ones the current version`() throws {
        let long = try (0..<70).reversed().map { number in
            try Version(
                time: 0x18E9_F1F0_0000_0000 + UInt64(number),
                source: SourceID(high: 1, low: UInt64(number))
            )
        }
        let vector = try VersionVector(long, currentCount: 1)
        let talk = try passive { replica in
            try replica.save("d", Texts.vectorM6, "{}")
            try replica.save("long", vector.text, isDeleted: true, "{}")
        }
        try talk.say("subChanges", ["versioning": "version-vectors"])
        let list = try talk.take("changes")
        #expect(
            text(list.message) == """
                [[1,"d","\(Texts.vectorM6)",0,2],[2,"long","\(long[0].text)",1,2]]
                """
        )
    }
}
