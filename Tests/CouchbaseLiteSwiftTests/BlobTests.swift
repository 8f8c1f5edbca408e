import CouchbaseLiteSwift
import Foundation
import LoveseatTesting
import Testing

@Suite(.ownThreads) struct BlobTests {
    private let world: World
    private let content = Data("hello".utf8)
    private let digest = "sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00="

    init() throws { world = try World() }

    @Test func `a blob has its content before and after it is saved, and its digest after`() throws {
        let blob = Blob(contentType: "text/plain", data: content)
        #expect(blob.content == content)
        #expect(blob.length == 5)
        let document = MutableDocument(id: "tower").setBlob(blob, forKey: "note")
        let stored = try world.reloaded(document)
        #expect(blob.digest == digest)
        #expect(blob.content == content)
        let read = try #require(stored.blob(forKey: "note"))
        #expect(read.content == content)
        #expect(read.content == content)
        #expect(read.contentType == "text/plain")
        #expect(read.digest == digest)
        #expect(read == blob)
        #expect(stored.value(forKey: "note") is Blob)
        #expect(stored.toDictionary()["note"] is Blob)
        #expect(stored.toJSON().contains(#""digest":"\#(digest)""#))
        let expected =
            #"{"@type":"blob","content_type":"text/plain","digest":"\#(digest)","length":5}"#
        #expect(read.toJSON() == expected)
    }

    @Test func `streams and files are read, and can be read again`() throws {
        let large = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0) })
        let file = URL(filePath: "\(world.scratch.path)/large.bin")
        try large.write(to: file)
        let blobs = [
            Blob(contentType: "a/b", contentStream: InputStream(data: large)),
            try Blob(contentType: "a/b", fileURL: file),
            Blob(contentType: "a/b", data: large),
        ]
        for blob in blobs {
            #expect(blob.length == 300_000)
            #expect(blob.content == large)
            #expect(blob.content == large)
            let stored = try world.reloaded(MutableDocument().setBlob(blob, forKey: "blob"))
            #expect(stored.blob(forKey: "blob")?.content == large)
            #expect(blob.content == large)
            let stream = try #require(blob.contentStream)
            stream.open()
            var piece = [UInt8](repeating: 0, count: 4)
            #expect(stream.read(&piece, maxLength: 4) == 4)
            #expect(piece == [0, 1, 2, 3])
            stream.close()
        }
        #expect(Set(blobs).count == 1)
    }

    @Test func `a file that cannot be read makes no blob`() {
        expectError(CBLError.cantOpenFile) {
            try Blob(contentType: "a/b", fileURL: URL(filePath: "\(world.scratch.path)/nowhere"))
        }
    }

    @Test func `raw data and blobs' properties become blobs`() throws {
        let document = MutableDocument().setValue(content, forKey: "data")
        let stored = try world.reloaded(document)
        let blob = try #require(stored.blob(forKey: "data"))
        #expect(blob.contentType == "application/octet-stream")
        let copy = MutableDocument().setValue(blob.properties, forKey: "copy")
        #expect(copy.value(forKey: "copy") is Blob)
        #expect(try world.reloaded(copy).blob(forKey: "copy")?.content == content)
        let text = try MutableDocument(json: #"{"b":\#(blob.toJSON())}"#)
        #expect(text.blob(forKey: "b")?.digest == digest)
        #expect(try world.reloaded(text).blob(forKey: "b")?.content == content)
        #expect(text.blob(forKey: "b")?.content == content)
    }

    @Test func `a blob of another database is not saved`() throws {
        let blob = Blob(contentType: "text/plain", data: content)
        _ = try world.reloaded(MutableDocument().setBlob(blob, forKey: "b"))
        let other = try Database(name: "other", config: world.config)
        let collection = try other.defaultCollection()
        let document = MutableDocument().setBlob(blob, forKey: "b")
        expectError(CBLError.unexpectedError) { try collection.save(document: document) }
        #expect(collection.count == 0)
    }

    @Test func `a blob is saved and found without a document, until the database is compacted`() throws {
        let blob = Blob(contentType: "text/plain", data: content)
        try world.database.saveBlob(blob: blob)
        let found = try #require(try world.database.getBlob(properties: blob.properties))
        #expect(found.content == content)
        #expect(found.contentType == "text/plain")
        var unknown = blob.properties
        unknown["digest"] = "sha1-" + Data(count: 20).base64EncodedString()
        #expect(try world.database.getBlob(properties: unknown) == nil)
        try world.database.performMaintenance(type: .compact)
        #expect(try world.database.getBlob(properties: blob.properties) == nil)
    }

    @Test func `properties are those of a blob only with type and digest`() {
        #expect(Blob.isBlob(properties: ["@type": "blob", "digest": digest]))
        #expect(
            Blob.isBlob(properties: ["@type": "blob", "digest": digest, "length": 5, "content_type": "a/b"])
        )
        #expect(!Blob.isBlob(properties: ["@type": "blob"]))
        #expect(!Blob.isBlob(properties: ["digest": digest]))
        #expect(!Blob.isBlob(properties: ["@type": "blob", "digest": 7]))
        #expect(!Blob.isBlob(properties: ["@type": "blob", "digest": digest, "length": "5"]))
        #expect(!Blob.isBlob(properties: ["@type": "blob", "digest": digest, "content_type": 5]))
    }

    @Test func `foreign coders refuse blobs`() {
        let blob = Blob(contentType: "text/plain", data: content)
        expectError(CBLError.encodingError) { try JSONEncoder().encode([blob]) }
        expectError(CBLError.decodingError) { try JSONDecoder().decode([Blob].self, from: Data("[{}]".utf8)) }
    }
}
