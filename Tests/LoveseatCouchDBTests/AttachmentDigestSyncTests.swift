import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// How peers that replicate over CouchDB's wire recognise the content of attachments.
struct AttachmentDigestSyncTests {
    private let content: [UInt8] = Array("the content of an attachment".utf8)

    /// How a puller wants attachments to be named.
    enum Names: String, CaseIterable { case sha1, md5 }

    private func pull(_ active: ActiveSide, _ remote: PassiveSide, _ names: Names) async throws {
        var configuration = try active.configuration(CouchDBEndpoint(url: remote.url()), .pull)
        // This replaces what a replicator of ours sends.
        if names == .md5 { configuration.headers = ["Loveseat-Digests": "md5"] }
        let pass = try await active.replicate(configuration)
        #expect(pass.status.error == nil)
        #expect(pass.failed.isEmpty, "\(pass.failed)")
    }

    private func known(_ content: [UInt8], in database: Database) throws -> MD5Digest? {
        let digest = try #require(BlobDigest(AttachmentDigestTests.sha1(content)))
        return try database.store.blobs.md5s.known(digest)
    }

    @Test func `two Loveseats name contents as they are stored, and neither computes an MD5`() async throws {
        let (remote, active) = (try await PassiveSide(), try ActiveSide())
        let blob = try remote.database.saveBlob(content, contentType: "text/plain")
        try remote.database.defaultCollection().save(Document(id: "pulled", ["b": blob.json]))
        try active.save("pushed", ["b": try active.database.saveBlob(content + [0]).json])
        let pass = try await active.replicate(try remote.url(), .pushAndPull)
        #expect(pass.status.error == nil)
        #expect(pass.pulled == ["pulled"])
        #expect(pass.pushed == ["pushed"])
        #expect(try active.database.blobContent(blob) == Data(content))
        for database in [remote.database, active.database] {
            #expect(try known(content, in: database) == nil)
        }
        // Other clients still get it.
        let other = try await remote.send("GET", "/remote/pulled").json
        let digest = other["_attachments"]?["blob_/b"]?["digest"]?.string
        #expect(digest == AttachmentDigestTests.md5(content))
        #expect(try known(content, in: remote.database)?.text == digest)
        await remote.listener.stop()
    }

    @Test func `a proxy does not mix up the answers of clients that want different digests`() async throws {
        let remote = try await PassiveSide()
        let body: JSONValue = ["_attachments": ["a": AttachmentDigestTests.data(content)]]
        try await remote.send("PUT", "/remote/d", JSONText(canonical: body).description)
        for names in Names.allCases {
            let client = try remote.client
            let answer = try await offPool {
                try client.send("GET", "/remote/d", [("Loveseat-Digests", names.rawValue)])
            }
            let digest = answer.json["_attachments"]?["a"]?["digest"]?.string
            #expect(digest?.hasPrefix(names.rawValue) == true, "\(answer.text)")
            #expect(answer.all("vary").contains("Loveseat-Digests"))
        }
        #expect(try await !remote.send("GET", "/remote/d").all("vary").contains("Loveseat-Digests"))
        await remote.listener.stop()
    }

    @Test(arguments: Names.allCases)
    func `a pull transfers no content that an earlier revision here has`(_ names: Names) async throws {
        let (remote, active) = (try await PassiveSide(), try ActiveSide())
        let body: JSONValue = ["_attachments": ["a": AttachmentDigestTests.data(content)]]
        var rev = try await remote.send("PUT", "/remote/d", JSONText(canonical: body).description).json["rev"]
        try await pull(active, remote, names)
        // Edits, the second of which gives the attachment another name. The listener's contents are gone then: it can send none.
        for (number, name) in ["a", "z"].enumerated() {
            let stub: JSONValue = [
                "stub": true, "content_type": "image/png",
                "digest": .string(AttachmentDigestTests.md5(content)),
            ]
            let edit: JSONValue = ["_rev": rev ?? nil, "n": JSONValue(number), "_attachments": [name: stub]]
            let answer = try await remote.send("PUT", "/remote/d", JSONText(canonical: edit).description)
            #expect(answer.status == 201, "\(answer.text)")
            rev = answer.json["rev"]
            let folder = try remote.database.store.blobs.folder
            let moved = "\(folder)-away"
            try FileManager.default.moveItem(atPath: folder, toPath: moved)
            try await pull(active, remote, names)
            try FileManager.default.moveItem(atPath: moved, toPath: folder)
            let pulled = try #require(try active.collection.document(id: "d"))
            #expect(pulled["n"] == JSONValue(number))
            let attachment = try #require(pulled.attachment(name), "\(name)")
            #expect(try active.database.blobContent(attachment) == Data(content))
        }
        await remote.listener.stop()
    }

    @Test func `content that comes named by its MD5 is known by it from then on`() async throws {
        let (remote, active) = (try await PassiveSide(), try ActiveSide())
        let body: JSONValue = ["_attachments": ["a": AttachmentDigestTests.data(content)]]
        try await remote.send("PUT", "/remote/d", JSONText(canonical: body).description)
        try await pull(active, remote, .md5)
        #expect(try known(content, in: active.database)?.text == AttachmentDigestTests.md5(content))
        await remote.listener.stop()
    }

    @Test
    func `a database that was made before gets the MD5 of a large blob when it is asked for, and keeps it`()
        async throws
    {
        let remote = try await PassiveSide()
        // Larger than what is hashed at a time.
        let large = (0..<20 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let blob = try remote.database.saveBlob(large, contentType: "video/mp4")
        try remote.database.defaultCollection().save(Document(id: "d", ["b": blob.json]))
        #expect(try known(large, in: remote.database) == nil)
        let wanted = AttachmentDigestTests.md5(large)
        // All at once.
        try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let answer = try await remote.send("GET", "/remote/d").json
                    return answer["_attachments"]?["blob_/b"]?["digest"]?.string
                }
            }
            for try await digest in group { #expect(digest == wanted) }
        }
        let stored = try remote.database.store.write { try $0.knownMD5(of: blob.digest)?.text }
        #expect(stored == wanted)
        // Nobody reads the content again.
        let folder = try remote.database.store.blobs.folder
        try Data([0]).write(to: URL(filePath: "\(folder)/\(blob.digest.hexadecimalText)"))
        let again = try await remote.send("GET", "/remote/d").json
        #expect(again["_attachments"]?["blob_/b"]?["digest"]?.string == wanted)
        await remote.listener.stop()
    }
}
