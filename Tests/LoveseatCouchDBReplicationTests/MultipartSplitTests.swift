import LoveseatCouchDBReplication
import Testing

@Suite struct MultipartSplitTests {
    private static let bodies = [
        "--B\r\nContent-Type: a/b\r\n\r\n{}\r\n--B \r\n\r\n\r\n--B--",
        "\r\n--B\r\n\r\n--B\r\nA: b\r\n c\r\n\r\n\r\n\r\n--Bx\r\n--B-\r\n\r\r\n--B--\r\nepilogue",
        "preamble\r\n--Bx\r\n--B\t\r\n\r\n\r\n--\r\n--B\r\nA:b\r\n\r\nx\r\n--B",
        "--B--", "--B", "", "\r\n", "--B\r\nA", "--B\r\nA\r\n\r\n", "--B\n", "x\r\n--B \n",
        "--B\r\nA: b\n\r\n",
        "--B\r\n\r\nabc\r\n--B\r\n", "--B\r\n\r\n\r\n--B\n", "--B\r\n\r\nabc\r\n-",
    ]

    @Test(arguments: bodies)
    func `a body cut at any two places is read as if it came at once`(_ text: String) {
        let bytes = Array(text.utf8)
        let whole = ParsedBody([bytes[...]], boundary: "B")
        for first in 0...bytes.count {
            for second in first...bytes.count {
                let pieces = [bytes[..<first], bytes[first..<second], bytes[second...]]
                #expect(ParsedBody(pieces, boundary: "B") == whole, "cut at \(first) and \(second)")
            }
        }
    }

    @Test(arguments: bodies)
    func `a body that comes byte by byte is read as if it came at once`(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(
            ParsedBody(bytes.indices.map { bytes[$0...$0] }, boundary: "B")
                == ParsedBody([bytes[...]], boundary: "B")
        )
    }

    @Test(arguments: [1, 7, 8, 9, 38, 200])
    func `a delimiter is found at every offset of the buffer`(_ length: Int) {
        let boundary = String(repeating: "-", count: length - 1) + "b"
        for count in 0..<40 {
            let data = (0..<count).map { UInt8($0 % 3 == 0 ? 0x0D : 0x2D) }
            let bytes = Array("--\(boundary)\r\n\r\n".utf8) + data + Array("\r\n--\(boundary)--".utf8)
            #expect(ParsedBody([bytes[...]], boundary: boundary).parts.map(\.data) == [data])
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `data full of near-boundaries comes out unchanged, however it is cut`(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let boundary = ["B", "--", "----abcdef0123456789", "-B-", String(repeating: "x", count: 200)][
            Int(seed % 5)
        ]
        var writer = try MultipartWriter(boundary: boundary)
        var (bytes, parts): ([UInt8], [[UInt8]]) = ([], [])
        for _ in 0..<Int.random(in: 0..<5, using: &random) {
            // A fragment that ends the data could be completed by the delimiter after it.
            let data = nearBoundaryData(boundary, count: 30, using: &random) + [0x2E]
            guard ReferenceParser.parse(data, boundary: boundary) == nil else { continue }
            bytes += writer.begin(.json) + data
            parts.append(data)
        }
        bytes += writer.end()
        for _ in 0..<30 {
            let body = ParsedBody(randomPieces(of: bytes, using: &random), boundary: boundary)
            #expect(body.parts.map(\.data) == parts)
            #expect(body.wasClosed)
            #expect(body.endedCount == 1)
            #expect(body.error == nil)
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `random bodies are read as the line-by-line reference reads them`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed &+ 1_000)
        let fragments = [
            "\r\n--B\r\n", "\r\n--B\r\n\r\n", "\r\n--B--", "--B", "\r\n", "\r", "\n", "--", "-", "A: b\r\n",
            "A: b\r\n\r\n", " ", "x",
        ]
        for _ in 0..<200 {
            let count = Int.random(in: 0..<14, using: &random)
            let text = (0..<count).map { _ in fragments.randomElement(using: &random) ?? "" }.joined()
            let bytes = Array(text.utf8)
            let body = ParsedBody(randomPieces(of: bytes, using: &random), boundary: "B")
            if body.error == .malformedHeader { continue }
            let reference = ReferenceParser.parse(bytes, boundary: "B")
            #expect((body.error == nil) == (reference != nil), "\(text.debugDescription)")
            guard let reference, body.error == nil else { continue }
            #expect(body.parts.map(\.data) == reference.parts.map(\.data), "\(text.debugDescription)")
            #expect(body.wasClosed == reference.wasClosed, "\(text.debugDescription)")
        }
    }
}
