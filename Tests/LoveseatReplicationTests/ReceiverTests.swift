import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// `PullSession`: asks for announced revisions, and stores those that come.
struct ReceiverTests {
    private func pulling(_ documents: [String] = []) throws -> Conversation {
        let peer = try Conversation(active: { $0.pulls = true }, documents: documents)
        try peer.begin()
        try peer.answer(try peer.take("subChanges"))
        return peer
    }

    @Test func `the receiver asks for what it lacks, and answers when that is stored`() throws {
        let peer = try pulling()
        // An answer names, for each entry, what is here already.
        let answer = try peer.say("changes", [:], #"[[1,"a","1-aa"],[2,"b","1-bb"]]"#)
        #expect(try answer?.get().body == Array("[[],[]]".utf8))
        #expect(try peer.record("a") == nil)
        _ = try peer.say("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], #"{"n":1}"#)?.get()
        #expect(try peer.record("a")?.revision.text == "1-aa")
        #expect(try peer.record("a")?.body.description == #"{"n":1}"#)
    }

    @Test func `the receiver refuses a body in which a key occurs twice, at any depth`() throws {
        var generator = SeededGenerator(seed: 6)
        let keys = ["a", "b", "owner", "\\u0061", "é", "e\u{301}", "K", "\u{212A}", "", "long name of a key"]
        func object(_ depth: Int) -> String {
            let members = (0..<generator.int(0...(depth == 0 ? 40 : 4))).map { _ in
                "\"\(generator.pick(keys))\":\(depth > 0 && generator.chance(0.5) ? object(depth - 1) : "[{},\(generator.int(0...9))]")"
            }
            return "{\(members.joined(separator: ","))}"
        }
        /// The texts of the keys of all objects, of which each has a list.
        func repeats(_ element: JSONElement) -> Bool {
            let names = element.members.map { ExactText($0.key) }
            return Set(names).count < names.count || element.members.contains { repeats($0.value) }
                || element.items.contains { repeats($0) }
        }
        var refused = 0
        for number in 1...150 {
            let peer = try pulling()
            let text = object(generator.int(0...2))
            try peer.say("changes", [:], #"[[\#(number),"d\#(number)","1-aa"]]"#)
            let answer = try peer.say(
                "rev",
                ["id": "d\(number)", "rev": "1-aa", "sequence": "\(number)"],
                text
            )
            let isWrong = repeats(try JSONElement(parsing: Array(text.utf8)))
            if isWrong { refused += 1 }
            switch answer {
            case .failure(let error):
                #expect(isWrong, "\(text)")
                #expect(error.domain == "HTTP", "\(text)")
                #expect(error.code == 400, "\(text)")
            default: #expect(!isWrong, "\(text)")
            }
            #expect(try (peer.record("d\(number)") == nil) == isWrong)
        }
        #expect(refused > 30)
        #expect(refused < 150)
    }

    @Test func `the receiver does not ask for a revision that is here`() throws {
        let peer = try pulling(["a"])
        let revision = try #require(try peer.record("a")?.revision)
        let answer = try peer.say("changes", [:], #"[[1,"a","\#(revision)"],[2,"b","1-bb"]]"#)
        #expect(try answer?.get().body == Array("[0,[]]".utf8))
    }

    @Test(
        arguments: [
            ("1-aa", [:], "[]", "HTTP", 400), ("1-aa", [:], "{", "HTTP", 400),
            ("2-bb", ["history": "3-cc"], "{}", "LiteCore", 4),
            ("2-bb", ["deltaSrc": "1-aa"], "{}", "HTTP", 422),
        ] as [(String, MessageProperties, String, String, Int)]
    )
    func `the receiver refuses a revision that breaks a rule with its code, and stores nothing`(
        _ revision: String,
        _ more: MessageProperties,
        _ body: String,
        _ domain: String,
        _ code: Int
    ) throws {
        let peer = try pulling()
        try peer.say("changes", [:], #"[[1,"a","\#(revision)"]]"#)
        var properties: MessageProperties = ["id": "a", "rev": revision, "sequence": "1"]
        for (name, value) in more.pairs { properties[name] = value }
        let answer = try peer.say("rev", properties, body)
        guard case .failure(let error) = answer else {
            Issue.record("\(String(describing: answer))")
            return
        }
        #expect(error.domain == domain)
        #expect(error.code == code)
        #expect(try peer.record("a") == nil)
        // A revision whose delta does not fit comes again, whole.
        #expect(peer.documentErrors.keys.sorted() == (code == 422 ? [] : ["a"]))
        #expect(peer.line.failure == nil)
    }

    @Test func `the receiver refuses a revision that it never asked for with 403, and goes on`() throws {
        let peer = try pulling()
        guard
            case .failure(let error) = try peer.say("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], "{}")
        else {
            Issue.record("it was taken")
            return
        }
        #expect(error.domain == "HTTP")
        #expect(error.code == 403)
        #expect(try peer.record("a") == nil)
        #expect(peer.line.failure == nil)
        #expect(!peer.line.isClosed)
    }

    @Test func `the receiver counts a sequence as done only when all before it are`() throws {
        let peer = try pulling()
        try peer.say("changes", [:], #"[[1,"a","1-aa"],[2,"b","1-bb"]]"#)
        try peer.say("rev", ["id": "b", "rev": "1-bb", "sequence": "2"], "{}")
        #expect(try peer.record("b") != nil)
        #expect(try peer.keepCheckpoints()?["remote"] == nil)
        try peer.say("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], "{}")
        try peer.say("changes", [:], "null")
        #expect(try peer.keepCheckpoints()?["remote"]?.int == 2)
        #expect(peer.line.isClosed)
        #expect(peer.line.failure == nil)
    }

    @Test(arguments: ["changes", "proposeChanges", "rev", "norev"])
    func `the receiver refuses what comes before it has subscribed, and then pulls as ever`(_ profile: String)
        throws
    {
        let peer = try Conversation(active: { $0.pulls = true })
        try peer.line.connect(.mobile3)
        let lists = ["changes": #"[[1,"a","1-aa"]]"#, "proposeChanges": #"[["a","1-aa"]]"#]
        let revision: MessageProperties = ["id": "a", "rev": "1-aa", "sequence": "1"]
        guard case .failure(let error) = try peer.say(profile, revision, lists[profile] ?? "{}") else {
            Issue.record("it was taken")
            return
        }
        #expect(error.domain == "HTTP")
        #expect(error.code == 400)
        try peer.refuse(try peer.take("getCheckpoint"), 404)
        try peer.answer(try peer.take("subChanges"))
        let answer = try peer.say("changes", [:], #"[[1,"a","1-aa"]]"#)
        #expect(try answer?.get().body == Array("[[]]".utf8))
        _ = try peer.say("rev", revision, "{}")?.get()
        #expect(try peer.record("a") != nil)
        #expect(peer.line.failure == nil)
    }

    @Test(
        arguments: [
            ("norev", [:]), ("norev", ["sequence": "1", "rev": "1-aa"]), ("norev", ["id": "a"]),
            ("norev", ["id": "a", "rev": "2-bb"]), ("norev", ["id": "a", "sequence": "{"]), ("rev", [:]),
            ("rev", ["rev": "1-aa", "sequence": "1"]),
        ] as [(String, MessageProperties)]
    )
    func `the receiver ends with an error when a message does not say which expected revision it means`(
        _ profile: String,
        _ properties: MessageProperties
    ) throws {
        let peer = try pulling()
        try peer.say("changes", [:], #"[[1,"a","1-aa"]]"#)
        try peer.say(profile, properties, "{}")
        #expect(peer.line.failure?.code == .remoteError)
        #expect(peer.line.isClosed)
        #expect(try peer.record("a") == nil)
    }

    @Test
    func `the receiver knows by document and revision what does not come, where the sequence is left out`()
        throws
    {
        let peer = try pulling()
        try peer.say("changes", [:], #"[[1,"a","1-aa"],[2,"a","2-bb"]]"#)
        // Of a document that is not expected nothing is left out.
        try peer.say("norev", ["id": "x", "rev": "1-aa", "error": "404"])
        try peer.say("norev", ["id": "a", "rev": "1-aa", "error": "404"])
        try peer.say("rev", ["id": "a", "rev": "2-bb", "history": "1-aa", "sequence": "2"], "{}")
        try peer.say("changes", [:], "null")
        #expect(try peer.keepCheckpoints()?["remote"]?.int == 2)
        #expect(try peer.record("a")?.revision.text == "2-bb")
        #expect(peer.line.failure == nil)
        #expect(peer.line.isClosed)
    }

    private func announce(_ list: String, to peer: Conversation, _ properties: MessageProperties) throws {
        var properties = properties
        properties["Profile"] = "changes"
        try peer.line.puppet.send(Message(properties, body: Array(list.utf8), noReply: true), tag: nil)
        try peer.line.runUntilQuiet()
    }

    @Test func `the receiver ends a pull with an error when it cannot ask for what is announced`() throws {
        let active = try pulling()
        try announce(#"[[1,"a","1-aa"]]"#, to: active, [:])
        #expect(active.line.failure?.code == .remoteError)
        #expect(active.line.isClosed)
        // A peer that pushes keeps what it was not asked for.
        let passive = try pushedTo()
        try announce(#"[[1,"a","1-aa"]]"#, to: passive, ["collection": "0"])
        #expect(passive.line.failure == nil)
        #expect(!passive.line.isClosed)
        #expect(try passive.record("a") == nil)
    }

    private func pushedTo() throws -> Conversation {
        let peer = try Conversation(passive: [])
        try peer.line.connect(.mobile3)
        try peer.say("getCollections", [:], #"{"collections":["_default"],"checkpoint_ids":["cp-y"]}"#)
        return peer
    }

    @Test func `the receiver refuses a pushed body that says that its document was removed`() throws {
        let peer = try pushedTo()
        try peer.say("proposeChanges", ["collection": "0"], #"[["a","1-aa"]]"#)
        let answer = try peer.say(
            "rev",
            ["collection": "0", "id": "a", "rev": "1-aa"],
            #"{"_removed":true}"#
        )
        guard case .failure(let error) = answer else {
            Issue.record("it counts as taken, and is not stored")
            return
        }
        #expect(error.domain == "HTTP")
        #expect(error.code == 404)
        #expect(try peer.record("a") == nil)
        #expect(peer.documentErrors.mapValues(\.code) == ["a": .httpNotFound])
        #expect(peer.line.failure == nil)
    }
}
