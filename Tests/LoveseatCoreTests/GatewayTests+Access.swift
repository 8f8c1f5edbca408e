import Foundation
import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// What a gateway takes away, and gives back.
extension GatewayTests {
    @Test(arguments: [2, 3, 4, 6, 7]) func `a document that is taken away is purged, and told`(_ flags: Int)
        async throws
    {
        try await take(["a", "b"])
        gateway.edit { $0.feed.append(.init(3, "a", "2-bb", flags: flags)) }
        let outcome = await run(configuration())
        #expect(outcome.flags("a") == .accessRemoved)
        #expect(outcome.code("a") == nil)
        #expect(try here.document(id: "a") == nil)
        #expect(try here.document(id: "b") != nil)
        // It was not asked for, and comes back when it changes there.
        #expect(gateway.edit { $0.wanted["a"] } == .some(nil))
        gateway.edit { $0.feed.append(.init(4, "a", "3-cc", body: #"{"n":3}"#)) }
        await run(configuration())
        #expect(try here.document(id: "a")?["n"] == 3)
    }

    @Test(arguments: [true, false])
    func `a gateway that is put back to a backup gives back what it took away since, and else goes on`(
        _ takesAway: Bool
    ) async throws {
        try await take(["a", "b"])
        let backup = gateway.edit { $0.checkpoints }
        let flags = takesAway ? 2 : 0
        gateway.edit { $0.feed.append(.init(3, takesAway ? "a" : "c", "2-bb", flags: flags, body: "{}")) }
        await run(configuration())
        #expect(try (here.document(id: "a") == nil) == takesAway)
        gateway.edit { script in
            script.feed.removeLast()
            script.checkpoints = backup
        }
        await run(configuration())
        #expect(try here.document(id: "a")?["n"] == 1)
        #expect(gateway.received("subChanges").last?.properties["since"] == (takesAway ? nil : "2"))
    }

    /// `d` was never pushed, `e` was edited since the pull, `f` is as the peer has it.
    func takeAway(_ flags: Int = 2, _ change: (inout ReplicatorConfiguration) -> Void = { _ in })
        async throws -> Outcome
    {
        try await take(["e", "f"])
        try here.save(Document(id: "d", ["n": 1]))
        var edited = try #require(try here.document(id: "e"))
        edited["n"] = 2
        try here.save(&edited)
        gateway.edit { script in
            for (number, id) in ["d", "e", "f"].enumerated() {
                script.feed.append(.init(JSONValue(number + 3), id, "2-bb", flags: flags))
            }
        }
        var configuration = configuration()
        change(&configuration)
        return await run(configuration)
    }

    @Test(arguments: [2, 4, 7]) func `a peer takes away what it had, and neither more nor newer edits`(
        _ flags: Int
    )
        async throws
    {
        let outcome = try await takeAway(flags)
        #expect(try here.document(id: "d")?["n"] == 1)
        #expect(try here.document(id: "e")?["n"] == 2)
        #expect(try here.document(id: "f") == nil)
        #expect(outcome.events["d"]?.error?.code == .remoteError)
        #expect(outcome.events["e"]?.error?.code == .conflict)
        #expect(outcome.code("f") == nil)
        #expect(outcome.flags("f") == .accessRemoved)
    }

    @Test func `edits that the peer has not got go with their document if the app says so`() async throws {
        let outcome = try await takeAway { $0.purgesUnpushedEdits = true }
        #expect(try here.document(id: "d")?["n"] == 1)
        #expect(try here.document(id: "e") == nil)
        #expect(outcome.code("e") == nil)
        #expect(outcome.flags("e") == .accessRemoved)
    }

    @Test func `two thousand documents that a peer never had survive its taking them away`() async throws {
        for number in 0..<2_000 { try here.save(Document(id: "d\(number)")) }
        gateway.edit { script in
            script.feed = (0..<2_000).map { .init(JSONValue($0 + 1), "d\($0)", "1-bb", flags: 4) }
        }
        await run(configuration())
        #expect(here.count == 2_000)
    }

    /// The user's own edit moves a document out of reach: the peer says so before it has answered the push.
    @Test func `a removal that names the revision here is of what the peer has`() async throws {
        try here.save(Document(id: "mine", ["n": 1]))
        let revision = try #require(try here.document(id: "mine")?.revisionID)
        gateway.edit { $0.feed = [.init(1, "mine", revision.text, flags: 4)] }
        let outcome = await run(configuration())
        #expect(outcome.code("mine") == nil)
        #expect(outcome.flags("mine") == .accessRemoved)
        #expect(here.count == 0)
    }

    @Test(arguments: [false, true])
    func `a proposal that waits is done with when its document is taken away`(_ comesLate: Bool) async throws
    {
        try await take(["a"])
        // The peer lost its checkpoint, so that everything is offered again; what it has is not here.
        gateway.edit { script in
            script.checkpoints = [:]
            script.announcesLate = comesLate
            script.verdicts["a"] = ["status": 409, "rev": "5-ff"]
            script.feed = [.init(2, "a", "5-ff", flags: 2)]
        }
        let outcome = await run(configuration(.pushAndPull))
        #expect(gateway.received("proposeChanges").count == 1)
        #expect(outcome.code("a") == nil)
        #expect(outcome.flags("a") == .accessRemoved)
        #expect(here.count == 0)
    }

    @Test func `a deletion that follows a removal in the same list comes, where the removal left an edit`()
        async throws
    {
        try await take(["a"])
        try here.save(Document(id: "a", ["n": 2]))
        gateway.edit { script in
            script.feed.append(.init(2, "a", "2-bb", flags: 4))
            script.feed.append(.init(3, "a", "3-cc", flags: 5, properties: ["history": "2-bb,1-aa"]))
        }
        let outcome = await run(configuration())
        #expect(outcome.code("a") == nil)
        #expect(outcome.flags("a") == .deleted)
        #expect(try here.document(id: "a") == nil)
    }

    /// Under a new address nothing is known of what the peer has: each proposal is refused once.
    @Test func `three thousand edits under a new address are offered again in full lists`() async throws {
        try await take((0..<3_000).map { "d\($0)" })
        for number in 0..<3_000 { try here.save(Document(id: "d\(number)", ["n": 2])) }
        let moved = ScriptedGateway("moved")
        moved.edit { script in
            for number in 0..<3_000 { script.verdicts["d\(number)"] = ["status": 409, "rev": "1-aa"] }
        }
        var tests = self
        tests.gateway = moved
        #expect(await tests.run(tests.configuration(.push)).events.values.allSatisfy { $0.error == nil })
        #expect(moved.received("rev").count == 3_000)
        #expect(moved.received("proposeChanges").count <= 2 * 3_000 / 200 + 5)
    }

    @Test func `another user pulls from the beginning, and pushes nobody else's changes unasked`()
        async throws
    {
        func since() -> String? { gateway.received("subChanges").last?.properties["since"] }
        func configuration(_ user: String, adopts: Bool = false) -> ReplicatorConfiguration {
            var configuration = self.configuration(.pushAndPull)
            configuration.authenticator = BasicAuthenticator(username: user, password: "s3cret")
            configuration.adoptsOtherUsersChanges = adopts
            return configuration
        }
        gateway.edit { $0.feed = [.init(1, "a", "1-aa")] }
        await run(configuration("ana"))
        try here.save(Document(id: "hers"))
        // As another user nothing goes out, and the message says how much would.
        let refused = Replicator(configuration("bob"))
        refused.start()
        let error = try #require(await refused.waitUntilStopped().error)
        #expect(error.code == .invalidParameter)
        #expect(error.remedy == .adoptingChanges)
        #expect(error.message.contains("1 document changed"))
        #expect(error.message.contains("\"ana\""))
        #expect(error.message.contains("\"bob\""))
        #expect(gateway.received("proposeChanges").isEmpty)
        #expect(await run(configuration("bob", adopts: true)).status == nil)
        #expect(since() == nil)
        #expect(gateway.received("rev").count == 1)
        #expect(await run(configuration("bob")).status == nil)
        #expect(since() == "1")
        #expect(await run(configuration("ana")).status == nil)
        #expect(since() == nil)
        #expect(gateway.received("rev").count == 1)
    }

    @Test func `another user may pull beside changes that are not that user's`() async throws {
        func configuration(_ user: String, _ type: ReplicatorType) -> ReplicatorConfiguration {
            var configuration = self.configuration(type)
            configuration.authenticator = BasicAuthenticator(username: user, password: "s3cret")
            return configuration
        }
        gateway.edit { $0.feed = [.init(1, "a", "1-aa")] }
        await run(configuration("ana", .pushAndPull))
        try here.save(Document(id: "hers"))
        #expect(await run(configuration("bob", .pull)).status == nil)
        #expect(gateway.received("subChanges").last?.properties["since"] == nil)
        #expect(await run(configuration("bob", .pull)).status == nil)
        #expect(gateway.received("subChanges").last?.properties["since"] == "1")
        #expect(await run(configuration("bob", .push)).status == .invalidParameter)
        #expect(gateway.received("rev").isEmpty)
    }

    @Test func `a deletion that ends access too is a deletion`() async throws {
        try await take(["a"])
        gateway.edit { $0.feed.append(.init(2, "a", "2-bb", flags: 5)) }
        #expect(await run(configuration()).flags("a") == .deleted)
        #expect(try here.document(id: "a") == nil)
    }

    /// The same tests against a gateway that speaks the older form of the protocol, which says in bodies what was removed.
    private var older: GatewayTests {
        var tests = self
        tests.gateway = ScriptedGateway("older", negotiated: .mobile2)
        return tests
    }

    @Test func `a deletion that cannot be stored is told as a deletion`() async throws {
        gateway.edit { $0.feed = [.init(1, "a", "2-bb", flags: 1, body: "no JSON")] }
        let outcome = await run(configuration())
        #expect(outcome.flags("a") == .deleted)
        #expect(outcome.code("a") == 10_400)
    }

    @Test func `without auto-purge a document that is taken away stays, and is told`() async throws {
        try await take(["a"])
        gateway.edit { $0.feed.append(.init(3, "a", "2-bb", flags: 2)) }
        var keeping = configuration()
        keeping.enableAutoPurge = false
        let outcome = await run(keeping)
        #expect(outcome.flags("a") == .accessRemoved)
        #expect(outcome.code("a") == nil)
        #expect(try here.document(id: "a")?["n"] == 1)
    }

    @Test func `without auto-purge a body that says removed is told, and the document stays`() async throws {
        let older = older
        try await older.take(["a"])
        older.gateway.edit { $0.feed.append(.init(3, "a", "2-bb", body: #"{"_removed":true}"#)) }
        var keeping = older.configuration()
        keeping.enableAutoPurge = false
        let outcome = await run(keeping)
        #expect(outcome.flags("a") == .accessRemoved)
        #expect(outcome.code("a") == nil)
        #expect(try here.document(id: "a")?["n"] == 1)
    }

    @Test func `a body that says removed purges, and a pull filter may hold it`() async throws {
        let older = older
        try await older.take(["a", "b"])
        older.gateway.edit { script in
            script.feed.append(.init(4, "a", "2-bb", body: #"{"_removed":true}"#))
            script.feed.append(.init(5, "b", "2-bb", body: #"{"_removed":true}"#))
        }
        let outcome = await run(
            older.configuration { entry in
                entry.pullFilter = { document, flags in
                    !(flags.contains(.accessRemoved) && document.id != "a" && document.properties.isEmpty)
                }
            }
        )
        #expect(outcome.flags("a") == .accessRemoved)
        #expect(outcome.code("a") == nil)
        #expect(outcome.code("b") == 10_403)
        #expect(here.count == 1)
        #expect(older.gateway.received("subChanges").allSatisfy { $0.properties["revocations"] == nil })
    }

    @Test func `a body that says removed after an announcement that did not purges nothing`() async throws {
        try await take(["a", "b"])
        gateway.edit { script in
            script.feed.append(.init(4, "a", "2-bb", body: #"{"_removed":true}"#))
            script.feed.append(.init(5, "b", "2-bb", body: #"{"n":2}"#))
        }
        let outcome = await run(configuration())
        #expect(outcome.code("a") == 10_404)
        #expect(outcome.flags("a") == [])
        #expect(try here.document(id: "a")?["n"] == 1)
        #expect(try here.document(id: "b")?["n"] == 2)
        // It failed, so the next run asks for it again.
        gateway.edit { $0.feed[2].body = #"{"n":3}"# }
        await run(configuration())
        #expect(gateway.received("subChanges").last?.properties["since"] == "2")
        #expect(try here.document(id: "a")?["n"] == 3)
    }

    @Test func `a push without access is refused per document, and what is here stays`() async throws {
        for id in ["a", "b", "c"] { try here.save(Document(id: id)) }
        let forbidden = ReplyError("HTTP", 403, "missing channel access")
        gateway.edit { $0.refusals = ["a": [forbidden, forbidden], "b": [forbidden]] }
        let outcome = await run(configuration(.push))
        #expect(outcome.status == nil)
        #expect(outcome.code("a") == 10_403)
        #expect(outcome.code("b") == nil)
        #expect(outcome.code("c") == nil)
        #expect(here.count == 3)
        // Refused for good once it was refused twice; a change is offered again.
        #expect(gateway.received("rev").count == 5)
        await run(configuration(.push))
        #expect(gateway.received("rev").count == 5)
        var changed = try #require(try here.document(id: "a"))
        changed["n"] = 1
        try here.save(&changed)
        #expect(await run(configuration(.push)).code("a") == nil)
        #expect(gateway.received("rev").count == 6)
    }
}
