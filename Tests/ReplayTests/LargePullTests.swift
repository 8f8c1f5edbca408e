import LoveseatBLIP
import LoveseatBLIPReplication
import LoveseatModel
import LoveseatReplication
import LoveseatStorage
import LoveseatTesting
import Testing

/// A gateway sends every revision that it was asked for at once, interleaved (gateway.md 52).
struct LargePullTests {
    private let ours: ReplayedPeer

    init() throws { ours = try ReplayedPeer() }

    private static func body(_ bytes: Int, seed: UInt64) -> String {
        var generator = SeededGenerator(seed: seed)
        let text = generator.bytes(bytes / 2).map { String($0, radix: 16) }.joined()
        return #"{"text":"\#(text)"}"#
    }

    /// Announces documents in lists of 200 and sends all that an answer asks for at once; returns the most that were asked
    /// for at a time.
    private func pull(
        _ count: Int,
        on line: ReplayedPeer.Line,
        announcing size: Int? = nil,
        _ body: (Int) -> String
    ) throws -> Int {
        for start in stride(from: 0, to: count, by: 200) {
            let entries = (start..<min(start + 200, count)).map { number in
                #"[\#(number + 1),"d\#(number)","1-aa"\#(size.map { ",0,\($0)" } ?? "")]"#
            }
            let list = Message(
                ["Profile": "changes"],
                body: Array("[\(entries.joined(separator: ","))]".utf8)
            )
            try line.puppet.send(list, tag: UInt64(start + 1))
        }
        try line.runUntilQuiet()
        var most = 0
        var next = 0
        while next < count {
            let answered = stride(from: 0, to: count, by: 200).filter { line.answers[UInt64($0 + 1)] != nil }
            let end = min((answered.max() ?? -200) + 200, count)
            guard end > next else { break }
            most = max(most, end - next)
            for number in next..<end {
                let properties: MessageProperties = [
                    "Profile": "rev", "id": "d\(number)", "rev": "1-aa", "sequence": "\(number + 1)",
                ]
                let bytes = Array(body(number).utf8)
                try line.puppet.send(Message(properties, body: bytes, noReply: true), tag: nil)
            }
            next = end
            try line.runUntilQuiet()
        }
        return most
    }

    @Test func `500 documents of 90 kB that come interleaved arrive, and at most 200 are asked for`() throws {
        let line = try ours.activeLine { $0.isContinuous = true }
        let body = Self.body(90_000, seed: 1)
        let most = try pull(500, on: line) { _ in body }
        #expect(most <= 200)
        #expect(try ours.count() == 500)
        #expect(line.failure == nil)
    }

    @Test func `fewer documents are asked for when they are announced as large`() throws {
        let line = try ours.activeLine { $0.isContinuous = true }
        for start in [0, 10] {
            let entries = (start..<start + 10).map { #"[\#($0 + 1),"d\#($0)","1-aa",0,1000000]"# }
            let list = Message(
                ["Profile": "changes"],
                body: Array("[\(entries.joined(separator: ","))]".utf8)
            )
            try line.puppet.send(list, tag: UInt64(start + 1))
        }
        try line.runUntilQuiet()
        #expect(line.answers[1] != nil)
        #expect(line.answers[11] == nil)
        for number in 0..<10 {
            let properties: MessageProperties = [
                "id": "d\(number)", "rev": "1-aa", "sequence": "\(number + 1)",
            ]
            try line.tell("rev", properties, "{}")
        }
        #expect(line.answers[11] != nil)
    }

    @Test func `documents that wait for their blobs wait until these are here, whatever they weigh`() throws {
        let line = try ours.activeLine { $0.isContinuous = true }
        let text = Self.body(500_000, seed: 2).dropFirst().dropLast()
        let blobs = (0..<100).map { Array("blob \($0)".utf8) }
        let digests = blobs.map { BlobDigest(sha1: Hashing.sha1($0)).text }
        _ = try pull(100, on: line) { number in
            #"{\#(text),"b":{"@type":"blob","digest":"\#(digests[number])"}}"#
        }
        #expect(line.failure == nil)
        var asked = line.take("getAttachment")
        while !asked.isEmpty {
            for request in asked {
                let digest = request.message.properties["digest"] ?? ""
                let index = try #require(digests.firstIndex(of: digest))
                try line.puppet.reply(Message(body: blobs[index]), to: request.number)
            }
            try line.runUntilQuiet()
            asked = line.take("getAttachment")
        }
        #expect(try ours.count() == 100)
        #expect(line.failure == nil)
    }

    @Test func `a document that is too large fails alone`() throws {
        let line = try ours.activeLine()
        _ = try line.ask("changes", [:], #"[[1,"large","1-aa"],[2,"small","1-aa"]]"#).get()
        let text = String(repeating: "x", count: 25 << 20)
        let properties: MessageProperties = ["id": "large", "rev": "1-aa", "sequence": "1"]
        #expect(code(try line.ask("rev", properties, #"{"text":"\#(text)"}"#)) == "HTTP/413")
        try line.tell("rev", ["id": "small", "rev": "1-aa", "sequence": "2"], "{}")
        try line.tell("changes", [:], "null")
        try line.takeCheckpoints()
        #expect(try ours.count() == 1)
        #expect(try ours.record("small") != nil)
        #expect(line.failure == nil)
        #expect(line.isClosed)
    }

    @Test func `a blob ends at the length that its document states`() throws {
        let line = try ours.activeLine()
        _ = try line.ask("changes", [:], #"[[1,"a","1-aa"],[2,"b","1-aa"]]"#).get()
        let blob = [UInt8](repeating: 7, count: 5 << 20)
        let stub = #"{"@type":"blob","digest":"\#(BlobDigest(sha1: Hashing.sha1(blob)))","length":1000}"#
        try line.tell("rev", ["id": "a", "rev": "1-aa", "sequence": "1"], #"{"b":\#(stub)}"#)
        try line.tell("rev", ["id": "b", "rev": "1-aa", "sequence": "2"], "{}")
        let request = try #require(line.take("getAttachment").first)
        try line.puppet.reply(Message(body: blob), to: request.number)
        try line.runUntilQuiet()
        #expect(try ours.record("a") == nil)
        #expect(try ours.record("b") != nil)
        #expect(line.failure == nil)
    }
}
