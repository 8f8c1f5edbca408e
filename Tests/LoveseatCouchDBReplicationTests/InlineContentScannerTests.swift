import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// Attachments that are taken out of the JSON of a request while it comes.
struct InlineContentScannerTests {
    private struct Scanned: Equatable {
        var text = ""
        var contents: [[UInt8]] = []
    }

    private func scan(_ text: [UInt8], isBatch: Bool, piece: () -> Int) -> Scanned {
        var scanner = InlineContentScanner(isBatch: isBatch, mark: Array("*".utf8))
        var (left, contents, digits): ([UInt8], [[UInt8]], [UInt8]) = ([], [], [])
        var at = 0
        while at < text.count {
            let end = min(text.count, at + max(1, piece()))
            text[at..<end].withUnsafeBytes { bytes in
                scanner.scan(bytes, into: &left) { content in
                    switch content {
                    case .digits(let some): digits += some
                    case .ended:
                        contents.append(digits)
                        digits = []
                    }
                }
            }
            at = end
        }
        #expect(scanner.count == contents.count)
        return Scanned(text: String(decoding: left, as: UTF8.self), contents: contents)
    }

    private func scan(_ text: String, isBatch: Bool = false, piece: Int = 1_000) -> Scanned {
        scan(Array(text.utf8), isBatch: isBatch) { piece }
    }

    private static let long = String(repeating: "QUJD", count: 20_000)

    @Test(arguments: [1, 3, 7, 1_000, 65_535, 1_000_000])
    func `long attachments are taken out of a document and of a batch, in any pieces`(_ piece: Int) {
        func document(_ one: String, _ two: String) -> String {
            #"{"_id":"a","_attachments":{"x":{"data":"\#(one)"},"y":{"data":"QQ=="},"z":{"data":"\#(two)"}},"data":1}"#
        }
        let whole = document(Self.long, Self.long + "QQ==")
        let contents = [Array(Self.long.utf8), Array((Self.long + "QQ==").utf8)]
        #expect(scan(whole, piece: piece) == Scanned(text: document("*0", "*1"), contents: contents))
        let batch = scan(#"{"new_edits":false,"docs":[{},\#(whole)]}"#, isBatch: true, piece: piece)
        let left = #"{"new_edits":false,"docs":[{},\#(document("*0", "*1"))]}"#
        #expect(batch == Scanned(text: left, contents: contents))
    }

    @Test(arguments: [1, 5, 1_000_000]) func `JSON's escapes are undone, and what is no Base64 is marked`(
        _ piece: Int
    ) {
        let text = #"{"_attachments":{"x":{"data":"\#(Self.long)\/\u002B\n\u00e9\q"}}}"#
        let digits = Array(Self.long.utf8) + Array("/+ ".utf8) + [255, 255]
        #expect(
            scan(text, piece: piece)
                == Scanned(text: #"{"_attachments":{"x":{"data":"*0"}}}"#, contents: [digits])
        )
    }

    @Test func `long strings elsewhere stay`() {
        for text in [
            #"{"data":"L"}"#, #"{"_attachments":{"data":"L"}}"#, #"{"_attachments":[{"x":{"data":"L"}}]}"#,
            #"{"a":{"_attachments":{"x":{"data":"L"}}}}"#, #"{"_attachments":{"x":{"name":"L"}}}"#,
            #"{"_attachments":{"x":{"data":["L"]}}}"#, #"{"_attachments":{"x":{"a":{"data":"L"}}}}"#,
            #"{"docs":[{"_attachments":{"x":{"data":"L"}}}]}"#, #"[{"_attachments":{"x":{"data":"L"}}}]"#,
            #"{"_attachments":{"x":{"a\"data":"L","\\":"L"}}}"#, #""L""#, "L",
        ] {
            let text = text.replacing("L", with: Self.long)
            #expect(scan(text) == Scanned(text: text))
        }
        let batch = #"{"_attachments":{"x":{"data":"\#(Self.long)"}}}"#
        #expect(scan(batch, isBatch: true) == Scanned(text: batch))
    }

    @Test func `only what begins with the mark is a reference`() throws {
        func content(_ text: String) throws -> IncomingAttachment.Content {
            let json = try JSONElement(parsing: Array(#"{"_attachments":{"x":{"data":"\#(text)"}}}"#.utf8))
            let takenOut = TakenOutContents(mark: Array("*mark-".utf8), lengths: [5])
            return try IncomingDocument(json, takenOut: takenOut).attachments[0].content
        }
        guard case .takenOut(0, length: 5) = try content("*mark-0") else { throw NotAsExpected() }
        for text in ["*0", "*mark-1", "*mark--1", "*mark-", "QUJD"] {
            guard case .inline = try content(text) else { throw NotAsExpected() }
        }
    }

    private struct NotAsExpected: Error {}

    @Test(arguments: 1...20) func `pieces do not matter, whatever the text`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let words = [
            "{", "}", "[", "]", ",", ":", "\"", "\"_attachments\"", "\"data\"", "\"docs\"", "\\", "\\\"",
            "\\u00", "é",
            Self.long, "{\"_attachments\":{\"x\":{\"data\":\"", "{\"docs\":[",
        ]
        for _ in 0..<50 {
            var text = ""
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                text += words.randomElement(using: &random) ?? ""
            }
            let bytes = Array(text.utf8)
            for isBatch in [true, false] {
                let whole = scan(bytes, isBatch: isBatch) { bytes.count }
                let pieces = scan(bytes, isBatch: isBatch) { Int.random(in: 1...30_000, using: &random) }
                #expect(whole == pieces, "\(text.prefix(500))")
            }
        }
    }

    @Test(arguments: 1...20) func `Base64 in pieces is what it is as a whole`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let alphabet = Array("ABCxyz019+/= \n\u{ff}".utf8)
        for _ in 0..<200 {
            let text = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                alphabet[
                    Int.random(in: 0..<(Bool.random(using: &random) ? 11 : alphabet.count), using: &random)
                ]
            }
            var decoder = BulkBase64.Decoder()
            var bytes: [UInt8] = []
            var at = 0
            while at < text.count {
                let end = min(text.count, at + Int.random(in: 1...9, using: &random))
                bytes += text[at..<end].withUnsafeBufferPointer { decoder.decode($0) }
                at = end
            }
            let last = decoder.finish()
            #expect(last.map { bytes + $0 } == BulkBase64.decode(text))
        }
    }
}
