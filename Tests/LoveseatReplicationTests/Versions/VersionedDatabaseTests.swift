import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Sessions over `CBMobile_4` with a database: trees with vectors here, versions on the wire (version-vectors.md §11, docs/decisions/0015).
struct VersionedDatabaseTests {
    private func state(_ vector: String) throws -> StateHistory { StateHistory(try VersionVector(vector)) }

    @Test func `a pulled state is stored as it came, and its successors replace it`() throws {
        let peer = try VersionedPeer(active: { $0.pulls = true })
        #expect(try peer.receive(Texts.a1, #"{"n":1}"#) == ("[[]]", "taken: "))
        #expect(try peer.state() == state(Texts.a1))
        #expect(try peer.receive(Texts.vectorB3, #"{"n":2}"#, sequence: 2).list == "[[\"\(Texts.a1)\"]]")
        #expect(try peer.state() == state(Texts.vectorB3))
        #expect(try peer.record()?.body.description == #"{"n":2}"#)
        #expect(try peer.record()?.revision.generation == 2)
        // What is here, or a part of it, is not asked for.
        #expect(
            try peer.talk.ask("changes", #"[[3,"d","\#(Texts.vectorB3)"],[4,"d","\#(Texts.a1)"]]"#) == "[]"
        )
        #expect(peer.talk.documentErrors.isEmpty)
    }

    @Test func `an edit of a pulled state is proposed over it, and sent with its vector`() throws {
        let peer = try VersionedPeer(active: { ($0.pulls, $0.pushes, $0.isContinuous) = (true, true, true) })
        _ = try peer.receive(Texts.vectorB3, #"{"n":1}"#)
        try peer.save(#"{"n":2}"#)
        peer.talk.localChange()
        let state = try #require(try peer.state())
        #expect(state.vector.current?.source == peer.store.source)
        #expect(state.vector.previous.map(\.text) == [Texts.b3, Texts.a1])
        let proposal = try peer.talk.take("proposeChanges")
        #expect(
            String(decoding: proposal.message.body, as: UTF8.self)
                == #"[["d","\#(state.vector.text)","\#(Texts.b3)",7]]"#
        )
        try peer.talk.answer(proposal, ["blobs": "true"], "[]")
        let sent = try peer.talk.take("rev")
        #expect(sent.message.properties["rev"] == state.rev)
        #expect(sent.message.properties["history"] == "\(Texts.b3), \(Texts.a1)")
        try peer.talk.answer(sent)
        peer.talk.localChange()
        #expect(!peer.talk.has("proposeChanges"))
    }

    @Test
    func `a document of a tree is proposed under the version that stands for it, and an edit on top of that`()
        throws
    {
        let peer = try VersionedPeer(active: { ($0.pushes, $0.isContinuous) = (true, true) }) {
            store,
            collection in
            _ = try VersionedPeer.save(#"{"n":1}"#, store, collection)
        }
        let encoded = try #require(try peer.record()?.revision.encodedVersion?.text)
        let proposal = try peer.talk.take("proposeChanges")
        #expect(String(decoding: proposal.message.body, as: UTF8.self) == #"[["d","\#(encoded)","",7]]"#)
        try peer.talk.answer(proposal, ["blobs": "true"], "[304]")
        try peer.save(#"{"n":2}"#)
        peer.talk.localChange()
        let next = try peer.talk.take("proposeChanges")
        let state = try #require(try peer.state())
        let list = try JSONElement(parsing: next.message.body)
        #expect(list[0]?[2]?.string == encoded)
        try peer.talk.answer(next, ["blobs": "true"], "[]")
        let sent = try peer.talk.take("rev").message.properties
        #expect(sent["rev"] == state.vector.current?.text)
        #expect(sent["history"] == encoded)
    }

    @Test(arguments: [nil, "0"])
    func `a peer that pulls gets a document of a tree under the version that stands for it`(_ since: String?)
        throws
    {
        let peer = try VersionedPeer(passive: { _ in }) { store, collection in
            _ = try VersionedPeer.save(#"{"n":1}"#, store, collection)
        }
        var properties: MessageProperties = ["versioning": "version-vectors"]
        properties["since"] = since
        try peer.talk.say("subChanges", properties)
        let list = try peer.talk.take("changes")
        let id = try #require(try peer.record()?.revision)
        let encoded = try #require(id.encodedVersion)
        // A peer that begins may have the document under its ID.
        let name = since == nil ? id.text : encoded.text
        #expect(String(decoding: list.message.body, as: UTF8.self) == #"[[1,"d","\#(name)",0,7]]"#)
        try peer.talk.answer(list, ["blobs": "true"], "[[]]")
        let sent = try peer.talk.take("rev").message.properties
        #expect(sent["rev"] == encoded.text)
        #expect(sent["history"] == nil)
        // The peer's edit of it is one here, too.
        let edit = "\(Texts.b3); \(encoded)"
        #expect(try peer.receive(edit, #"{"n":2}"#, over: id.text) == ("[]", "taken: "))
        #expect(try peer.record()?.body.description == #"{"n":2}"#)
        #expect(try peer.record()?.tree().isLine == true)
    }

    @Test
    func `a passive side takes what includes its state, and refuses what does not with the whole vector`()
        throws
    {
        let peer = try VersionedPeer()
        #expect(try peer.receive(Texts.vectorB3, #"{"n":1}"#, over: "") == ("[]", "taken: "))
        // The parent is missing, and the vector shows that it is newer.
        #expect(try peer.receive(Texts.vectorM6, #"{"n":2}"#, over: "").list == "[]")
        let old = try peer.talk.ask(
            "proposeChanges",
            #"[["d","\#(Texts.c4)","",9],["d","\#(Texts.d6)","",9]]"#
        )
        #expect(old == "[304,304]")
        let other = "18e9f1f0a0000000@\(Texts.a); \(Texts.c4)"
        let refused = try peer.talk.ask("proposeChanges", #"[["d","\#(other)","\#(Texts.c4)",9]]"#)
        #expect(refused == #"[{"rev":"\#(Texts.vectorM6)","status":409}]"#)
        #expect(try peer.state() == state(Texts.vectorM6))
    }

    @Test(arguments: [true, false])
    func `a state that a client made of the current one is taken, though its history does not say so`(
        _ namesVersion: Bool
    ) throws {
        let peer = try VersionedPeer(passive: { _ in }) { store, collection in
            _ = try VersionedPeer.save(#"{"n":1}"#, store, collection)
        }
        let id = try #require(try peer.record()?.revision)
        let encoded = try #require(id.encodedVersion)
        // Couchbase Lite's merge with a revision from before the upgrade names its own one (version-vectors.md, correction 12). A client that names an ID
        // may not have seen the content.
        let answer = try peer.receive(
            Texts.b3,
            revisions: ["2-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],
            #"{"n":2}"#,
            over: namesVersion ? encoded.text : id.text
        )
        #expect(answer == ("[]", namesVersion ? "taken: " : "HTTP/409"))
        #expect(try peer.record()?.body.description == (namesVersion ? #"{"n":2}"# : #"{"n":1}"#))
        if namesVersion { #expect(try peer.state()?.vector.text == "\(Texts.b3); \(encoded)") }
    }

    @Test func `a version by a clock that is far ahead is refused as its document's error`() throws {
        let peer = try VersionedPeer(active: { $0.pulls = true })
        let (list, answer) = try peer.receive("18e9f30000000000@\(Texts.a)", "{}")
        #expect(list == "[[]]")
        #expect(answer == "LiteCore/\(LoveseatError.Code.badRevisionID.value)")
        #expect(try peer.record() == nil)
        #expect(peer.talk.documentErrors == ["d": .badRevisionID])
    }

    @Test(arguments: [Resolution.local, .remote])
    func `a conflict waits for the app's resolver, and its result is pushed if the local side won`(
        _ resolution: Resolution
    ) async throws {
        let peer = try VersionedPeer(
            active: { ($0.pulls, $0.pushes, $0.isContinuous) = (true, true, true) },
            asksResolver: true
        )
        _ = try peer.receive(Texts.a1, #"{"n":1}"#)
        try peer.save(#"{"n":2}"#)
        #expect(try peer.receive(Texts.vectorB3, #"{"n":3}"#, sequence: 2).answer == "taken: ")
        let notice = try #require(peer.talk.conflicts.first)
        #expect(notice.peer == .versions)
        #expect(try peer.record()?.hasConflicts == true)
        let conflict = ConflictResolution(
            store: peer.store,
            collection: peer.collection,
            documentID: "d",
            peer: notice.peer
        )
        try conflict.runNow { _ in resolution }
        peer.talk.resolved("d")
        peer.talk.localChange()
        let (record, state) = (try #require(try peer.record()), try #require(try peer.state()))
        #expect(!record.hasConflicts)
        #expect(record.body.description == (resolution == .local ? #"{"n":2}"# : #"{"n":3}"#))
        #expect(try state.vector.covers(Version(Texts.b3)))
        // The winner's vector includes the loser's version.
        #expect(peer.talk.has("proposeChanges") == (resolution == .local))
        if resolution == .local {
            let list = try JSONElement(parsing: peer.talk.take("proposeChanges").message.body)
            #expect(list[0]?[1]?.string == state.vector.text)
            #expect(list[0]?[2]?.string == Texts.b3)
        } else {
            #expect(state.rev == Texts.b3)
        }
    }

    @Test(arguments: [false, true])
    func `an app that asks the default resolver decides as a peer without one does`(_ asksResolver: Bool)
        throws
    {
        let peer = try VersionedPeer(
            active: { ($0.pulls, $0.pushes) = (true, true) },
            asksResolver: asksResolver
        )
        _ = try peer.receive(Texts.a1, #"{"n":1}"#)
        // The database's clock is ahead of every version of the peer, whose state is of a higher generation.
        try peer.save(#"{"n":2}"#)
        #expect(try peer.receive(Texts.vectorM6, #"{"n":3}"#, sequence: 2).answer == "taken: ")
        if asksResolver {
            let conflict = ConflictResolution(
                store: peer.store,
                collection: peer.collection,
                documentID: "d",
                peer: .versions
            )
            let waiting = try #require(try conflict.next())
            #expect(waiting.local.version == (try peer.state()?.vector.current))
            #expect(waiting.remote.version?.text == Texts.d6)
            try conflict.runNow(DefaultConflictResolver.resolve)
        }
        #expect(try peer.record()?.body.description == #"{"n":2}"#)
    }

    @Test
    func `a proposal that the peer refuses is made again over the peer's state if that is part of ours`()
        throws
    {
        let peer = try VersionedPeer(active: { ($0.pulls, $0.pushes, $0.isContinuous) = (true, true, true) })
        _ = try peer.receive(Texts.vectorM6, #"{"n":1}"#)
        try peer.save(#"{"n":2}"#)
        peer.talk.localChange()
        let state = try #require(try peer.state())
        try peer.talk.answer(
            try peer.talk.take("proposeChanges"),
            ["blobs": "true"],
            #"[{"status":409,"rev":"\#(Texts.c4)"}]"#
        )
        let again = try JSONElement(parsing: peer.talk.take("proposeChanges").message.body)
        #expect(again[0]?[1]?.string == state.vector.text)
        #expect(again[0]?[2]?.string == Texts.c4)
    }

    @Test func `a delta from a peer is expanded against the version that it names`() throws {
        let peer = try VersionedPeer(active: { ($0.pulls, $0.usesDeltas) = (true, true) })
        _ = try peer.receive(Texts.a1, #"{"a":1,"b":2}"#)
        #expect(try peer.talk.ask("changes", #"[[2,"d","\#(Texts.vectorB3)",0,9]]"#) == "[[\"\(Texts.a1)\"]]")
        let properties = [
            ("id", "d"), ("rev", Texts.b3), ("history", Texts.a1), ("sequence", "2"), ("deltaSrc", Texts.a1),
        ]
        #expect(try peer.talk.send(properties, #"{"b":3}"#) == "taken: ")
        #expect(try peer.record()?.body.description == #"{"a":1,"b":3}"#)
    }
}
