import Foundation
import LoveseatTesting
import Testing

/// The fuzzers' targets with seeded bytes, as a check that they run, and with all inputs that once failed
/// (Fuzzing/FailCases). Fuzzing/ has the fuzzers.
struct FuzzTests {
    /// The stored inputs, as `target/name`.
    private static let failCases: [String] = {
        let files = FileManager.default.subpaths(atPath: failCasesFolder.path) ?? []
        return files.filter { $0.contains("/") }.sorted()
    }()

    private static let failCasesFolder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Fuzzing/FailCases").standardized

    @Test(arguments: failCases) func `an input that once failed does no harm`(_ name: String) throws {
        let target = try #require(FuzzTargets.named[String(name.prefix { $0 != "/" })])
        target(Array(try Data(contentsOf: Self.failCasesFolder.appending(path: name))))
    }

    @Test func `inputs that once failed are found`() {
        let targets = Set(Self.failCases.map { String($0.prefix { $0 != "/" }) })
        #expect(targets.isSuperset(of: ["delta", "http", "pairing", "response", "tree"]))
    }

    /// Pieces with lengths before them, of bytes that are likely to mean something.
    private static func pieces(_ generator: inout SeededGenerator) -> [UInt8] {
        let words = [
            "{\"a\":1}", "[]", "[[1,\"d\",\"1-abcd\"]]", "[[\"d\",\"1-abcd\",\"\"]]", "id=d\n",
            "rev=1-abcd\n", "sequence=1\n",
            "collection=0\n", "client=cp-x\n", "history=1-ab,1-cd\n", "deleted=1\n",
            "digest=sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n",
            "since=5\n", "batch=0\n", "{\"collections\":[\"_default\"],\"checkpoint_ids\":[\"x\"]}",
            "noconflicts=x\n", "\u{0}", "rev=4294967295-aa\n", "history=4294967295-aa,4294967294-aa\n",
            "since=18446744073709551615\n", "maxHistory=9223372036854775807\n",
            "batch=-9223372036854775808\n",
            "[[18446744073709551615,\"d\",\"4294967295-aa\",9223372036854775807,9223372036854775807]]",
            "[[\"d\",\"4294967294-aa\",\"4294967295-aa\",9223372036854775807]]",
            "[9223372036854775807,-9223372036854775808]", "loveseat_offset=18446744073709551615\n",
            "{\"local\":18446744073709551615,\"localCompleted\":[1,18446744073709551615]}",
        ]
        var bytes: [UInt8] = []
        for _ in 0..<generator.int(1...12) {
            var piece = [UInt8(generator.int(0...255)), UInt8(generator.int(0...255))]
            for _ in 0..<generator.int(0...8) {
                piece +=
                    generator.chance(0.8)
                    ? Array(generator.pick(words).utf8) : generator.bytes(generator.int(0...40))
            }
            bytes += [UInt8(piece.count >> 8), UInt8(piece.count & 255)] + piece
        }
        return bytes
    }

    @Test func `a passive peer survives any messages`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<300 { FuzzTargets.passive(Self.pieces(&generator)) }
    }

    @Test func `an active peer survives any messages and answers`() {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<300 { FuzzTargets.active(Self.pieces(&generator)) }
    }

    @Test func `a tree is refused, or has a current revision and is the same after writing and reading`() {
        var generator = SeededGenerator(seed: 13)
        let good =
            #"{"bodies":{"2-dd":{"a":1}},"closed":["2-ee"],"copies":["4-00000002dd00000000aa00000123456789abcdef"],"current":"3-bb","deleted":["2-ee"],"lines":[["3-bb","2-cc","1-aa"],["2-dd","1-aa"],["2-ee","1-ab"],["4-00000002dd00000000aa00000123456789abcdef","3-bb"]],"vectors":{"3-bb":"18e9f1f030000000@ZwCGnI/3SA40pwpwiwKHAA; 18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmw"}}"#
        let stored: [UInt8] =
            [
                2, 3, 0, 2, 2, 1, 0xBB, 0, 0, 0, 1, 1, 0xAA, 0, 1, 0, 2, 1, 0xCC, 3, 0x7B, 0x7D, 0, 1, 2, 1,
                0xCC, 0,
            ]
        for round in 0..<6_000 {
            var bytes = round % 2 == 0 ? Array(good.utf8) : stored
            for _ in 0..<generator.int(0...4) {
                let index = generator.int(0...bytes.count - 1)
                switch generator.int(0...3) {
                case 0: bytes[index] = UInt8(generator.int(0...255))
                case 1: bytes[index] = generator.pick(Array("0123456789abcdef\"[]{},:-".utf8))
                case 2: bytes.remove(at: index)
                default: bytes.insert(contentsOf: bytes[index...].prefix(generator.int(1...20)), at: index)
                }
            }
            if !bytes.isEmpty { FuzzTargets.tree(bytes) }
        }
    }

    @Test func `a delta is applied or refused, and leads where it should`() {
        var generator = SeededGenerator(seed: 12)
        let words = [
            "{\"a\":1}", "{\"a\":[1,{\"b\":\"text\"},null]}", "{\"a\":\"a longer text that changes\"}",
            "{\"a\":\"a longer text that changed\"}", "[1,2,3]", "{}", "{\"a\":[]}",
            "{\"a\":{\"0\":2,\"1-\":[]}}",
            "{\"a\":[\"=3-1+1|x\",0,2]}", "{\"a\":[\"=9999999999999999999\",0,2]}", "[[]]", "5",
        ]
        for _ in 0..<5_000 {
            var bytes: [UInt8] = []
            for _ in 0..<2 {
                var word = Array(generator.pick(words).utf8)
                if generator.chance(0.2) {
                    word[generator.int(0...word.count - 1)] = UInt8(generator.int(32...126))
                }
                bytes += [0, UInt8(word.count)] + word
            }
            FuzzTargets.delta(bytes)
        }
    }

    @Test func `a WebSocket hears the same however it is cut`() {
        var generator = SeededGenerator(seed: 13)
        let words: [[UInt8]] = [
            [0x82, 0x81, 1, 2, 3, 4, 5], [0x02, 0x80, 0, 0, 0, 0], [0x80, 0x80, 0, 0, 0, 0], [0x82, 1, 7],
            [0x81, 0x81, 0, 0, 0, 0, 0x61], [0x89, 0x80, 0, 0, 0, 0], [0x88, 0x82, 0, 0, 0, 0, 3, 0xE8],
            [0x8A, 0],
        ]
        for _ in 0..<3_000 {
            var bytes = [UInt8(generator.int(0...1))]
            for _ in 0..<generator.int(1...8) {
                bytes +=
                    generator.chance(0.9) ? generator.pick(words) : generator.bytes(generator.int(0...20))
            }
            FuzzTargets.webSocket(bytes)
        }
    }

    @Test func `any request gets an answer, and any answer an end`() {
        var generator = SeededGenerator(seed: 14)
        let words = [
            "GET /db/_blipsync HTTP/1.1\r\n", "HTTP/1.1 101 Yes\r\n", "Connection: Upgrade\r\n",
            "Upgrade: websocket\r\n",
            "Sec-WebSocket-Version: 13\r\n", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            "Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\n", "Authorization: Basic YTpi\r\n", "\r\n",
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", "Content-Length: 3\r\n", "abc", "\u{1}",
            "\u{9}\u{0}",
            "Transfer-Encoding: chunked\r\n", "HTTP/1.1 302 X\r\n", "Location: http://[::1]/x\r\n",
            "Set-Cookie: a=b\r\n",
        ]
        for _ in 0..<500 {
            let text = (0..<generator.int(1...12)).map { _ in generator.pick(words) }.joined()
            FuzzTargets.http(Array(text.utf8))
            FuzzTargets.response(Array(text.utf8))
        }
    }

    @Test func `a connection survives any frames`() {
        var generator = SeededGenerator(seed: 8)
        for _ in 0..<5_000 { FuzzTargets.blip(Self.pieces(&generator)) }
    }

    @Test func `a pairing code survives any text`() {
        var generator = SeededGenerator(seed: 10)
        let pin = String(repeating: "a", count: 64)
        let words = [
            "loveseat-pair:1?", "u=wss://a:1/b", "&", "p=\(pin)", "s=x", "u=", "%", "wss:", "[", "é",
        ]
        for _ in 0..<3_000 {
            let text = (0..<generator.int(1...8)).map { _ in generator.pick(words) }.joined()
            FuzzTargets.pairing(Array(text.utf8))
        }
        FuzzTargets.pairing(Array("loveseat-pair:1?u=wss://a:1/b&p=\(pin)&s=x".utf8))
    }

    @Test func `a version vector survives any text`() {
        var generator = SeededGenerator(seed: 15)
        let words = [
            "18e9f1f010000000@VVebVXiW0M4XZMR/7WRPmw", "2@ZwCGnI/3SA40pwpwiwKHAA", "1@ZwCGnI/3SA40pwpwiwKHAA",
            "2bb00000000@Revision+Tree+Encoding", "3@y90Q1yAAs6QGig6myZrsaw", ", ", "; ", ",", ";", " ",
            "2-bb",
            "1-aa", "1@*", "@", "-", "ffffffffffffffff@adsxl26tN7hcxCpJyV/Qbg",
        ]
        for _ in 0..<5_000 {
            let text = Array((0..<generator.int(1...7)).map { _ in generator.pick(words) }.joined().utf8)
            FuzzTargets.version(text)
            let rev = Array(generator.pick(words).utf8)
            FuzzTargets.version(
                [0, UInt8(rev.count)] + rev + [0, UInt8(truncatingIfNeeded: text.count)] + text
            )
            // The binary form of one version, changed.
            var bytes: [UInt8] = [0, 0x80, 0xC0, 0x80, 0x9F, 0xBE, 0xBA, 0x0C, 0x90] + rev.prefix(16)
            bytes[generator.int(0...bytes.count - 1)] = UInt8(generator.int(0...255))
            FuzzTargets.version(bytes)
        }
    }

    @Test func `the scanner survives any text`() {
        var generator = SeededGenerator(seed: 9)
        let words = [
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"\\u00e9\"", "1", "-0.5e3", "true", "null", " ", "\\",
            "\u{1}",
        ]
        for _ in 0..<5_000 {
            let text = (0..<generator.int(1...30)).map { _ in generator.pick(words) }.joined()
            FuzzTargets.json(Array(text.utf8))
        }
    }
}
