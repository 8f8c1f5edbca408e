import Foundation
import LoveseatBLIP
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatTesting
import Testing

/// Lines of the conformance checklist (replication.md Part G) seen from the wire; their numbers are in the names.
@Suite struct WireChecklistTests {
    private let scratch: Scratch
    private let database: Database
    private let here: Collection
    private let gateway = ScriptedGateway()

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("near")
        here = try database.defaultCollection()
    }

    private struct Outcome {
        var error: LoveseatError?
        var codes: [String: Int?] = [:]
    }

    @discardableResult
    private func run(_ type: ReplicatorType, reset: Bool = false) async -> Outcome {
        var configuration = ReplicatorConfiguration(collections: [here], target: gateway)
        configuration.replicatorType = type
        let replicator = Replicator(configuration)
        let events = replicator.documentReplications
        replicator.start(reset: reset)
        var outcome = Outcome()
        for await event in events {
            for document in event.documents { outcome.codes[document.id] = .some(document.error?.code.value) }
        }
        outcome.error = await replicator.waitUntilStopped().error
        return outcome
    }

    private func json(_ message: Message?) throws -> JSONValue {
        try JSONElement(parsing: #require(message).body).value
    }

    // MARK: Checkpoints

    @Test(arguments: [("HTTP", 403, 10_403), ("HTTP", 400, 10_400), ("LiteCore", 12, 12)])
    func `2: no checkpoint is a beginning, any other answer an end`(
        _ domain: String,
        _ code: Int,
        _ ours: Int
    )
        async throws
    {
        try here.save(Document(id: "a"))
        gateway.edit { $0.checkpointError = ReplyError(domain, code, "no") }
        #expect(await run(.push).error?.code.value == ours)
        #expect(gateway.received("proposeChanges").isEmpty)
        #expect(gateway.received("setCheckpoint").isEmpty)
        gateway.edit { $0.checkpointError = ReplyError("HTTP", 404, "missing") }
        #expect(await run(.push).codes["a"] == .some(nil))
    }

    @Test
    func
        `3: the first checkpoint has no revision, and after a conflict it is saved again with the right one`()
        async throws
    {
        try here.save(Document(id: "a"))
        gateway.edit { $0.checkpointConflicts = 1 }
        #expect(await run(.push).error == nil)
        let saves = gateway.received("setCheckpoint")
        #expect(saves.count == 2)
        #expect(saves.first?.properties["rev"] ?? "" == "")
        #expect(saves.last?.properties["rev"] == "0-7")
        #expect(gateway.received("getCheckpoint").count == 2)
        #expect(await run(.push).error == nil)
        #expect(gateway.received("rev").count == 1)
    }

    @Test func `4 and 13: a checkpoint has local and remote sequences, in the peer's own form`() async throws
    {
        try here.save(Document(id: "a"))
        gateway.edit { $0.feed = [.init("5::9", "b", "1-bb")] }
        await run(.pushAndPull)
        let checkpoint = try json(gateway.received("setCheckpoint").last)
        #expect(checkpoint["remote"] == "5::9")
        #expect((checkpoint["local"]?.int ?? 0) >= 1)
        await run(.pull)
        #expect(gateway.received("subChanges").last?.properties["since"] == "\"5::9\"")
    }

    @Test
    func
        `5 and 10: a document whose push failed is left out of the checkpoint, and only such are sent again`()
        async throws
    {
        for number in 1...20 { try here.save(Document(id: "d\(number)")) }
        gateway.edit { script in
            script.refusals = [
                "d8": [ReplyError("HTTP", 503, "busy")], "d15": [ReplyError("HTTP", 500, "failed")],
            ]
        }
        await run(.push)
        let checkpoint = try json(gateway.received("setCheckpoint").last)
        #expect(checkpoint["local"] == 7)
        #expect(checkpoint["localCompleted"] == [0, 8, 9, 6, 16, 5])
        await run(.push)
        #expect(Set(gateway.received("rev").dropFirst(20).map { $0.properties["id"] }) == ["d8", "d15"])
        #expect(try json(gateway.received("setCheckpoint").last)["local"] == 20)
    }

    @Test
    func `7 and 8: a checkpoint that the peer lost is begun again, and what is there is not sent again`()
        async throws
    {
        for number in 1...10 { try here.save(Document(id: "d\(number)")) }
        await run(.push)
        gateway.edit { script in
            script.checkpoints = [:]
            for number in 1...10 { script.verdicts["d\(number)"] = 304 }
        }
        #expect(await run(.push).codes == [:])
        #expect(gateway.received("rev").count == 10)
        #expect(gateway.received("proposeChanges").count == 2)
        // Marks that the peer does not confirm are not believed.
        let proposals = try json(gateway.received("proposeChanges").last)
        #expect(proposals.array?.count == 10)
        #expect(proposals[0]?[2] == "")
        // A reset keeps those that both sides' checkpoints cover.
        await run(.push, reset: true)
        #expect(gateway.received("rev").count == 10)
        #expect(gateway.received("proposeChanges").count == 2)
    }

    // MARK: Pulling

    @Test func `14: changes are answered with what is here, best first`() async throws {
        gateway.edit { $0.feed = [.init(1, "a", "1-aa"), .init(2, "b", "1-bb", flags: 1)] }
        await run(.pull)
        #expect(gateway.edit { $0.wanted } == ["a": [], "b": []])
        gateway.edit { script in
            script.feed += [
                .init(3, "a", "2-aa", properties: ["history": "1-aa"]), .init(4, "b", "1-bb", flags: 1),
            ]
        }
        await run(.pull)
        #expect(gateway.edit { $0.wanted["a"] } == .some(["1-aa"]))
        #expect(gateway.edit { $0.wanted["b"] } == .some(nil))
    }

    @Test func `15: null stands for an empty list, and is all that a pull waits for`() async throws {
        gateway.edit { script in
            script.feed = [.init(1, "a", "1-aa")]
            script.caughtUp = "null"
        }
        #expect(await run(.pull).error == nil)
        #expect(here.count == 1)
    }

    @Test func `a newer revision may come in place of the announced one`() async throws {
        gateway.edit { script in
            script.feed = [
                .init(
                    1,
                    "a",
                    "1-aa",
                    properties: ["rev": "2-bb", "history": "1-aa", "replacedRev": "1-aa", "sequence": "7"]
                ), .init(2, "b", "1-bb"),
            ]
        }
        #expect(await run(.pull).error == nil)
        #expect(try here.document(id: "a")?.revisionID?.text == "2-bb")
        #expect(try json(gateway.received("setCheckpoint").last)["remote"] == 2)
    }

    @Test func `a revision that was not asked for is not stored, and the rest arrives`() async throws {
        gateway.edit { script in
            script.feed = [.init(1, "a", "1-aa")]
            script.volunteers = [.init(2, "b", "1-bb")]
        }
        #expect(await run(.pull).error == nil)
        #expect(try here.document(id: "b") == nil)
        #expect(try here.document(id: "a") != nil)
    }

    @Test func `16: a revision that is not sent after all ends its sequence without an event`() async throws {
        gateway.edit { script in
            script.feed = [
                .init(1, "a", "1-aa"), .init(2, "b", "1-bb", properties: ["norev": "404"]),
                .init(3, "c", "1-cc"),
            ]
        }
        let outcome = await run(.pull)
        #expect(outcome.error == nil)
        #expect(Set(outcome.codes.keys) == ["a", "c"])
        #expect(try json(gateway.received("setCheckpoint").last)["remote"] == 3)
    }

    @Test func `18: properties with an underscore in front are the protocol's, and stay out`() async throws {
        gateway.edit { $0.feed = [.init(1, "a", "1-aa", body: #"{"_id":"a","_rev":"1-aa","n":1,"_exp":3}"#)] }
        await run(.pull)
        #expect(try here.document(id: "a")?.properties == ["n": 1])
    }

    @Test func `20: a blob is fetched once for two documents, and verified`() async throws {
        let (content, digest) = (Array("hello".utf8), "sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00=")
        let body = #"{"b":{"@type":"blob","digest":"\#(digest)","length":5,"content_type":"text/plain"}}"#
        let wrong = #"{"b":{"@type":"blob","digest":"sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=","length":5}}"#
        gateway.edit { script in
            script.feed = [
                .init(1, "a", "1-aa", body: body), .init(2, "b", "1-bb", body: body),
                .init(3, "c", "1-cc", body: wrong),
            ]
            script.blobs = [digest: content, "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=": content]
        }
        let outcome = await run(.pull)
        #expect(outcome.codes["a"] == .some(nil))
        #expect(outcome.codes["b"] == .some(nil))
        #expect(outcome.codes["c"] == .some(15))
        let asked = gateway.received("getAttachment")
        #expect(asked.filter { $0.properties["digest"] == digest }.count == 1)
        #expect(asked.first?.properties["docID"] == "a")
        #expect(asked.first?.properties["compress"] == "true")
        let blob = try #require(try here.document(id: "b")?.blob("b"))
        #expect(try database.blobContent(blob) == Data(content))
    }

    // MARK: Pushing

    @Test func `a document that is too large for the peer is sent once, until it changes or a reset`()
        async throws
    {
        for number in 1...3 { try here.save(Document(id: "d\(number)")) }
        let large = ReplyError("HTTP", 413, "Document too large!")
        gateway.edit { $0.refusals = ["d2": [large, large]] }
        #expect(await run(.push).codes["d2"] == .some(10_413))
        let first = gateway.received("rev").count
        #expect(await run(.push).codes == [:])
        #expect(gateway.received("rev").count == first)
        let replicator = Replicator(ReplicatorConfiguration(collections: [here], target: gateway))
        #expect(try replicator.refusedDocuments(collection: here).map(\.documentID) == ["d2"])
        let state = try replicator.syncState(of: "d2", collection: here)
        #expect(state.name == "refused")
        #expect(state.sentence.contains("--reset"))
        #expect(try replicator.pendingDocumentIds(collection: here) == [])
        #expect(await run(.push, reset: true).codes["d2"] == .some(10_413))
        try here.save(Document(id: "d2", ["n": 1]))
        #expect(await run(.push).codes["d2"] == .some(nil))
        #expect(try replicator.refusedDocuments(collection: here).isEmpty)
    }

    @Test(arguments: ["500", "503"])
    func `a revision that the peer cannot send now does not pin the checkpoint, and is fetched by its ID`(
        _ status: String
    ) async throws {
        gateway.edit { script in
            script.feed = [
                .init(1, "a", "1-aa"), .init(2, "b", "1-bb", properties: ["norev": status]),
                .init(3, "c", "1-cc"),
            ]
        }
        let outcome = await run(.pull)
        #expect(outcome.error == nil)
        #expect(outcome.codes["b"] == .some(10_000 + (Int(status) ?? 0)))
        #expect(try json(gateway.received("setCheckpoint").last)["remote"] == 3)
        let replicator = Replicator(ReplicatorConfiguration(collections: [here], target: gateway))
        let state = try replicator.syncState(of: "b", collection: here)
        #expect(state.name == "not-pulled")
        #expect(state.sentence.contains("the peer cannot send it"))
        gateway.edit { $0.feed[1].properties = [:] }
        #expect(await run(.pull).codes["b"] == .some(nil))
        #expect(try here.document(id: "b")?.revisionID?.text == "1-bb")
        #expect(
            gateway.received("subChanges").filter {
                String(decoding: $0.body, as: UTF8.self).contains("\"b\"")
            }
            .count == 1
        )
        #expect(try replicator.syncState(of: "b", collection: here) != state)
    }

    @Test func `23 and 27: proposals name document, revision, the peer's revision and a size`() async throws {
        try here.save(Document(id: "a", ["n": 1]))
        await run(.push)
        let first = try #require(try here.document(id: "a")?.revisionID?.text)
        let proposal = try json(gateway.received("proposeChanges").first)[0]
        #expect(proposal?[0] == "a")
        #expect(proposal?[1] == .string(first))
        #expect(proposal?[2] == "")
        #expect((proposal?[3]?.int ?? 0) > 0)
        var document = try #require(try here.document(id: "a"))
        document["n"] = 2
        try here.save(&document)
        await run(.push)
        #expect(try json(gateway.received("proposeChanges").last)[0]?[2] == .string(first))
        let revision = try #require(gateway.received("rev").last)
        #expect(revision.properties["history"] == first)
        #expect(revision.properties["noconflicts"] == "true")
        #expect(revision.properties["rev"] == document.revisionID?.text)
    }

    @Test func `24: each answer to a proposal has its consequence`() async throws {
        for id in ["wanted", "there", "conflict", "named", "broken"] { try here.save(Document(id: id)) }
        gateway.edit { script in
            script.verdicts = [
                "there": 304, "conflict": 409, "named": ["status": 409, "rev": "3-ff"], "broken": 500,
            ]
        }
        let outcome = await run(.push)
        #expect(outcome.error == nil)
        #expect(outcome.codes["conflict"] == .some(10_409))
        #expect(outcome.codes["named"] == .some(10_409))
        #expect(outcome.codes["broken"] == .some(10_500))
        #expect(outcome.codes["wanted"] == .some(nil))
        #expect(gateway.received("rev").map { $0.properties["id"] } == ["wanted"])
        #expect(gateway.received("proposeChanges").first?.properties["conflictIncludesRev"] == "true")
    }

    @Test func `26: a deletion is sent as one, with an empty body`() async throws {
        try here.save(Document(id: "a", ["n": 1]))
        try here.delete(try #require(try here.document(id: "a")))
        await run(.push)
        let revision = try #require(gateway.received("rev").first)
        #expect(revision.properties["deleted"] == "1")
        #expect(revision.body == Array("{}".utf8))
    }

    @Test func `28: a forbidden revision is sent once more, then never again`() async throws {
        try here.save(Document(id: "a"))
        gateway.edit { $0.refusals = ["a": [ReplyError("HTTP", 403, "no"), ReplyError("HTTP", 403, "no")]] }
        #expect(await run(.push).codes["a"] == .some(10_403))
        #expect(gateway.received("rev").count == 2)
        #expect(gateway.received("proposeChanges").count == 1)
        #expect(await run(.push).codes == [:])
        #expect(gateway.received("rev").count == 2)
    }

    @Test(arguments: [
        ("LiteCore", 8, 10_409), ("HTTP", 413, 10_413), ("WebSocket", 1_001, 11_001), ("Network", 2, 5_002),
        ("BLIP", 400, 26), ("Fleece", 5, 26), ("Odd", 7, 26),
    ])
    func `54: a peer's error becomes ours by its domain`(_ domain: String, _ code: Int, _ ours: Int)
        async throws
    {
        try here.save(Document(id: "a"))
        gateway.edit { $0.refusals = ["a": [ReplyError(domain, code, "no")]] }
        #expect(await run(.push).codes["a"] == .some(ours))
    }

    @Test func `30: a peer that does not look for blobs gets a table of them`() async throws {
        let blob = try database.saveBlob(Array("hello".utf8), contentType: "text/plain")
        try here.save(Document(id: "a", ["picture": blob.json, "n": 1]))
        gateway.edit { $0.answers["blobs"] = nil }
        await run(.push)
        let stub = try json(gateway.received("rev").last)["_attachments"]?["blob_/picture"]
        #expect(stub?["digest"] == .string(blob.digest.text))
        #expect(stub?["stub"] == true)
        #expect(stub?["revpos"] == 1)
        #expect(stub?["@type"] == nil)
        #expect(try here.document(id: "a")?["_attachments"] == nil)
    }

    @Test func `32: what was purged or has expired is not pushed`() async throws {
        for id in ["a", "b", "c"] { try here.save(Document(id: id)) }
        try here.purge(id: "a")
        try here.setDocumentExpiration(id: "b", expiration: Date(timeIntervalSinceNow: -1))
        await run(.push)
        #expect(gateway.received("rev").map { $0.properties["id"] } == ["c"])
    }

    @Test func `33: what was just pulled is not pushed back`() async throws {
        gateway.edit { $0.feed = (1...30).map { .init(JSONValue($0), "d\($0)", "1-aa") } }
        await run(.pushAndPull)
        #expect(here.count == 30)
        #expect(gateway.received("rev").isEmpty)
        #expect(gateway.received("proposeChanges").isEmpty)
    }
}
