import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: programs
/// Documents that go from one wire to the other, by a database that speaks both.
struct BridgeTests {
    private let hub: ActiveSide
    private let peer: ActiveSide

    init() throws {
        hub = try ActiveSide("hub")
        peer = try ActiveSide("peer")
    }

    private func sync(_ one: ActiveSide, _ url: URL) async throws {
        let pass = try await one.replicate(url, .pushAndPull)
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty)
    }

    private func json(_ couch: FakeCouch, _ path: String) async throws -> JSONValue {
        try await couch.send("GET", path, headers: [("Accept", "application/json")]).json
    }

    private static let text = String(repeating: "a line that gzip makes shorter\n", count: 20_000)

    /// A CouchDB with a document whose attachments are a text, which it compresses, and a picture.
    private func couch() async throws -> FakeCouch {
        let couch = try await FakeCouch()
        try await couch.send("PUT", "/db")
        let (text, picture) = (Data(Self.text.utf8), Data([0x89, 0, 1, 2, 255]))
        let answer = try await couch.send(
            "PUT",
            "/db/x?new_edits=false",
            #"""
            {"_rev":"1-a","n":1.5,"kept":{"deep":[1,"ä"]},"_attachments":{
            "t.txt":{"content_type":"text/plain","revpos":1,"data":"\#(text.base64EncodedString())"},
            "a b/c.png":{"content_type":"image/png","revpos":1,"data":"\#(picture.base64EncodedString())"}}}
            """#
        )
        #expect(answer.status < 300, "\(answer.text)")
        return couch
    }

    @Test func `a document with attachments goes to Couchbase's wire and back unchanged`() async throws {
        let couch = try await couch()
        let before = try await json(couch, "/db/x?attachments=true")
        try await sync(hub, couch.url())
        try await hub.synchronize(with: peer)
        var document = try #require(try peer.collection.document(id: "x"))
        document["m"] = 2
        try peer.collection.save(&document)
        try await hub.synchronize(with: peer)
        try await sync(hub, couch.url())
        var after = try await json(couch, "/db/x?attachments=true")
        #expect(after["m"] == 2)
        #expect(after["_rev"]?.string == document.revisionID?.text)
        after["m"] = nil
        after["_rev"] = before["_rev"]
        #expect(after == before)

        // An edit on the other wire, which names the attachments without their content.
        var edit = try await json(couch, "/db/x")
        edit["m"] = 3
        #expect(try await couch.send("PUT", "/db/x", JSONText(canonical: edit).description).status == 201)
        try await sync(hub, couch.url())
        try await hub.synchronize(with: peer)
        let edited = try #require(try peer.collection.document(id: "x"))
        #expect(edited["m"] == 3)
        #expect(edited["kept"] == before["kept"])
        let picture = try #require(edited.attachment("a b/c.png"))
        #expect(try peer.database.blobContent(picture) == Data([0x89, 0, 1, 2, 255]))
    }

    @Test func `an attachment that a CouchDB compressed is read as it was`() async throws {
        let couch = try await couch()
        try await sync(hub, couch.url())
        try await hub.synchronize(with: peer)
        let content = Data(Self.text.utf8)
        for side in [hub, peer] {
            let document = try #require(try side.collection.document(id: "x"))
            let text = try #require(document.attachment("t.txt"))
            let database = side.database
            #expect(text.length == UInt64(content.count))
            #expect(try database.blobLength(text) == UInt64(content.count))
            #expect(try database.blobContent(text) == content)
            #expect(try database.blobContent(text, in: 300_000..<300_031) == content[300_000..<300_031])
            #expect(try database.blobContent(text, in: 619_999..<UInt64.max) == content[619_999...])
            var pieces: [Data] = []
            for try await piece in try database.blobPieces(text) { pieces.append(piece) }
            #expect(pieces.allSatisfy { $0.count <= 256 << 10 })
            #expect(pieces.count > 1)
            #expect(Data(pieces.joined()) == content)
            // As a property it is the same blob.
            #expect(BlobReference(text.json) == text)
        }
    }

    @Test func `compressed content that is longer than its document says is refused`() async throws {
        let couch = try await couch()
        try await sync(hub, couch.url())
        let document = try #require(try hub.collection.document(id: "x"))
        var json = try #require(document.attachment("t.txt")).json
        json["length"] = 1_000
        let reference = try #require(BlobReference(json))
        expectCorrupt { _ = try hub.database.blobContent(reference) }
        json["digest"] = try #require(document.attachment("a b/c.png")).json["digest"]
        let picture = try #require(BlobReference(json))
        expectCorrupt { _ = try hub.database.blobContent(picture) }
    }

    private func expectCorrupt(_ body: () throws -> Void) {
        #expect { try body() } throws: { ($0 as? LoveseatError)?.code == .corruptData }
    }

    /// A document whose properties are blobs: a picture, and a text in an array.
    private func saveBlobs() throws -> Document {
        var document = Document(id: "blobs")
        let database = peer.database
        document["photo"] = try database.saveBlob([UInt8](0...255), contentType: "image/jpeg").json
        document["notes"] = [try database.saveBlob(Self.text.utf8, contentType: "text/plain").json]
        try peer.collection.save(&document)
        return document
    }

    private func expectBlobs(_ side: ActiveSide, like made: Document) throws {
        let document = try #require(try side.collection.document(id: "blobs"))
        #expect(document["photo"] == made["photo"])
        #expect(document["notes"] == made["notes"])
        #expect(document["_attachments"] == nil)
        let photo = try #require(document.blob("photo"))
        #expect(try side.database.blobContent(photo) == Data(0...255))
        let note = try #require(BlobReference(document["notes"]?[0]))
        #expect(try side.database.blobContent(note) == Data(Self.text.utf8))
    }

    @Test func `blobs of properties go over a CouchDB that compresses them, and back`() async throws {
        let couch = try await FakeCouch()
        try await couch.send("PUT", "/db")
        let made = try saveBlobs()
        try await hub.synchronize(with: peer)
        try await sync(hub, couch.url())
        #expect(try await couch.send("GET", "/db/blobs/blob_%2Fnotes%2F0").text == Self.text)

        // To others, who have none of it.
        let (otherHub, other) = (try ActiveSide("otherhub"), try ActiveSide("other"))
        try await sync(otherHub, couch.url())
        try await otherHub.synchronize(with: other)
        try expectBlobs(otherHub, like: made)
        try expectBlobs(other, like: made)

        // Their edit, and one of the CouchDB.
        var edited = try #require(try other.collection.document(id: "blobs"))
        edited["n"] = 1
        try other.collection.save(&edited)
        try await otherHub.synchronize(with: other)
        try await sync(otherHub, couch.url())
        var edit = try await json(couch, "/db/blobs")
        #expect(edit["n"] == 1)
        edit["m"] = 2
        #expect(try await couch.send("PUT", "/db/blobs", JSONText(canonical: edit).description).status == 201)
        try await sync(hub, couch.url())
        try await hub.synchronize(with: peer)
        for side in [hub, peer] { try expectBlobs(side, like: made) }
        let last = try #require(try peer.collection.document(id: "blobs"))
        #expect(last["n"] == 1)
        #expect(last["m"] == 2)
    }

    @Test func `blobs of properties go over our listener and back`() async throws {
        let remote = try await PassiveSide()
        let made = try saveBlobs()
        try await hub.synchronize(with: peer)
        try await sync(hub, remote.url())
        let other = try ActiveSide("other")
        try await sync(other, remote.url())
        try expectBlobs(other, like: made)
        var edited = try #require(try other.collection.document(id: "blobs"))
        edited["n"] = 1
        try other.collection.save(&edited)
        try await sync(other, remote.url())
        try await sync(hub, remote.url())
        try await hub.synchronize(with: peer)
        try expectBlobs(peer, like: made)
        #expect(try peer.collection.document(id: "blobs")?["n"] == 1)
        await remote.listener.stop()
    }

    @Test func `blobs that an edit leaves as they are are not sent again`() async throws {
        let couch = try await FakeCouch()
        try await couch.send("PUT", "/db")
        var document = try saveBlobs()
        try await sync(peer, couch.url())
        document["n"] = 1
        document["photo"] = try peer.database.saveBlob([1, 2, 3], contentType: "image/jpeg").json
        try peer.collection.save(&document)
        try await sync(peer, couch.url())
        // A CouchDB keeps the position of what came without content.
        let attachments = try await json(couch, "/db/blobs")["_attachments"]
        #expect(attachments?["blob_/notes/0"]?["revpos"] == 1)
        #expect(attachments?["blob_/photo"]?["revpos"] == 2)
        #expect(try await couch.send("GET", "/db/blobs/blob_%2Fnotes%2F0").text == Self.text)
        #expect(try await couch.send("GET", "/db/blobs/blob_%2Fphoto").body == [1, 2, 3])
    }

    private func expectReplaced(_ side: ActiveSide) throws {
        let document = try #require(try side.collection.document(id: "blobs"))
        #expect(document["_attachments"] == nil)
        let photo = try #require(document.blob("photo"))
        #expect(photo.length == 4)
        #expect(photo.contentType == "image/png")
        #expect(try side.database.blobContent(photo) == Data("once".utf8))
        let note = try #require(BlobReference(document["notes"]?[0]))
        #expect(try side.database.blobContent(note) == Data((Self.text + Self.text).utf8))
    }

    @Test func `attachments that a CouchDB replaced are the new content of the blobs, on both wires`()
        async throws
    {
        let couch = try await FakeCouch()
        try await couch.send("PUT", "/db")
        _ = try saveBlobs()
        try await hub.synchronize(with: peer)
        try await sync(hub, couch.url())
        for (name, type, content) in [
            ("photo", "image/png", "once"), ("notes%2F0", "text/plain", Self.text + Self.text),
        ] {
            let revision = try #require(try await json(couch, "/db/blobs")["_rev"]?.string)
            let client = RawClient(port: couch.port)
            let answer = try await offPool {
                try client.send(
                    "PUT",
                    "/db/blobs/blob_%2F\(name)?rev=\(revision)",
                    [("Content-Type", type)],
                    body: Array(content.utf8)
                )
            }
            #expect(answer.status < 300, "\(answer.text)")
        }
        try await sync(hub, couch.url())
        try await hub.synchronize(with: peer)
        for side in [hub, peer] { try expectReplaced(side) }
        let other = try ActiveSide("other")
        try await sync(other, couch.url())
        try expectReplaced(other)
    }

    @Test func `attachments that a client of our listener replaced are the new content of the blobs`()
        async throws
    {
        let remote = try await PassiveSide()
        _ = try saveBlobs()
        try await sync(peer, remote.url())
        let first = try await remote.send("GET", "/remote/blobs").json
        // One by itself, one in the document.
        let client = try remote.client
        let put = try await offPool {
            try client.send(
                "PUT",
                "/remote/blobs/blob_/photo?rev=\(first["_rev"]?.string ?? "")",
                [("Content-Type", "image/png")],
                body: Array("once".utf8)
            )
        }
        #expect(put.status == 201, "\(put.text)")
        var second = try await remote.send("GET", "/remote/blobs").json
        #expect(second["photo"]?["length"] == 4)
        #expect(second["photo"]?["content_type"] == "image/png")
        #expect(second["_attachments"]?.object?.count == 2)
        let content = Data((Self.text + Self.text).utf8).base64EncodedString()
        second["_attachments"]?["blob_/notes/0"] = ["content_type": "text/plain", "data": .string(content)]
        let edit = try await remote.send("PUT", "/remote/blobs", JSONText(canonical: second).description)
        #expect(edit.status == 201, "\(edit.text)")
        #expect(try await remote.send("GET", "/remote/blobs/blob_/photo").text == "once")
        try await sync(peer, remote.url())
        try await hub.synchronize(with: peer)
        for side in [hub, peer] { try expectReplaced(side) }
        await remote.listener.stop()
    }

    @Test func `an attachment stays whose property a client has taken away`() async throws {
        let remote = try await PassiveSide()
        _ = try saveBlobs()
        try await sync(peer, remote.url())
        var document = try await remote.send("GET", "/remote/blobs").json
        document["photo"] = nil
        let edit = try await remote.send("PUT", "/remote/blobs", JSONText(canonical: document).description)
        #expect(edit.status == 201, "\(edit.text)")
        #expect(try await remote.send("GET", "/remote/blobs/blob_/photo").body == Array(0...255))
        try await sync(peer, remote.url())
        let pulled = try #require(try peer.collection.document(id: "blobs"))
        #expect(pulled["photo"] == nil)
        let kept = try #require(pulled.attachment("blob_/photo"))
        #expect(try peer.database.blobContent(kept) == Data(0...255))
        await remote.listener.stop()
    }

    @Test func `a blob that a client names without content must be in the listener's database`() async throws
    {
        let remote = try await PassiveSide()
        let made = try saveBlobs()
        let photo = try #require(made["photo"])
        let document: JSONValue = [
            "_rev": "1-a", "photo": photo,
            "_attachments": [
                "blob_/photo": ["stub": true, "content_type": "image/jpeg", "digest": photo["digest"] ?? nil]
            ],
        ]
        let text = JSONText(canonical: document).description
        let answer = try await remote.send("PUT", "/remote/x?new_edits=false", text)
        #expect(answer.status == 412, "\(answer.text)")
        _ = try remote.database.saveBlob([UInt8](0...255))
        let again = try await remote.send("PUT", "/remote/x?new_edits=false", text)
        #expect(again.status == 201, "\(again.text)")
        await remote.listener.stop()
    }
}
