import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Lines of the conformance checklist (version-vectors.md §18) about what a session with a database sends, and about documents from before the first
/// version. Their numbers are in the names; for the others see Tests/VERSIONS.md.
struct VersionedPushChecklistTests {
    /// A document from before the first version: an edit and what it was made from.
    private static func legacy(_ store: DocumentStore, _ collection: CollectionHandle) throws {
        try VersionedPeer.save(#"{"n":1}"#, store, collection)
        try VersionedPeer.save(#"{"n":2}"#, store, collection)
    }

    @Test func `46, 48, 50: a document of a tree goes on from the ID that the peer has`() throws {
        let peer = try VersionedPeer(active: VersionedPeer.pushing, Self.legacy)
        let line = try #require(try peer.record().map { try $0.tree().line($0.revision) })
        let encoded = try #require(line[0].encodedVersion?.text)
        let first = try peer.proposal()
        #expect(first.state == encoded)
        #expect(first.base == "")
        try peer.talk.answer(
            first.request,
            ["blobs": "true"],
            #"[{"status":409,"rev":"\#(line[1])"}]"#
        )
        let again = try peer.proposal()
        #expect(again.state == encoded)
        #expect(again.base == line[1].text)
        try peer.talk.answer(again.request, ["blobs": "true"], "[0]")
        let sent = try peer.talk.take("rev").message.properties
        #expect(sent["rev"] == encoded)
        #expect(sent["history"] == line[1].text)
    }

    @Test func `48: a peer with an ID that is no part of ours keeps it, and the document is in conflict`()
        throws
    {
        let peer = try VersionedPeer(active: VersionedPeer.pushing, Self.legacy)
        try peer.talk.answer(
            try peer.talk.take("proposeChanges"),
            ["blobs": "true"],
            #"[{"status":409,"rev":"2-cc"}]"#
        )
        #expect(!peer.talk.has("proposeChanges"))
        #expect(peer.talk.documentErrors == ["d": .httpConflict])
    }

    @Test func `49: a peer that has an older version of ours is proposed the current one over that`() throws {
        let peer = try VersionedPeer(active: VersionedPeer.both)
        var names: [String] = []
        for number in 1...2 {
            try peer.save(#"{"n":\#(number)}"#)
            peer.talk.localChange()
            names.append(try #require(try peer.acceptProposal()["rev"]))
        }
        try peer.save(#"{"n":3}"#)
        peer.talk.localChange()
        let proposal = try peer.proposal()
        #expect(proposal.base == names[1])
        // It was put back to a backup.
        try peer.talk.answer(
            proposal.request,
            ["blobs": "true"],
            #"[{"status":409,"rev":"\#(names[0])"}]"#
        )
        let again = try peer.proposal()
        #expect(again.state == proposal.state)
        #expect(again.base == names[0])
        try peer.talk.answer(again.request, ["blobs": "true"], "[0]")
        let sent = try peer.talk.take("rev").message.properties
        #expect(sent["rev"] == proposal.state)
        #expect(sent["history"] == nil)
        #expect(peer.talk.documentErrors.isEmpty)
    }

    @Test(arguments: [true, false])
    func `51, 52: what is pushed after a resolution says nothing of branches, and is pushed once`(
        _ isLocal: Bool
    ) throws {
        let peer = try VersionedPeer(active: VersionedPeer.both, asksResolver: true)
        _ = try peer.receive(Texts.a1, #"{"n":1}"#)
        try peer.save(#"{"n":2}"#)
        _ = try peer.receive(Texts.vectorB3, #"{"n":3}"#, sequence: 2)
        let notice = try #require(peer.talk.conflicts.first)
        try ConflictResolution(
            store: peer.store,
            collection: peer.collection,
            documentID: "d",
            peer: notice.peer
        ).runNow { _ in isLocal ? .local : .remote }
        peer.talk.resolved("d")
        peer.talk.localChange()
        if isLocal {
            let sent = try peer.acceptProposal()
            #expect(
                Set(sent.pairs.map(\.name))
                    == ["Profile", "collection", "id", "rev", "history", "sequence", "noconflicts"]
            )
            #expect(sent["history"] == "\(Texts.b3), \(Texts.a1)")
        }
        for _ in 0..<2 {
            peer.talk.localChange()
            #expect(!peer.talk.has("proposeChanges") && !peer.talk.has("rev"))
        }
        // The peer announces what it has taken, or has won with.
        let state = try #require(try peer.state()?.vector.text)
        #expect(try peer.talk.ask("changes", #"[[3,"d","\#(state)",0,9]]"#) == "[]")
        try peer.reconnect(active: VersionedPeer.pushing)
        #expect(!peer.talk.has("proposeChanges"))
    }

    @Test func `51: holes in the history of a tree's revision are not filled`() throws {
        let peer = try VersionedPeer()
        let line = ["9-cc", "5-bb", "1-aa"]
        #expect(try peer.receive("", revisions: line, #"{"n":1}"#, over: "").answer == "taken: ")
        try peer.talk.say("subChanges", ["versioning": "version-vectors"])
        let list = try peer.talk.take("changes")
        // A peer that has edited an ancestor gets the revision under its ID.
        try peer.talk.answer(list, ["blobs": "true"], #"[["\#(Texts.b3)","1-aa"]]"#)
        let sent = try peer.talk.take("rev").message.properties
        #expect(sent["rev"] == "9-cc")
        #expect(sent["history"] == "5-bb, 1-aa")
    }

    @Test func `53: live changes and the initial feed have the same entries`() throws {
        func edit(_ peer: VersionedPeer) throws {
            try peer.save(#"{"n":1}"#, id: "new")
            try peer.save(#"{"n":1}"#, id: "edited")
            try peer.save(#"{"n":2}"#, id: "edited")
            try peer.save(#"{"n":1}"#, id: "deleted")
            try peer.save("{}", id: "deleted", isDeleted: true)
        }
        let passive = try VersionedPeer()
        let subscription: MessageProperties = ["versioning": "version-vectors", "continuous": "true"]
        try passive.talk.say("subChanges", subscription)
        #expect(try passive.talk.take("changes").message.bodyText == "[]")
        try edit(passive)
        passive.talk.localChange()
        let live = try passive.talk.take("changes").message.bodyText
        try passive.reconnect(passive: { _ in })
        try passive.talk.say("subChanges", subscription)
        #expect(try passive.talk.take("changes").message.bodyText == live)
        #expect(try JSONElement(parsing: Array(live.utf8)).items.count { _ in true } == 3)

        let active = try VersionedPeer(active: VersionedPeer.pushing)
        try edit(active)
        active.talk.localChange()
        let proposed = try active.talk.take("proposeChanges").message.bodyText
        try active.reconnect(active: VersionedPeer.pushing)
        #expect(try active.talk.take("proposeChanges").message.bodyText == proposed)
        #expect(try JSONElement(parsing: Array(proposed.utf8)).items.count { _ in true } == 3)
    }

    @Test func `54: what was pulled is not pushed back`() throws {
        let peer = try VersionedPeer(active: VersionedPeer.both)
        for (number, state) in [Texts.a1, Texts.vectorB3, Texts.vectorM6].enumerated() {
            _ = try peer.receive(state, #"{"n":\#(number)}"#, sequence: number + 1)
            peer.talk.localChange()
            #expect(!peer.talk.has("proposeChanges"))
        }
        try peer.reconnect(active: VersionedPeer.pushing)
        #expect(!peer.talk.has("proposeChanges"))
    }

    // MARK: Passive

    @Test func `58: nothing is recorded of what a client has`() throws {
        let peer = try VersionedPeer()
        _ = try peer.receive(Texts.a1, #"{"n":1}"#, over: "")
        #expect(try peer.talk.ask("proposeChanges", #"[["d","\#(Texts.a1)","",9]]"#) == "[304]")
        #expect(try peer.talk.ask("changes", #"[[1,"d","\#(Texts.a1)"]]"#) == "[]")
        try peer.save(#"{"n":2}"#)
        try peer.talk.say("subChanges", ["versioning": "version-vectors"])
        try peer.talk.answer(try peer.talk.take("changes"), ["blobs": "true"], #"[["\#(Texts.a1)"]]"#)
        try peer.talk.answer(try peer.talk.take("rev"))
        #expect(try peer.record()?.tree().remotes.isEmpty == true)
        let number = try peer.store.write { try $0.checkpointTables.remoteNumber("ws://first/db") }
        #expect(number == 1, "no remote was numbered before")
    }

    // MARK: Upgrade

    @Test func `62: what a peer has from before it had versions is not sent again`() throws {
        let peer = try VersionedPeer(.mobile3, active: VersionedPeer.both, Self.legacy)
        try peer.acceptProposal()
        let id = try #require(try peer.record()?.revision)
        let encoded = try #require(id.encodedVersion?.text)
        try peer.reconnect(active: VersionedPeer.both)
        #expect(!peer.talk.has("proposeChanges"))
        // The peer announces it under its ID, or under the version that stands for it.
        #expect(try peer.talk.ask("changes", #"[[1,"d","\#(id)",0,9],[2,"d","\#(encoded)",0,9]]"#) == "[]")
        peer.talk.localChange()
        #expect(!peer.talk.has("proposeChanges"))
        #expect(try peer.record()?.tree().vectors.isEmpty == true)
    }

    @Test func `63: the first edit after the upgrade is accepted by a peer that has the ID`() throws {
        let peer = try VersionedPeer(.mobile3, active: VersionedPeer.both, Self.legacy)
        try peer.acceptProposal()
        let id = try #require(try peer.record()?.revision)
        try peer.reconnect(active: VersionedPeer.both)
        try peer.save(#"{"n":3}"#)
        peer.talk.localChange()
        let first = try peer.proposal()
        // A Sync Gateway accepts it only by its own ID, which it tells.
        try peer.talk.answer(first.request, ["blobs": "true"], #"[{"status":409,"rev":"\#(id)"}]"#)
        let again = try peer.proposal()
        #expect(again.base == id.text)
        try peer.talk.answer(again.request, ["blobs": "true"], "[0]")
        let sent = try peer.talk.take("rev").message.properties
        #expect(sent["rev"] == (try peer.state()?.vector.current?.text))
        // Other Loveseats take the version that stands for the ID for it.
        let encoded = try #require(id.encodedVersion)
        #expect(sent["history"] == "\(encoded), \(id)")
    }

    @Test func `64: a document that both have from before the first version makes no traffic`() throws {
        let active = try VersionedPeer(active: VersionedPeer.both, Self.legacy)
        let passive = try VersionedPeer(passive: { _ in }, Self.legacy)
        #expect(try active.record()?.revision == passive.record()?.revision)
        let proposal = try active.talk.take("proposeChanges")
        let answer = try passive.talk.ask("proposeChanges", proposal.message.bodyText)
        #expect(answer == "[304]")
        try active.talk.answer(proposal, ["blobs": "true"], answer)
        for since in [nil, "0"] {
            try passive.reconnect()
            var properties: MessageProperties = ["versioning": "version-vectors"]
            properties["since"] = since
            try passive.talk.say("subChanges", properties)
            let list = try passive.talk.take("changes").message.bodyText
            #expect(try active.talk.ask("changes", list) == "[]")
        }
        active.talk.localChange()
        #expect(!active.talk.has("proposeChanges") && !active.talk.has("rev"))
    }
}
