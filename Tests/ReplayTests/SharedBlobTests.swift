import LoveseatBLIP
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import Testing

/// Documents that need the same blobs at the same time.
struct SharedBlobTests {
    private let ours: ReplayedPeer

    init() throws { ours = try ReplayedPeer() }

    private static func body(_ blob: [UInt8]) -> String {
        let digest = BlobDigest(sha1: Hashing.sha1(blob))
        return #"{"photo":{"@type":"blob","digest":"\#(digest)","length":\#(blob.count)}}"#
    }

    /// Announces documents and sends those that are asked for; then the blobs, as they are asked for.
    private func pull(_ documents: [(id: String, blob: [UInt8])], missing: Set<String> = []) throws
        -> ReplayedPeer.Line
    {
        let line = try ours.activeLine()
        for start in stride(from: 0, to: documents.count, by: 200) {
            let part = documents[start..<min(start + 200, documents.count)]
            let list = part.enumerated().map { #"[\#(start + $0.offset + 1),"\#($0.element.id)","1-aa"]"# }
            try line.tell("changes", [:], "[\(list.joined(separator: ","))]", wantsReply: true)
            for (index, document) in part.enumerated() {
                let properties: MessageProperties = [
                    "id": document.id, "rev": "1-aa", "sequence": "\(start + index + 1)",
                ]
                try line.tell("rev", properties, Self.body(document.blob))
            }
        }
        try line.tell("changes", [:], "null")
        let blobs = Dictionary(
            documents.map { (BlobDigest(sha1: Hashing.sha1($0.blob)).text, $0.blob) },
            uniquingKeysWith: { first, _ in first }
        )
        var asked = line.take("getAttachment")
        while !asked.isEmpty {
            for request in asked {
                let digest = request.message.properties["digest"] ?? ""
                if missing.contains(digest) {
                    try line.puppet.reply(ReplyError("HTTP", 404, "missing"), to: request.number)
                } else {
                    try line.puppet.reply(Message(body: try #require(blobs[digest])), to: request.number)
                }
            }
            try line.runUntilQuiet()
            asked = line.take("getAttachment")
        }
        try line.takeCheckpoints()
        return line
    }

    @Test(arguments: [2, 5, 6, 30, 500])
    func `documents that share one missing blob all arrive`(_ count: Int) throws {
        let blob = Array("the same photo".utf8)
        let line = try pull((0..<count).map { ("d\($0)", blob) })
        #expect(try ours.count() == count)
        #expect(line.failure == nil)
        #expect(line.isClosed)
    }

    @Test func `four documents with blobs of their own and two that share them all arrive`() throws {
        let blobs = (0..<4).map { Array("photo \($0)".utf8) }
        let own = blobs.enumerated().map { ("d\($0.offset)", $0.element) }
        let line = try pull(own + [("e0", blobs[0]), ("e1", blobs[3])])
        #expect(try ours.count() == 6)
        #expect(line.failure == nil)
        #expect(line.isClosed)
    }

    @Test func `documents whose shared blob the peer lacks fail, and the others arrive`() throws {
        let (lost, kept) = (Array("lost".utf8), Array("kept".utf8))
        let documents = (0..<12).map { ("d\($0)", $0 % 2 == 0 ? lost : kept) }
        let line = try pull(documents, missing: [BlobDigest(sha1: Hashing.sha1(lost)).text])
        #expect(try ours.count() == 6)
        #expect(line.failure == nil)
        #expect(line.isClosed)
    }
}
