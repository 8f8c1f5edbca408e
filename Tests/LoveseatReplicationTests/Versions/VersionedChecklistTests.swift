import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Lines of the conformance checklist (version-vectors.md §18) about what a session with a database takes in. Their numbers are in the names; for the
/// others see Tests/VERSIONS.md.
struct VersionedChecklistTests {
    private static let second: UInt64 = 1_000_000_000

    private func version(_ time: UInt64, _ source: String) -> String {
        "\(String(time, radix: 16))@\(source)"
    }

    // MARK: Pull

    @Test(arguments: [true, false])
    func `15: a time 119 seconds ahead is taken and exceeded, and nothing is stored of one of 121`(
        _ isActive: Bool
    ) throws {
        let peer =
            try isActive ? VersionedPeer(active: { $0.pulls = true }) : VersionedPeer(passive: { _ in })
        let ahead = version(VersionedPeer.now + 119 * Self.second, Texts.b)
        #expect(try peer.receive(ahead, #"{"n":1}"#, over: isActive ? nil : "").answer == "taken: ")
        let farAhead = "\(version(VersionedPeer.now + 121 * Self.second, Texts.c)); \(ahead)"
        let answer = try peer.receive(farAhead, #"{"n":2}"#, sequence: 2, over: isActive ? nil : ahead).answer
        #expect(answer == "LiteCore/\(LoveseatError.Code.badRevisionID.value)")
        #expect(try peer.record()?.body.description == #"{"n":1}"#)
        #expect(try peer.state()?.vector.text == ahead)
        #expect(try peer.record()?.tree().nodes.count == 1)
        try peer.save(#"{"n":3}"#)
        let own = try #require(try peer.state()?.vector.current)
        #expect(try own.time > Version(ahead).time)
        #expect(own.time < VersionedPeer.now + 120 * Self.second)
    }

    @Test func `34: a version alone is asked for over a local edit, and is no conflict if it includes that`()
        throws
    {
        let peer = try VersionedPeer(active: { $0.pulls = true }, asksResolver: true)
        _ = try peer.receive(Texts.a1, #"{"n":1}"#)
        try peer.save(#"{"n":2}"#)
        let own = try #require(try peer.state()?.rev)
        #expect(try peer.talk.ask("changes", #"[[2,"d","\#(Texts.b3)",0,9]]"#) == #"[["\#(own)"]]"#)
        let properties = [
            ("id", "d"), ("rev", Texts.b3), ("history", "\(own), \(Texts.a1)"), ("sequence", "2"),
        ]
        #expect(try peer.talk.send(properties, #"{"n":3}"#) == "taken: ")
        #expect(try peer.record()?.body.description == #"{"n":3}"#)
        #expect(try peer.record()?.hasConflicts == false)
        #expect(peer.talk.conflicts.isEmpty)
    }

    @Test func `35: an answer names ten revisions at most, each once`() throws {
        let talk = VersionedTalk(active: { $0.pulls = true })
        try talk.begin()
        try talk.answer(try talk.take("subChanges"))
        let ids = (1...15).reversed().map { "\($0)-aa" }
        talk.replica.verdict = .wanted(ancestors: ids.compactMap { RevisionID($0) }.map { .revision($0) })
        let answer = try JSONElement(parsing: Array(talk.ask("changes", #"[[1,"d","16-aa"]]"#).utf8))
        #expect(answer[0]?.items.compactMap(\.string) == Array(ids.prefix(10)))

        // The current revision and that of the remote are one here.
        let peer = try VersionedPeer(active: { $0.pulls = true })
        _ = try peer.receive(Texts.a1, "{}")
        #expect(try peer.talk.ask("changes", #"[[2,"d","\#(Texts.b3)"]]"#) == #"[["\#(Texts.a1)"]]"#)
    }

    @Test func `36: a version that is here is not asked for, and counts as the remote's`() throws {
        let peer = try VersionedPeer(active: VersionedPeer.both)
        try peer.save(#"{"n":1}"#)
        let state = try #require(try peer.state()?.vector.text)
        #expect(try peer.record()?.tree().remotes.isEmpty == true)
        #expect(try peer.talk.ask("changes", #"[[1,"d","\#(state)",0,9]]"#) == "[]")
        let record = try #require(try peer.record())
        #expect(try Array(record.tree().remotes.values) == [record.revision])
        // So it is not proposed.
        peer.talk.localChange()
        #expect(!peer.talk.has("proposeChanges"))
    }

    @Test func `40: a state in conflict is stored beside the current one, and the resolver is asked once`()
        throws
    {
        let peer = try VersionedPeer(active: VersionedPeer.both, asksResolver: true)
        _ = try peer.receive(Texts.a1, #"{"n":1}"#)
        try peer.save(#"{"n":2}"#)
        #expect(try peer.receive(Texts.vectorB3, #"{"n":3}"#, sequence: 2).answer == "taken: ")
        #expect(try peer.talk.ask("changes", #"[[3,"d","\#(Texts.vectorB3)",0,9]]"#) == "[]")
        #expect(peer.talk.conflicts.map(\.documentID) == ["d"])
        let record = try #require(try peer.record())
        #expect(record.body.description == #"{"n":2}"#)
        #expect(try record.tree().pending.map(\.body?.description) == [#"{"n":3}"#])
        // Nothing is pushed before the conflict is settled.
        peer.talk.localChange()
        #expect(!peer.talk.has("proposeChanges"))
    }

    @Test func `42: a revision of a tree is stored with its history, and a later one continues it`() throws {
        let peer = try VersionedPeer(active: { $0.pulls = true }, asksResolver: true)
        #expect(
            try peer.receive("", revisions: ["3-cc", "2-bb", "1-aa"], #"{"n":3}"#) == ("[[]]", "taken: ")
        )
        var record = try #require(try peer.record())
        #expect(record.revision == RevisionID("3-cc"))
        #expect(try record.tree().line(record.revision).map(\.text) == ["3-cc", "2-bb", "1-aa"])
        // Couchbase Lite 4 sends the next one without its history (correction 13).
        let next = try peer.receive("", revisions: ["5-ee"], #"{"n":5}"#, sequence: 2)
        #expect(next.answer == "taken: ")
        record = try #require(try peer.record())
        #expect(record.body.description == #"{"n":5}"#)
        #expect(record.hasConflicts == false)
        #expect(peer.talk.conflicts.isEmpty)
    }

    @Test func `43: a delta is expanded against the remote's revision, too, and any other base is refused`()
        throws
    {
        let peer = try VersionedPeer(active: { ($0.pulls, $0.usesDeltas) = (true, true) }, asksResolver: true)
        _ = try peer.receive(Texts.a1, #"{"a":1,"b":2}"#)
        try peer.save(#"{"a":9,"b":9}"#)
        _ = try peer.talk.ask("changes", #"[[2,"d","\#(Texts.vectorB3)",0,9]]"#)
        var properties = [("id", "d"), ("rev", Texts.b3), ("history", Texts.a1), ("sequence", "2")]
        #expect(try peer.talk.send(properties + [("deltaSrc", Texts.c4)], #"{"b":3}"#) == "HTTP/422")
        #expect(try peer.talk.send(properties + [("deltaSrc", Texts.a1)], #"{"b":3}"#) == "taken: ")
        #expect(try peer.record()?.tree().pending.map(\.body?.description) == [#"{"a":1,"b":3}"#])

        // After the refusal the whole body is taken.
        let other = try VersionedPeer(active: { ($0.pulls, $0.usesDeltas) = (true, true) })
        _ = try other.talk.ask("changes", #"[[1,"d","\#(Texts.vectorB3)",0,9]]"#)
        properties[3].1 = "1"
        #expect(try other.talk.send(properties + [("deltaSrc", Texts.a1)], #"{"b":3}"#) == "HTTP/422")
        #expect(try other.talk.send(properties, #"{"a":1,"b":3}"#) == "taken: ")
        #expect(try other.record()?.body.description == #"{"a":1,"b":3}"#)
    }

    @Test func `43: a delta that the peer cannot expand is followed by the whole body`() throws {
        let peer = try VersionedPeer(active: {
            VersionedPeer.both(&$0)
            $0.usesDeltas = true
        })
        let long = String(repeating: "long ", count: 60)
        _ = try peer.receive(Texts.a1, #"{"n":1,"text":"\#(long)"}"#)
        try peer.save(#"{"n":2,"text":"\#(long)"}"#)
        peer.talk.localChange()
        let answer: MessageProperties = ["blobs": "true", "deltas": "true"]
        try peer.talk.answer(try peer.talk.take("proposeChanges"), answer, "[0]")
        let delta = try peer.talk.take("rev")
        #expect(delta.message.properties["deltaSrc"] == Texts.a1)
        #expect(delta.message.bodyText == #"{"n":2}"#)
        try peer.talk.refuse(delta, "HTTP", 422)
        let whole = try peer.talk.take("rev")
        #expect(whole.message.properties["deltaSrc"] == nil)
        #expect(whole.message.properties["rev"] == delta.message.properties["rev"])
        #expect(whole.message.properties["history"] == Texts.a1)
        #expect(whole.message.bodyText == #"{"n":2,"text":"\#(long)"}"#)
        try peer.talk.answer(whole)
        #expect(peer.talk.documentErrors.isEmpty)
    }

    @Test func `45: a tombstone is taken, and an undeletion on top of it`() throws {
        for base in [nil, ""] {
            let peer = try base == nil ? VersionedPeer(active: { $0.pulls = true }) : VersionedPeer()
            _ = try peer.receive(Texts.a1, #"{"n":1}"#, over: base)
            let deletion = try peer.receive(
                Texts.vectorB3,
                "{}",
                isDeleted: true,
                sequence: 2,
                over: base.map { _ in Texts.a1 }
            )
            #expect(deletion.answer == "taken: ")
            #expect(try peer.record()?.isDeleted == true)
            #expect(try peer.state()?.vector.text == Texts.vectorB3)
            let undeletion = try peer.receive(
                "\(Texts.c4); \(Texts.vectorB3.replacing(";", with: ","))",
                #"{"n":2}"#,
                sequence: 3,
                over: base.map { _ in Texts.b3 }
            )
            #expect(undeletion.answer == "taken: ")
            #expect(try peer.record()?.isDeleted == false)
            #expect(try peer.record()?.body.description == #"{"n":2}"#)
        }
    }

    @Test func `45: a deletion and its undeletion are pushed as states`() throws {
        let peer = try VersionedPeer(active: VersionedPeer.both)
        _ = try peer.receive(Texts.a1, #"{"n":1}"#)
        try peer.save("{}", isDeleted: true)
        peer.talk.localChange()
        let deletion = try peer.acceptProposal()
        #expect(deletion["deleted"] == "1")
        #expect(deletion["history"] == Texts.a1)
        try peer.save(#"{"n":2}"#)
        peer.talk.localChange()
        let proposal = try peer.proposal()
        #expect(proposal.base == deletion["rev"])
        try peer.talk.answer(proposal.request, ["blobs": "true"], "[0]")
        let undeletion = try peer.talk.take("rev").message.properties
        #expect(undeletion["deleted"] == nil)
        #expect(undeletion["history"] == Texts.a1)
    }
}
