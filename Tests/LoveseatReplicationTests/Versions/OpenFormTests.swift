import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatCore
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Sessions over transports that negotiate no form of the protocol (blip.md §13): each finds out which one the peer speaks.
struct OpenFormTests {
    private let scratch: Scratch
    private let store: DocumentStore
    private let collection: CollectionHandle

    init() throws {
        scratch = try Scratch()
        var options = DocumentStore.Options()
        // Later than every version of the tests.
        options.system.nanoseconds = { 0x18E9_F200_0000_0000 }
        store = try DocumentStore.inMemory(blobFolder: "\(scratch.path)/blobs", options: options)
        collection = try #require(store.collection(.default))
    }

    private func save(_ id: String = "d") throws -> RevisionID {
        let saved = try store.write { transaction in
            try transaction.save(
                id,
                in: collection,
                body: JSONText(canonical: ["n": 1]),
                isDeleted: false,
                condition: .lastWriteWins
            )
        }
        return try #require(saved).revision
    }

    private func active(pushes: Bool, pulls: Bool) throws -> SessionTalk {
        let replicas = DatabaseReplicas(
            store: store,
            collections: [collection],
            checkpointIDs: ["cp-x"],
            remote: try store.write { try $0.checkpointTables.remoteNumber("x-msg-endpt:peer") },
            nowMilliseconds: { 0 }
        )
        return SessionTalk(active: { ($0.pushes, $0.pulls) = (pushes, pulls) }, replicas)
    }

    private func passive() throws -> SessionTalk {
        let talk = SessionTalk(
            passive: { _ in },
            DatabaseReplicas(store: store, nowMilliseconds: { 0 })
        )
        try talk.begin(nil)
        return talk
    }

    private func entry(_ message: Message) throws -> JSONElement {
        try #require(try JSONElement(parsing: message.body)[0])
    }

    // MARK: Active

    @Test(arguments: [(true, false), (false, true), (true, true)])
    func `an active session asks how the peer names revisions, and speaks of versions if it refuses trees`(
        _ pushes: Bool,
        _ pulls: Bool
    ) throws {
        let id = try save()
        let talk = try active(pushes: pushes, pulls: pulls)
        try talk.begin(nil)
        let question = try talk.take("subChanges")
        #expect(question.message.properties["versioning"] == "rev-trees")
        #expect(question.message.properties["filter"] != nil)
        // The peer is told of no revision before it has answered, and the database makes no versions.
        #expect(talk.requests.isEmpty)
        #expect(store.source == nil)
        try talk.refuse(question, "LiteCore", 501)
        #expect(store.source != nil)
        #expect(talk.has("subChanges") == pulls)
        #expect(talk.has("proposeChanges") == pushes)
        if pulls {
            let properties = try talk.take("subChanges").message.properties
            #expect(properties["versioning"] == "version-vectors")
            #expect(properties["loveseat"] == nil)
            #expect(properties["collection"] == "0")
        }
        if pushes {
            let list = try talk.take("proposeChanges").message
            #expect(list.properties["loveseat"] == nil)
            #expect(try entry(list)[1]?.string == id.encodedVersion?.text)
        }
    }

    @Test(arguments: [("LiteCore", 19), ("HTTP", 403)])
    func `an active session speaks of trees with a peer that does not refuse them`(
        _ domain: String,
        _ code: Int
    ) throws {
        let id = try save()
        let talk = try active(pushes: true, pulls: true)
        try talk.begin(nil)
        try talk.refuse(try talk.take("subChanges"), domain, code)
        #expect(store.source == nil)
        #expect(try talk.take("subChanges").message.properties["versioning"] == "rev-trees")
        #expect(try entry(try talk.take("proposeChanges").message)[1]?.string == id.text)
    }

    @Test func `an active session asks no Loveseat, and speaks of trees with it`() throws {
        let talk = try active(pushes: true, pulls: true)
        try talk.begin(nil, extensions: "trees-2")
        let subscription = try talk.take("subChanges").message.properties
        #expect(subscription["filter"] == nil)
        #expect(subscription["versioning"] == "rev-trees")
        #expect(subscription["loveseat"] != nil)
        #expect(store.source == nil)
    }

    @Test func `an active session speaks the form of 2 with a peer that knows no collections`() throws {
        let id = try save()
        let talk = try active(pushes: true, pulls: false)
        talk.open(nil)
        try talk.refuse(try talk.take("getCollections"), "BLIP", 404)
        let checkpoint = try talk.take("getCheckpoint")
        #expect(checkpoint.message.properties["collection"] == nil)
        try talk.refuse(checkpoint, "HTTP", 404)
        let list = try talk.take("proposeChanges").message
        #expect(list.properties["collection"] == nil)
        #expect(try entry(list)[1]?.string == id.text)
    }

    // MARK: Passive

    @Test(arguments: ["version-vectors", "rev-trees"])
    func `a passive session announces revisions as the first subscription wants them named`(
        _ versioning: String
    ) throws {
        let id = try save()
        let talk = try passive()
        #expect(store.source == nil)
        #expect(try talk.refusal("subChanges", ["versioning": versioning, "since": "0"]) == "taken: ")
        let isVersions = versioning == "version-vectors"
        #expect((store.source != nil) == isVersions)
        let change = try entry(try talk.take("changes").message)
        // A document without a version is announced by its ID, or by the version that stands for that.
        let names = isVersions ? [id.text, id.encodedVersion?.text] : [id.text]
        #expect(names.contains(change[2]?.string))
        // The form does not change any more.
        let other = isVersions ? "rev-trees" : "version-vectors"
        #expect(try talk.refusal("unsubChanges") == "taken: ")
        #expect(try talk.refusal("subChanges", ["versioning": other]) == "LiteCore/501")
    }

    @Test func `a passive session takes versions from the first proposal that names one`() throws {
        let talk = try passive()
        #expect(try talk.ask("proposeChanges", #"[["d","\#(Texts.vectorB3)","",10]]"#) == "[]")
        let answer = try talk.refusal(
            "rev",
            ["id": "d", "rev": Texts.b3, "history": Texts.a1, "sequence": "1", "noconflicts": "1"],
            #"{"n":3}"#
        )
        #expect(answer == "taken: ")
        let record = try #require(try store.readRows { try $0.record("d", in: collection) })
        #expect(try record.tree().versions.state(of: record.revision).vector.text == Texts.vectorB3)
    }

    @Test func `a passive session takes documents from before an upgrade, and then versions`() throws {
        let talk = try passive()
        let revision = "2-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
        #expect(try talk.ask("proposeChanges", #"[["old","\#(revision)","",10]]"#) == "[]")
        #expect(store.source == nil)
        // The revision comes after the next list.
        #expect(try talk.ask("proposeChanges", #"[["me@home","\#(Texts.a1)","",10]]"#) == "[]")
        #expect(store.source != nil)
        for (id, name) in [("old", revision), ("me@home", Texts.a1)] {
            let properties: MessageProperties = ["id": id, "rev": name, "sequence": "1", "noconflicts": "1"]
            #expect(try talk.refusal("rev", properties, "{}") == "taken: ")
        }
        #expect(try store.readRows { try $0.record("old", in: collection) }?.revision.text == revision)
        #expect(try store.readRows { try $0.record("me@home", in: collection) } != nil)
    }

    @Test func `a passive session takes a document's name for a version nowhere`() throws {
        let talk = try passive()
        let revision = "2-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
        let list = #"[["\#(Texts.a1)","\#(revision)","",10]]"#
        #expect(try talk.ask("proposeChanges", list) == "[]")
        #expect(store.source == nil)
    }
}
