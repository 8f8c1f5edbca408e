import Foundation
import Loveseat
import PhotoDropCore
import PhotoDropKit
import Testing

@Suite struct FilterTests {
    private let peer = PeerIdentity(username: "drop", name: "connection-1")

    private func filter(
        isForOneSender: Bool = false,
        free: UInt64 = 10_000,
        _ change: (inout ReceiverLimits) -> Void = { _ in }
    )
        -> DropFilter
    {
        var limits = ReceiverLimits()
        (limits.freeBytes, limits.photos, limits.otherDocuments, limits.photoBytes) = (1_000, 2, 2, 5_000)
        change(&limits)
        return DropFilter(limits: limits, isForOneSender: isForOneSender, allowsRecall: false) { free }
    }

    private func photo(_ id: String, length: Int? = 100, digest: Character = "A", sender: Int = 1) -> Document
    {
        var blob: JSONValue = [
            "@type": "blob", "digest": .string("sha1-\(String(repeating: digest, count: 26))A="),
        ]
        if let length { blob["length"] = JSONValue(length) }
        return Document(
            id: id,
            ["photo": blob, "name": "x.jpg", "sender": .string("000000000000000\(sender)")]
        )
    }

    @Test func numberOfDocuments() {
        let filter = filter()
        #expect(filter.refusal(peer, photo("a"), []) == nil)
        #expect(filter.refusal(peer, photo("b"), []) == nil)
        #expect(filter.refusal(peer, photo("b"), []) == nil)
        #expect(filter.refusal(peer, photo("c"), [])?.code == .httpForbidden)
        for number in 0..<2 { #expect(filter.refusal(peer, Document(id: "\(number)", [:]), []) == nil) }
        #expect(filter.refusal(peer, Document(id: "x", [:]), [])?.code == .httpForbidden)
    }

    @Test func sizes() {
        let filter = filter()
        #expect(filter.refusal(peer, photo("a", length: 5_001), [])?.code == .tooLarge)
        #expect(filter.refusal(peer, photo("b", length: nil), [])?.code == .httpForbidden)
        let large = Document(id: "c", ["text": .string(String(repeating: "x", count: 70_000))])
        #expect(filter.refusal(peer, large, [])?.code == .tooLarge)
        #expect(self.filter(free: 1_099).refusal(peer, photo("d"), [])?.code == .diskFull)
        #expect(self.filter(free: 1_100).refusal(peer, photo("d"), []) == nil)
    }

    @Test func announcements() {
        let filter = filter()
        func refusal(_ id: String, _ attachment: JSONValue) -> LoveseatError.Code? {
            let document = Document(id: id, ["_attachments": ["x.jpg": attachment]])
            return filter.couchDBRefusal(peer, document, [])?.code
        }
        #expect(refusal("a", ["length": 5_001]) == .tooLarge)
        #expect(refusal("a", ["content_type": "image/jpeg"]) == .httpForbidden)
        #expect(refusal("a", ["length": 10_000]) == .tooLarge)
        // What is only announced does not count.
        for number in 0..<5 { #expect(refusal("\(number)", ["length": 100]) == nil) }
        for number in 0..<3 {
            let digest = "sha1-\(String(repeating: "A", count: 25))\(number)A="
            let stored: JSONValue = ["length": 100, "digest": .string(digest), "stub": true]
            #expect(refusal("\(number)", stored) == (number < 2 ? nil : .httpForbidden))
        }
        #expect(filter.couchDBRefusal(peer, Document(id: "0"), .deleted)?.code == .httpForbidden)
    }

    @Test func changes() {
        let filter = filter()
        #expect(filter.refusal(peer, photo("a"), []) == nil)
        #expect(filter.refusal(peer, photo("a", digest: "B"), [])?.code == .httpForbidden)
        #expect(filter.refusal(peer, photo("a"), .deleted)?.code == .httpForbidden)
    }

    @Test func thumbnailsMayChange() {
        let filter = filter(free: 1_500)
        func withThumbnail(_ digest: Character, length: Int = 50) -> Document {
            let thumbnail: JSONValue = [
                "@type": "blob", "digest": .string("sha1-\(String(repeating: digest, count: 26))A="),
                "length": JSONValue(length),
            ]
            var document = photo("a")
            document["thumb"] = thumbnail
            return document
        }
        #expect(filter.refusal(peer, withThumbnail("C"), []) == nil)
        #expect(filter.refusal(peer, photo("a"), []) == nil)
        #expect(filter.refusal(peer, withThumbnail("D"), []) == nil)
        // What is new has to fit.
        #expect(filter.refusal(peer, withThumbnail("E", length: 600), [])?.code == .diskFull)
        #expect(filter.refusal(peer, withThumbnail("C"), []) == nil)
        #expect(filter.refusal(peer, photo("a", digest: "B"), [])?.code == .httpForbidden)
    }

    @Test func oneSender() {
        let filter = filter(isForOneSender: true)
        #expect(filter.refusal(peer, photo("a", sender: 1), []) == nil)
        #expect(filter.refusal(peer, photo("b", sender: 2), [])?.code == .httpForbidden)
        #expect(filter.sender(ofConnection: "connection-1")?.text == "0000000000000001")
    }
}

@Suite struct RefusalTests {
    @Test func onlyMissingFilesAreMissing() async throws {
        let scratch = try SessionTests.Scratch()
        let note = try scratch.write("note.txt", Array("not a photo".utf8))
        let shelf = try PhotoShelf(sender: SenderID(bytes: Array(1...8)))
        let missing = await shelf.add(FileFinder.expand(["\(note).none"])).refusals
        let both = await shelf.add(FileFinder.expand([note, "\(note).none"])).refusals
        await shelf.remove()
        #expect(missing.map(\.reason) == ["No such file or directory"])
        #expect(PhotoShelf.nothingToSend(missing).kind == .notFound)
        #expect(PhotoShelf.nothingToSend(both).kind == .partial)
        #expect(PhotoShelf.nothingToSend([]).kind == .partial)
    }
}

@Suite struct EventTests {
    @Test func readersMissNothing() async {
        let hub = EventHub()
        hub.publish(.gone(id: "1"))
        hub.publish(.remark("not kept"))
        hub.publish(.gone(id: "2"))
        let (missed, live) = hub.subscribe(after: 1)
        #expect(missed.map(\.number) == [2])
        hub.publish(.gone(id: "3"))
        hub.finish()
        var numbers: [Int?] = []
        for await entry in live { numbers.append(entry.number) }
        #expect(numbers == [3])
    }

    @Test func slowReadersAreCut() async {
        let hub = EventHub()
        let (_, live) = hub.subscribe(after: 0)
        for number in 0..<EventHub.maximumWaiting + 10 { hub.publish(.gone(id: "\(number)")) }
        #expect(hub.readerCount == 0)
        var count = 0
        for await _ in live { count += 1 }
        #expect(count == EventHub.maximumWaiting)
        #expect(hub.subscribe(after: count).missed.count == 10)
    }

    @Test(
        arguments: [
            ("bytes=0-9", 0..<10), ("bytes=90-", 90..<100), ("bytes=-5", 95..<100), ("bytes=-500", 0..<100),
            ("bytes=50-999", 50..<100), ("bytes=100-", 0..<0), ("bytes=5-1", nil), ("lines=1-2", nil),
            ("bytes=0-1,3-4", nil),
        ] as [(String, Range<UInt64>?)]
    )
    func ranges(_ header: String, _ expected: Range<UInt64>?) {
        #expect(PhotoResponse.range(header, length: 100) == expected)
    }
}
