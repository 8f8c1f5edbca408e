import Foundation
import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// Our active side against a peer that speaks a gateway's part of the protocol.
@Suite struct GatewayTests {
    let scratch: Scratch
    let database: Database
    let here: Collection
    var gateway = ScriptedGateway()

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("near")
        here = try database.defaultCollection()
    }

    func configuration(
        _ type: ReplicatorType = .pull,
        _ change: (inout CollectionConfiguration) -> Void = { _ in }
    ) -> ReplicatorConfiguration {
        var entry = CollectionConfiguration(collection: here)
        change(&entry)
        var configuration = ReplicatorConfiguration(collections: [entry], target: gateway)
        configuration.replicatorType = type
        return configuration
    }

    struct Outcome: Hashable {
        var status: LoveseatError.Code?
        var events: [String: ReplicatedDocument] = [:]

        func code(_ id: String) -> Int? { events[id]?.error?.code.value }
        func flags(_ id: String) -> DocumentFlags? { events[id]?.flags }
    }

    @discardableResult
    func run(_ configuration: ReplicatorConfiguration, reset: Bool = false) async -> Outcome {
        let replicator = Replicator(configuration)
        let events = replicator.documentReplications
        replicator.start(reset: reset)
        var outcome = Outcome()
        for await event in events {
            for document in event.documents { outcome.events[document.id] = document }
        }
        outcome.status = await replicator.waitUntilStopped().error?.code
        return outcome
    }

    func take(_ ids: [String]) async throws {
        gateway.edit { script in
            script.feed = ids.enumerated().map {
                .init(JSONValue($0.offset + 1), $0.element, "1-aa", body: #"{"n":1}"#)
            }
        }
        await run(configuration())
        #expect(here.count == UInt64(ids.count))
    }

    // MARK: Subscriptions

    @Test func `a subscription says what was configured, and no more`() async throws {
        await run(configuration())
        let first = try #require(gateway.received("subChanges").last)
        // A gateway does not say that it announces deletions which come during the pull.
        #expect(first.properties["activeOnly"] == nil)
        #expect(first.properties["revocations"] == "true")
        #expect(first.properties["batch"] == "100")
        #expect(first.properties["versioning"] == "rev-trees")
        #expect(first.properties["since"] == nil)
        #expect(first.properties["continuous"] == nil)
        #expect(first.body == [])
        #expect(first.properties["filter"] == nil)
        #expect(first.properties["channels"] == nil)
        gateway.edit { $0.feed = [.init("12:34", "a", "1-aa")] }
        await run(configuration { $0.channels = ["news", "sports"] })
        let channels = try #require(gateway.received("subChanges").last)
        #expect(channels.properties["filter"] == "sync_gateway/bychannel")
        #expect(channels.properties["channels"] == "news,sports")
        await run(configuration { $0.channels = ["news", "sports"] })
        #expect(gateway.received("subChanges").last?.properties["since"] == "\"12:34\"")
        await run(configuration { $0.documentIDs = ["a", "b"] })
        let listed = try #require(gateway.received("subChanges").last)
        #expect(String(decoding: listed.body, as: UTF8.self) == #"{"docIDs":["a","b"]}"#)
        #expect(listed.properties["since"] == nil)
        #expect(listed.properties["activeOnly"] == nil)
    }

    // MARK: Errors of documents

    @Test(
        arguments: [
            (ReplyError("HTTP", 400, "bad"), 10_400),
            (ReplyError("HTTP", 404, "no"), 10_404), (ReplyError("HTTP", 500, "oh"), 10_500),
            (ReplyError("LiteCore", 8, "conflict"), 10_409), (ReplyError("BLIP", 501, "what"), 26),
            (ReplyError("HTTP", 503, "busy"), 10_503), (ReplyError("HTTP", 429, "slow"), 10_429),
        ]
    )
    func `a refused document is told once and wedges nothing`(
        _ error: ReplyError,
        _ code: Int
    ) async throws {
        for number in 0..<300 { try here.save(Document(id: "d\(number)")) }
        gateway.edit { $0.refusals = ["d7": [error]] }
        let outcome = await run(configuration(.push))
        #expect(outcome.status == nil)
        #expect(outcome.code("d7") == code)
        #expect(outcome.events.count == 300)
        #expect(outcome.events.values.filter { $0.error != nil }.count == 1)
        // It is not done: it stays pending, and the next run tries it again.
        #expect(try Replicator(configuration(.push)).pendingDocumentIds(collection: here) == ["d7"])
        await run(configuration(.push))
        #expect(gateway.received("rev").count == 301)
    }

    @Test func `a received document that cannot be stored is told once and wedges nothing`() async throws {
        let missing = #"{"b":{"@type":"blob","digest":"sha1-98vD6/8luAXGlAAAAAAAAAAAAAA=","length":1}}"#
        gateway.edit { script in
            script.feed = (1...20).map { .init(JSONValue($0), "d\($0)", "1-aa") }
            script.feed[3].body = missing
            script.feed[5].body = "no JSON"
            script.feed[7].properties = ["history": "7-aa"]
            script.feed[9].properties = ["error": "500"]
        }
        let outcome = await run(configuration())
        #expect(outcome.status == nil)
        #expect(here.count == 16)
        #expect(outcome.code("d4") == 10_404)
        #expect(outcome.code("d6") == 10_400)
        #expect(outcome.code("d8") == 4)
        #expect(outcome.code("d10") == 10_502)
        #expect(try syncState("d1") == .notPushed)
        for id in ["d4", "d6", "d8", "d10"] {
            guard case .notPulled = try syncState(id) else { Issue.record("\(id)"); continue }
        }
        // They do not keep the checkpoint back, and are asked for again by their IDs, over a connection of its own.
        gateway.edit { $0.feed[3].body = "{}" }
        let again = await run(configuration())
        let asked = Array(gateway.received("subChanges").suffix(2))
        try #require(asked.count == 2)
        #expect(asked[0].properties["since"] == "20")
        #expect(asked[1].properties["since"] == nil)
        #expect(String(decoding: asked[1].body, as: UTF8.self).contains(#"["d10","d4","d6","d8"]"#))
        #expect(again.events.keys.sorted() == ["d10", "d4", "d6", "d8"])
        #expect(again.code("d4") == nil)
        #expect(again.code("d6") == 10_400)
        #expect(here.count == 17)
        gateway.edit { script in
            (script.feed[5].body, script.feed[7].properties, script.feed[9].properties) = ("{}", [:], [:])
        }
        #expect(await run(configuration()).events.values.allSatisfy { $0.error == nil })
        #expect(here.count == 20)
        let count = gateway.received("subChanges").count
        #expect(await run(configuration()).events == [:])
        #expect(gateway.received("subChanges").count == count + 1)
        #expect(try syncState("d6") == .notPushed)
    }

    private func syncState(_ id: String) throws -> SyncState {
        try Replicator(configuration()).syncState(of: id, collection: here)
    }

    @Test func `a blob that the peer refuses makes one failed document, and the checkpoint goes on`()
        async throws
    {
        gateway.edit { script in
            script.feed = (1...5).map { .init(JSONValue($0), "d\($0)", "1-aa") }
            script.feed[0].body =
                #"{"b":{"@type":"blob","digest":"sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00=","length":5}}"#
            script.blobError = ReplyError("HTTP", 403, "not being synced")
        }
        let outcome = await run(configuration())
        #expect(outcome.code("d1") == 10_403)
        #expect(here.count == 4)
        #expect(try syncState("d1") == .notPulled(try #require(outcome.events["d1"]?.error)))
        // What the peer had meanwhile is not asked for again.
        gateway.edit { $0.blobs["sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00="] = Array("hello".utf8) }
        #expect(await run(configuration()).events.keys.sorted() == ["d1"])
        #expect(gateway.received("subChanges").map { $0.properties["since"] } == [nil, "5", nil])
        #expect(here.count == 5)
    }

    // MARK: Documents that the feed has passed

    @Test(arguments: [false, true]) func `a document that was purged and made anew here meets the peer's`(
        _ isContinuous: Bool
    ) async throws {
        try await take(["a", "b"])
        try here.purge(id: "a")
        var anew = Document(id: "a", ["n": 6])
        try here.save(&anew)
        anew["n"] = 7
        try here.save(&anew)
        gateway.edit { $0.verdicts["a"] = ["status": 409, "rev": "1-aa"] }
        var configuration = configuration(.pushAndPull)
        configuration.continuous = isContinuous
        let replicator = Replicator(configuration)
        replicator.start()
        for await status in replicator.statuses where status.activity == .idle { replicator.stop() }
        // On top of the peer's revision it is taken.
        let revision = try #require(gateway.received("rev").last)
        let history = try #require(revision.properties["history"])
        #expect(history.hasPrefix("1-aa"))
        #expect(try here.document(id: "a")?["n"] == 7)
        #expect(try replicator.pendingDocumentIds(collection: here) == [])
    }

    @Test func `a peer that goes back to an older revision is offered the newer one again`() async throws {
        try await take(["a"])
        let newer = ScriptedGateway.Change(
            2,
            "a",
            "2-bb",
            body: #"{"n":2}"#,
            properties: ["history": "1-aa"]
        )
        gateway.edit { $0.feed.append(newer) }
        await run(configuration(.pushAndPull))
        // It was purged there, and somebody brought back what they had of it.
        gateway.edit { $0.feed.append(.init(3, "a", "1-aa")) }
        await run(configuration())
        await run(configuration(.push))
        let offer = try #require(gateway.received("proposeChanges").last)
        #expect(try JSONElement(parsing: offer.body).value[0] == ["a", "2-bb", "1-aa", 7])
        #expect(gateway.received("rev").last?.properties["rev"] == "2-bb")
    }

    @Test func `where a gateway takes no revision of a line, the content goes on top of what it has`()
        async throws
    {
        try await take(["a"])
        var edit = try #require(try here.document(id: "a"))
        for n: JSONValue in [2, 3] {
            edit["n"] = n
            try here.save(&edit)
        }
        let refused = ReplyError("HTTP", 409, "Document revision conflict")
        gateway.edit { $0.refusals = ["a": [refused]] }
        let outcome = await run(configuration(.pushAndPull))
        #expect(outcome.code("a") == nil)
        let sent = gateway.received("rev").suffix(2)
        #expect(sent.map { $0.properties["rev"]?.first } == ["3", "2"])
        #expect(sent.last?.properties["history"] == "1-aa")
        #expect(sent.first?.body == sent.last?.body)
        await run(configuration(.pushAndPull))
        #expect(gateway.received("rev").count == 2)
    }

    @Test func `an edit of a document that was taken away is offered as new`() async throws {
        _ = try await takeAway()
        await run(configuration(.push))
        let offers = try gateway.received("proposeChanges").flatMap {
            try JSONElement(parsing: $0.body).value.array ?? []
        }
        #expect(offers.last { $0[0] == "e" }?[2] == "")
    }

    @Test func `an edit of a document that the peer no longer has is offered as new`() async throws {
        try await take(["a"])
        var edited = try #require(try here.document(id: "a"))
        edited["n"] = 7
        try here.save(&edited)
        gateway.edit { $0.verdicts["a"] = ["status": 409, "rev": ""] }
        let outcome = await run(configuration(.push))
        #expect(outcome.events["a"]?.error == nil)
        #expect(outcome.events["a"] != nil)
        #expect(gateway.received("rev").map { $0.properties["id"] } == ["a"])
        let replicator = Replicator(configuration(.push))
        #expect(try replicator.pendingDocumentIds(collection: here).isEmpty)
    }

    @Test func `a copy that the peer forbids is told to be refused`() async throws {
        try await take(["a"])
        try here.purge(id: "a")
        var anew = Document(id: "a", ["n": 6])
        try here.save(&anew)
        anew["n"] = 7
        try here.save(&anew)
        let forbidden = ReplyError("HTTP", 403, "missing channel access")
        gateway.edit { script in
            script.verdicts["a"] = ["status": 409, "rev": "1-aa"]
            script.refusals = ["a": Array(repeating: forbidden, count: 20)]
        }
        let outcome = await run(configuration(.pushAndPull))
        #expect(outcome.code("a") == 10_403)
    }

    @Test func `a document that the peer has and does not show is said to be out of this user's sight`()
        async throws
    {
        try here.save(Document(id: "a", ["n": 7]))
        gateway.edit { $0.verdicts["a"] = ["status": 409, "rev": "1-aa"] }
        let outcome = await run(configuration(.pushAndPull))
        let error = try #require(outcome.events["a"]?.error)
        #expect(error.code == .httpConflict)
        #expect(error.message.contains("the peer has a document of this name that this user may not see"))
        #expect(gateway.received("subChanges").count == 2)
        #expect(gateway.received("proposeChanges").count == 1)
    }

    @Test(arguments: [false, true]) func `a peer that says nothing does not keep a replicator from stopping`(
        _ isInTheMiddle: Bool
    ) async throws {
        gateway.edit { $0.isSilent = !isInTheMiddle }
        var continuous = configuration(.pushAndPull)
        continuous.continuous = true
        let replicator = Replicator(continuous)
        replicator.start()
        if isInTheMiddle {
            for await status in replicator.statuses where status.activity == .idle { break }
            gateway.edit { $0.isSilent = true }
            try here.save(Document(id: "never answered"))
        }
        while gateway.received(isInTheMiddle ? "proposeChanges" : "getCheckpoint").isEmpty {
            await Task.yield()
        }
        replicator.stop()
        #expect(await replicator.waitUntilStopped().error == nil)
        try await database.close()
    }

    @Test func `access that is given back brings the document back, in every direction`() async throws {
        for type in [ReplicatorType.pull, .pushAndPull] {
            let id = "\(type)"
            let next = gateway.edit { $0.feed.count } + 1
            gateway.edit { script in
                script.feed += [
                    .init(JSONValue(next), id, "1-aa", body: #"{"n":1}"#),
                    .init(JSONValue(next + 1), id, "1-aa", flags: 2),
                ]
            }
            await run(configuration(type))
            #expect(try here.document(id: id) == nil)
            gateway.edit { $0.feed.append(.init(JSONValue(next + 2), id, "1-aa", body: #"{"n":1}"#)) }
            await run(configuration(type))
            #expect(try here.document(id: id)?["n"] == 1)
        }
    }

    // MARK: Deltas

    private static let long = String(repeating: "0123456789", count: 30)

    @Test func `a delta is sent against what the peer has, and the whole body if it cannot use it`()
        async throws
    {
        gateway.edit { $0.answers["deltas"] = "true" }
        var pushing = configuration(.push)
        pushing.enableDeltaSync = true
        for id in ["a", "b"] { try here.save(Document(id: id, ["text": .string(Self.long), "n": 1])) }
        await run(pushing)
        for id in ["a", "b"] {
            var document = try #require(try here.document(id: id))
            document["n"] = 2
            try here.save(&document)
        }
        gateway.edit { $0.refusals = ["b": [ReplyError("HTTP", 422, "no base")]] }
        let replicator = Replicator(pushing)
        replicator.start()
        let status = await replicator.waitUntilStopped()
        let sent = gateway.received("rev").dropFirst(2)
        #expect(sent.count == 3)
        #expect(status.error == nil)
        #expect(
            sent.filter { $0.properties["deltaSrc"] != nil }.allSatisfy {
                String(decoding: $0.body, as: UTF8.self) == #"{"n":2}"#
            }
        )
        #expect(sent.last?.properties["deltaSrc"] == nil)
        #expect(sent.last?.properties["id"] == "b")
        #expect(status.progress.deltasSent == 2)
        #expect(status.progress.deltaBytesSaved > 500)
        // Not for deletions, and not unless the app wants it.
        try here.delete(try #require(try here.document(id: "a")))
        await run(pushing)
        #expect(gateway.received("rev").last?.properties["deltaSrc"] == nil)
        pushing.enableDeltaSync = false
        var document = try #require(try here.document(id: "b"))
        document["n"] = 3
        try here.save(&document)
        await run(pushing)
        #expect(gateway.received("rev").last?.properties["deltaSrc"] == nil)
    }

    @Test func `a received delta is applied, or the whole body asked for`() async throws {
        gateway.edit { script in
            script.feed = ["a", "b", "c"].enumerated().map {
                .init(JSONValue($0.offset + 1), $0.element, "1-aa", body: #"{"n":1,"t":"\#(Self.long)"}"#)
            }
        }
        var pulling = configuration()
        pulling.enableDeltaSync = true
        await run(pulling)
        let whole = #"{"n":2,"t":"\#(Self.long)"}"#
        gateway.edit { script in
            for (index, (id, base, delta)) in [
                ("a", "1-aa", #"{"n":2}"#), ("b", "1-ff", #"{"n":2}"#), ("c", "1-aa", #"{"zz":[]}"#),
            ].enumerated() {
                script.feed.append(
                    .init(
                        JSONValue(index + 4),
                        id,
                        "2-bb",
                        body: delta,
                        properties: ["deltaSrc": base, "history": "1-aa", "whole": whole]
                    )
                )
            }
        }
        let outcome = await run(pulling)
        #expect(outcome.events.values.allSatisfy { $0.error == nil })
        for id in ["a", "b", "c"] { #expect(try here.document(id: id)?.json.description == whole) }
        let refused = gateway.edit { $0.answered.filter { $0.error != nil }.map(\.id).sorted() }
        #expect(refused == ["b", "c"])
        // All of it is done with.
        #expect(await run(pulling).events == [:])
    }
}
