import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// Blobs under the names that gateways, REST clients and 1.x apps give them (replication.md §11.5).
struct AttachmentTests {
    private let ours: ReplayedPeer

    init() throws { ours = try ReplayedPeer() }

    private static func digest(_ text: String) -> BlobDigest {
        BlobDigest(sha1: Hashing.sha1(Array(text.utf8)))
    }

    private static func blob(_ text: String) -> String {
        #"{"@type":"blob","digest":"\#(digest(text))","length":\#(text.utf8.count)}"#
    }

    private static func stub(_ text: String) -> String {
        #"{"digest":"\#(digest(text))","length":\#(text.utf8.count),"revpos":1,"stub":true}"#
    }

    /// Has a document arrive with this body, and its blobs when they are asked for; returns what is stored.
    private func pull(
        _ body: String,
        blobs: [String],
        revision: String = "1-aa",
        history: String? = nil
    ) throws -> (stored: String?, asked: [String?]) {
        let line = try ours.activeLine()
        _ = try line.ask("changes", [:], #"[[1,"d","\#(revision)"]]"#).get()
        var properties: MessageProperties = ["id": "d", "rev": revision, "sequence": "1"]
        properties["history"] = history
        try line.tell("rev", properties, body)
        var asked: [String?] = []
        var requests = line.take("getAttachment")
        while !requests.isEmpty {
            for request in requests {
                let digest = request.message.properties["digest"]
                asked.append(digest)
                if let text = blobs.first(where: { Self.digest($0).text == digest }) {
                    try line.puppet.reply(Message(body: Array(text.utf8)), to: request.number)
                } else {
                    try line.puppet.reply(ReplyError("HTTP", 404), to: request.number)
                }
            }
            try line.runUntilQuiet()
            requests = line.take("getAttachment")
        }
        #expect(line.failure == nil)
        return (try ours.record("d")?.body.description, asked)
    }

    @Test func `an attachment without a blob in the body is fetched, kept, and sent on`() throws {
        let table = #"{"hello.txt":\#(Self.stub("hello"))}"#
        let body = #"{"_attachments":\#(table),"n":1}"#
        let (stored, asked) = try pull(body, blobs: ["hello"])
        #expect(asked == [Self.digest("hello").text])
        #expect(stored == body)
        #expect(ours.store.blobs.contains(Self.digest("hello")))
        // Nothing else refers to it.
        _ = try ours.store.compact()
        #expect(ours.store.blobs.contains(Self.digest("hello")))
        // Another peer gets both.
        let line = try ours.passiveLine()
        _ = try line.ask("subChanges", [:], "").get()
        let list = try #require(line.take("changes").first)
        try line.puppet.reply(Message(["blobs": "true"], body: Array("[[]]".utf8)), to: list.number)
        try line.runUntilQuiet()
        #expect(try #require(line.take("rev").first).message.body == Array(body.utf8))
        let answer = try line.ask("getAttachment", ["digest": Self.digest("hello").text, "docID": "d"], "")
        #expect(try answer.get().body == Array("hello".utf8))
    }

    @Test(arguments: ["gateway-attachments-rest-337", "gateway-attachments-rest-411"])
    func `an attachment that was made by REST is fetched before its document is stored`(_ name: String) throws
    {
        let conversation = try #require(try Recordings.load(name).first)
        let message = try #require(conversation.requests(ofActive: false, "rev").first)
        let body = String(decoding: message.body, as: UTF8.self)
        let (stored, asked) = try pull(body, blobs: ["legacy attachment"])
        #expect(asked == [Self.digest("legacy attachment").text])
        #expect(stored == body)
    }

    @Test func `an attachment that the peer does not have fails its document`() throws {
        let body = #"{"_attachments":{"hello.txt":\#(Self.stub("hello"))},"n":1}"#
        let (stored, asked) = try pull(body, blobs: [])
        #expect(stored == nil)
        #expect(asked.count == 1)
    }

    /// Keys, and the names that they have in the table: escaped, and as older peers wrote them.
    @Test(arguments: [
        (#""picture""#, ["blob_/picture"]), (#""a/b""#, ["blob_/a~1b", "blob_/a/b"]),
        (#""a~b""#, ["blob_/a~0b", "blob_/a~b"]), (#""""#, ["blob_/"]),
        (#""~1""#, ["blob_/~01", "blob_/~1"]), (#""é""#, ["blob_/é"]), (#""e\u0301""#, ["blob_/e\u{301}"]),
    ])
    func `a name in the table that leads to a blob is not stored`(_ key: String, _ names: [String]) throws {
        for (index, name) in (names + ["blob_0"]).enumerated() {
            let ours = try ReplayedPeer()
            let tests = Self(ours)
            let plain = #"{\#(key):\#(Self.blob("hello")),"n":1.0}"#
            let table = #"{"\#(name)":\#(Self.stub("hello"))}"#
            let (stored, _) = try tests.pull(
                String(plain.dropLast()) + #","_attachments":\#(table)}"#,
                blobs: ["hello"]
            )
            #expect(stored == plain, "\(index)")
        }
    }

    private init(_ ours: ReplayedPeer) { self.ours = ours }

    @Test func `an entry that is a blob's of the body is not stored, whatever its name`() throws {
        let plain = #"{"a":[{"b":\#(Self.blob("hello"))}]}"#
        let table = #"{"blob_/x/y":\#(Self.stub("hello"))}"#
        let (stored, _) = try pull(
            String(plain.dropLast()) + #","_attachments":\#(table)}"#,
            blobs: ["hello"]
        )
        #expect(stored == plain)
    }

    @Test func `bytes that were replaced at the gateway stand in place of the blob's`() throws {
        let table = #"{"blob_/files/0/img":{"digest":"\#(Self.digest("new"))","stub":true}}"#
        let old = #"{"@type":"blob","digest":"\#(Self.digest("old"))","length":3,"alt":"x"}"#
        let (stored, asked) = try pull(
            #"{"files":[{"img":\#(old)}],"_attachments":\#(table)}"#,
            blobs: ["old", "new"]
        )
        #expect(asked == [Self.digest("new").text])
        #expect(
            stored == #"{"files":[{"img":{"@type":"blob","digest":"\#(Self.digest("new"))","alt":"x"}}]}"#
        )
    }

    /// Older peers did not escape the names of keys.
    @Test(arguments: ["blob_/a~1b/0/img", "blob_/a/b/0/img"])
    func `bytes that were replaced are found by either form of a name`(_ name: String) throws {
        let table = #"{"\#(name)":{"digest":"\#(Self.digest("new"))","stub":true}}"#
        let body = #"{"a/b":[{"img":\#(Self.blob("old"))}],"_attachments":\#(table)}"#
        let (stored, asked) = try pull(body, blobs: ["old", "new"])
        #expect(asked == [Self.digest("new").text])
        #expect(stored?.contains(Self.digest("new").text) == true)
        #expect(stored?.contains("_attachments") == false)
    }

    @Test(arguments: [(32, true), (33, false)])
    func `a name that is not escaped is looked for among keys with so many slashes`(
        _ parts: Int,
        _ isFound: Bool
    ) throws {
        let key = Array(repeating: "a", count: parts).joined(separator: "/")
        let table = #"{"blob_/\#(key)":{"digest":"\#(Self.digest("new"))","stub":true}}"#
        let body = #"{"\#(key)":\#(Self.blob("old")),"_attachments":\#(table)}"#
        let (stored, asked) = try pull(body, blobs: ["old", "new"])
        // A document whose table does not have one of its blobs is refused.
        #expect(asked == (isFound ? [Self.digest("new").text] : []))
        let blob = #"{"@type":"blob","digest":"\#(Self.digest("new"))"}"#
        #expect(stored == (isFound ? #"{"\#(key)":\#(blob)}"# : nil))
    }

    @Test func `a blob that goes back to earlier bytes has those, whatever the table says`() throws {
        let table = #"{"blob_/note":{"digest":"\#(Self.digest("second"))","revpos":2,"stub":true}}"#
        let body = #"{"note":\#(Self.blob("first")),"_attachments":\#(table)}"#
        // The same with an entry of this very revision is a replacement by REST.
        for (revpos, content) in [(2, "first"), (3, "second")] {
            let tests = Self(try ReplayedPeer())
            let (stored, asked) = try tests.pull(
                body.replacing(#""revpos":2"#, with: #""revpos":\#(revpos)"#),
                blobs: ["first", "second"],
                revision: "3-cc",
                history: "2-bb,1-aa"
            )
            #expect(asked == [Self.digest(content).text])
            #expect(stored?.contains(Self.digest(content).text) == true, "\(revpos)")
        }
        // A gateway that does not have the body's bytes can give those of the table only.
        let tests = Self(try ReplayedPeer())
        let (stored, asked) = try tests.pull(body, blobs: ["second"], revision: "3-cc", history: "2-bb,1-aa")
        #expect(asked == [Self.digest("first").text, Self.digest("second").text])
        #expect(stored?.contains(Self.digest("second").text) == true)
    }

    @Test func `keys that look alike stay apart in a body with blobs`() throws {
        let plain =
            #"{"b":\#(Self.blob("hello")),"é":1,"e\#u{301}":2,"\u00e9x":{"é":3,"e\#u{301}":4},"z":1.0}"#
        let body = String(plain.dropLast()) + #","_attachments":{"blob_/b":\#(Self.stub("hello"))},"_x":1}"#
        let (stored, _) = try pull(body, blobs: ["hello"])
        #expect(stored.map { Array($0.utf8) } == Array(plain.utf8))
        // And to a peer that wants a table.
        let line = try ours.passiveLine()
        _ = try line.ask("subChanges", [:], "").get()
        let list = try #require(line.take("changes").first)
        try line.puppet.reply(Message(body: Array("[[]]".utf8)), to: list.number)
        try line.runUntilQuiet()
        let sent = try #require(line.take("rev").first).message.body
        #expect(sent.starts(with: Array(plain.utf8).dropLast()))
    }

    @Test func `names in the table that is sent are escaped`() throws {
        let line = try ours.passiveLine()
        for text in ["hello"] { try ours.addBlob(Array(text.utf8)) }
        let body =
            #"{"a/b":{"~":\#(Self.blob("hello"))},"":\#(Self.blob("hello")),"l":[\#(Self.blob("hello"))]}"#
        try ours.seed(Message(["id": "d", "rev": "1-aa"], body: Array(body.utf8)), in: .default)
        _ = try line.ask("subChanges", [:], "").get()
        let list = try #require(line.take("changes").first)
        try line.puppet.reply(Message(body: Array("[[]]".utf8)), to: list.number)
        try line.runUntilQuiet()
        let sent = try JSONElement(parsing: try #require(line.take("rev").first).message.body)
        let names = try #require(sent["_attachments"]).members.map(\.key).sorted()
        #expect(names == ["blob_/", "blob_/a~1b/~0", "blob_/l/0"])
        let entry = sent["_attachments"]?["blob_/l/0"]
        #expect(entry?["stub"]?.bool == true)
        #expect(entry?["revpos"]?.int == 1)
        #expect(entry?["@type"] == nil)
        // It comes back as it was.
        let other = Self(try ReplayedPeer())
        let (stored, _) = try other.pull(String(decoding: sent.bytes, as: UTF8.self), blobs: ["hello"])
        #expect(stored == body)
    }
}
