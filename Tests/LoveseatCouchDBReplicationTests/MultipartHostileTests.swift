import LoveseatCouchDBReplication
import Testing

@Suite struct MultipartHostileTests {
    @Test func `a body without a boundary is refused`() {
        for text in ["", "\r\n", "--A--", "--B", "\n--B\n", "x--B\r\n\r\n\r\nx--B--"] {
            #expect(ParsedBody(text).error == .missingBoundary)
        }
    }

    @Test func `bare line feeds are refused in boundary lines and headers`() {
        for text in [
            "--B\n\nabc\n--B--", "--B\r\nA: b\n\n", "--B\r\nA: b\n\r\n", "--B \n", "--B\r\n\n",
            "--B\r\n\r\nabc\r\n--B\n",
        ] {
            #expect(ParsedBody(text).error == .bareLineFeed)
        }
    }

    @Test(arguments: [
        "no colon", ": no name", "na me: x", "name : x", "n\u{e9}: x", "a: \0", "a: x\ry", "a: \u{7F}",
        " folded first: x",
        "--B", "--B:x", "\"a\": b", "a: b\r\nc",
    ])
    func `malformed header lines are refused`(_ line: String) {
        #expect(ParsedBody("--B\r\n\(line)\r\n\r\nabc\r\n--B--").error == .malformedHeader)
    }

    @Test func `a delimiter whose boundary has a colon is not taken for a header`() {
        let text = "--a:b\r\nX: y\r\n--a:b\r\n\r\nabc\r\n--a:b--"
        #expect(ParsedBody(text, boundary: "a:b").error == .malformedHeader)
    }

    @Test func `a body that ends in the headers of a part is refused`() {
        for text in ["--B\r\n", "--B\r\n\r", "--B\r\nA: b\r\n", "--B\r\n\r\nabc\r\n--B\r\n"] {
            #expect(ParsedBody(text).error == .truncatedHeaders)
        }
    }

    @Test(arguments: ["", " ", "a ", "a\r\nb", "é", "\0", String(repeating: "x", count: 201)])
    func `invalid boundaries are refused`(_ boundary: String) {
        #expect(ParsedBody("--\(boundary)--", boundary: boundary).error == .invalidBoundary)
        #expect(throws: MultipartError.invalidBoundary) { try MultipartWriter(boundary: boundary) }
    }

    @Test(arguments: [1, 7, 100_000])
    func `headers above the limit are refused, and at the limit accepted`(_ size: Int) {
        func body(_ count: Int) -> ParsedBody {
            let text = "--B\r\nA: \(String(repeating: "x", count: count - 7))\r\n\r\nabc\r\n--B--"
            let bytes = Array(text.utf8)
            let pieces = stride(from: 0, to: bytes.count, by: size).map {
                bytes[$0..<min($0 + size, bytes.count)]
            }
            return ParsedBody(pieces, boundary: "B")
        }
        #expect(body(16 << 10).texts == ["abc"])
        #expect(body((16 << 10) + 1).error == .headersTooLong(limit: 16 << 10))
    }

    @Test func `headers without an end are refused as soon as they exceed the limit`() throws {
        var parser = MultipartParser(boundary: "B")
        _ = try parser.receive(Array("--B\r\n".utf8)[...])
        let line = [UInt8](repeating: 0x61, count: 1 << 10)[...]
        for _ in 0..<16 { #expect(try parser.receive(line).isEmpty) }
        #expect(throws: MultipartError.headersTooLong(limit: 16 << 10)) { try parser.receive(line) }
    }

    @Test func `more parts than the limit are refused`() {
        func body(_ count: Int) -> ParsedBody {
            ParsedBody(String(repeating: "--B\r\n\r\n\r\n", count: count) + "--B--")
        }
        #expect(body(10_000).parts.count == 10_000)
        #expect(body(10_001).error == .tooManyParts(limit: 10_000))
    }

    @Test func `a preamble above the limit is refused`() {
        func body(_ count: Int) -> ParsedBody {
            let text = String(repeating: "x", count: count) + "\r\n--B--"
            return ParsedBody([Array(text.utf8)[...]], boundary: "B")
        }
        #expect(body(64 << 10).error == nil)
        #expect(body((64 << 10) + 1).error == .preambleTooLong(limit: 64 << 10))
    }

    @Test func `after an error every call throws the same error`() {
        var parser = MultipartParser(boundary: "B")
        for _ in 0..<2 {
            #expect(throws: MultipartError.bareLineFeed) { try parser.receive(Array("--B\n".utf8)[...]) }
        }
        #expect(throws: MultipartError.bareLineFeed) { try parser.finish() }
        var empty = MultipartParser(boundary: "B")
        for _ in 0..<2 { #expect(throws: MultipartError.missingBoundary) { try empty.finish() } }
        #expect(throws: MultipartError.missingBoundary) { try empty.receive([0x2D]) }
    }

    @Test func `limits of zero and below refuse instead of trapping`() {
        var limits = MultipartParser.Limits()
        (limits.headerBytes, limits.parts, limits.preambleBytes) = (-1, 0, -1)
        let bytes = Array("x\r\n--B\r\nA: b\r\n\r\n".utf8)
        #expect(ParsedBody([bytes[...]], boundary: "B", limits: limits).error == .preambleTooLong(limit: -1))
        #expect(ParsedBody([bytes[3...]], boundary: "B", limits: limits).error == .tooManyParts(limit: 0))
        limits.parts = 1
        #expect(ParsedBody([bytes[3...]], boundary: "B", limits: limits).error == .headersTooLong(limit: -1))
    }

    @Test func `a repeated beginning of a delimiter does not slow the parser down`() throws {
        for fragment in ["\r\n--", "\r", "\r\n--B\(String(repeating: " ", count: 128))x", "\r\n--B-", "\r\n"]
        {
            var parser = MultipartParser(boundary: "B")
            _ = try parser.receive(Array("--B\r\n\r\n.".utf8)[...])
            let data = Array(String(repeating: fragment, count: 300_000 / fragment.utf8.count).utf8) + [0x2E]
            var count = 0
            let clock = ContinuousClock()
            let elapsed = try clock.measure {
                for case .data(let slice) in try parser.receive(data[...]) { count += slice.count }
                for case .data(let slice) in try parser.finish().events { count += slice.count }
            }
            #expect(count == data.count)
            #expect(elapsed < .seconds(5))
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `random changes to a valid body never trap`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var writer = try MultipartWriter(boundary: "B")
        let attachment = MultipartAttachment(name: "\"é\r\n", contentType: "a/b", length: 3, encoding: "gzip")
        let valid = writer.begin(.json) + writer.begin(PartHeaders(attachment)) + writer.end()
        for _ in 0..<300 {
            var bytes = valid
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.insert(contentsOf: bytes[place...].prefix(9), at: place)
                }
            }
            let whole = ParsedBody([bytes[...]], boundary: "B")
            #expect(ParsedBody(randomPieces(of: bytes, using: &random), boundary: "B") == whole)
            var parser = MultipartParser(boundary: "B")
            for case .partBegan(let headers) in (try? parser.receive(bytes[...])) ?? [] {
                _ = (headers.filename, headers.contentLength, headers.contentEncoding, headers.isError)
            }
        }
    }
}
