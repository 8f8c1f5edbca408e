import CZlib
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Compressed content may have several members, one after another (RFC 1952 §2.2).
struct GzipMembersTests {
    /// One member.
    static func gzip(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var stream = z_stream()
        let size = Int32(MemoryLayout<z_stream>.size)
        guard deflateInit2_(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, size) == Z_OK
        else { return [] }
        defer { deflateEnd(&stream) }
        var input = Array(bytes)
        var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, uLong(bytes.count))) + 64)
        let made = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
                (stream.next_out, stream.avail_out) = (output.baseAddress, UInt32(output.count))
                _ = deflate(&stream, Z_FINISH)
                return output.count - Int(stream.avail_out)
            }
        }
        return Array(output.prefix(made))
    }

    /// The bytes as members, which end anywhere, some of them empty.
    private static func members(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        let cuts = (0..<random.int(0...4)).map { _ in random.int(0...bytes.count) }.sorted()
        var (made, start): ([UInt8], Int) = ([], 0)
        for cut in cuts + [bytes.count] {
            made += gzip(bytes[start..<cut])
            start = cut
        }
        return made
    }

    @Test func `all members of a body are read, and what is none of gzip's is refused`() async throws {
        let served = try await ServedDatabase()
        let headers = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")]
        for seed in PropertySeeds.of("GZIP", 30) {
            var random = SeededGenerator(seed: seed)
            let text = String(repeating: "é\(seed) ", count: random.pick([0, 1, 3_000, 60_000]))
            let plain = Array(#"{"x":"\#(text)"}"#.utf8)
            let whole = Self.members(plain, &random)
            let (body, isFine): ([UInt8], Bool) =
                switch random.int(0...5) {
                case 0: (whole + [0x1F], false)
                case 1: (whole + Array("garbage after it".utf8), false)
                case 2: (whole + whole.prefix(random.int(1...17)), false)
                case 3: (Array(whole.dropLast(random.int(1...8))), false)
                default: (whole, true)
                }
            let client = served.client
            let pieces = random.pick([1, 7, 1_000, 1 << 20])
            let chunks = stride(from: 0, to: body.count, by: max(pieces, body.count / 200)).map {
                Array(body[$0..<min($0 + max(pieces, body.count / 200), body.count)])
            }
            let answer = try await offPool {
                try client.send("PUT", "/main/d\(seed)", headers, chunks: chunks)
            }
            #expect(answer.status == (isFine ? 201 : 400), "seed \(seed): \(answer.text)")
            guard isFine else { continue }
            let stored = try await served.call("GET", "/main/d\(seed)").json["x"]?.string
            #expect(stored?.isExactly(text) == true, "seed \(seed)")
        }
        await served.listener.stop()
    }

    @Test func `all members of a compressed attachment are read`() async throws {
        let served = try await ServedDatabase()
        for seed in PropertySeeds.of("GZIP", 20) {
            var random = SeededGenerator(seed: seed)
            let plain = Array(String(repeating: "line \(seed)\n", count: random.pick([1, 500, 30_000])).utf8)
            let packed = Self.members(plain, &random)
            let attachment: JSONValue = [
                "data": .string(Base64.encode(packed)), "encoding": "gzip", "content_type": "text/plain",
            ]
            let document: JSONValue = [
                "_id": .string("a\(seed)"), "_rev": "1-aa", "_attachments": ["a": attachment],
            ]
            let answer = try await served.call(
                "POST",
                "/main/_bulk_docs",
                ["new_edits": false, "docs": [document]]
            )
            #expect(answer.json == [])
            let body = try await served.call("GET", "/main/a\(seed)/a").body
            #expect(body == plain, "seed \(seed): \(body.count) of \(plain.count) bytes")
            let listed = try await served.call("GET", "/main/a\(seed)", nil, [("Accept", "application/json")])
            #expect(listed.json["_attachments"]?["a"]?["length"] == JSONValue(plain.count), "seed \(seed)")
        }
        await served.listener.stop()
    }
}
