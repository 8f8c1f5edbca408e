import LoveseatCouchDBReplication
import Testing

@Suite struct MultipartWriterTests {
    private static let names =
        [
            "", " ", "b c.png", "a\"b", "\"", "\\", "a\\", "\\\"", "a\"; x=\"b", "é", "日本.txt",
            "a\r\nInjected: yes", "\r", "\n", "\0",
        ]
        + [
            "\u{7F}", "\t", "%41", "a;b", "a'b", "\r\n--B--", "\r\n\r\n", "👩‍👩‍👧", "e\u{301}", "dir/ü \"q\".txt",
            " a ", "a\u{2028}b", "\u{85}",
        ]
        + (0..<128).map { "x\(Character(Unicode.Scalar(UInt8($0))))y" }

    /// Renders a layout with the data of its sources.
    private func render<Source>(_ layout: MultipartLayout<Source>, _ data: (Source) -> [UInt8]) -> [UInt8] {
        layout.pieces.flatMap { piece in
            switch piece {
            case .bytes(let bytes): bytes
            case .content(let source, let length): Array(data(source).prefix(length))
            }
        }
    }

    @Test func `a document and its attachments are rendered as CouchDB does`() throws {
        var layout = try MultipartLayout<String>(.related, boundary: "B")
        #expect(layout.contentType == "multipart/related; boundary=\"B\"")
        try layout.append(.json, "{}", length: 2)
        try layout.append(MultipartAttachment(name: "b c.png", contentType: "image/png", length: 3), "png")
        let text = MultipartAttachment(name: "a.txt", contentType: "text/plain", length: 4, encoding: "gzip")
        try layout.append(text, "gzip")
        let bytes = render(layout) { Array($0.utf8) }
        #expect(
            String(decoding: bytes, as: UTF8.self) == """
                --B\r
                Content-Type: application/json\r
                \r
                {}\r
                --B\r
                Content-Disposition: attachment; filename="b c.png"\r
                Content-Type: image/png\r
                Content-Length: 3\r
                \r
                png\r
                --B\r
                Content-Disposition: attachment; filename="a.txt"\r
                Content-Type: text/plain\r
                Content-Length: 4\r
                Content-Encoding: gzip\r
                \r
                gzip\r
                --B--
                """
        )
        #expect(layout.length == bytes.count)
    }

    @Test func `a body without parts is the closing delimiter`() throws {
        let layout = try MultipartLayout<Int>(.mixed, boundary: "B")
        #expect(render(layout) { _ in [] } == Array("--B--".utf8))
        #expect(layout.length == 5)
    }

    @Test func `a nested body is read by a second parser, and the length is exact`() throws {
        var outer = try MultipartLayout<String>(.mixed, boundary: "outer")
        try outer.append(.json, "{\"a\":1}", length: 7)
        var inner = try MultipartLayout<String>(.related, boundary: "--inner")
        try inner.append(.json, "{\"b\":2}", length: 7)
        try inner.append(MultipartAttachment(name: "é", contentType: "a/b", length: 5), "\r\n--o")
        var headers = PartHeaders()
        try headers.append("X-Doc-Id", "b")
        try outer.append(nested: inner, headers: headers)
        try outer.append(.jsonError, "{\"missing\":\"9-zz\"}", length: 18)
        let bytes = render(outer) { Array($0.utf8) }
        #expect(outer.length == bytes.count)
        let body = ParsedBody([bytes[...]], boundary: "outer")
        #expect(
            body.parts.map(\.fields) == [
                ["Content-Type=application/json"],
                ["X-Doc-Id=b", "Content-Type=multipart/related; boundary=\"--inner\""],
                ["Content-Type=application/json; error=\"true\""],
            ]
        )
        let nested = ParsedBody([body.parts[1].data[...]], boundary: "--inner")
        #expect(nested.texts == ["{\"b\":2}", "\r\n--o"])
        #expect(nested.wasClosed)
    }

    @Test(arguments: ["a", "a--", "a--b", "a-"])
    func `an inner boundary that would end the outer part is refused`(_ boundary: String) throws {
        var outer = try MultipartLayout<Int>(.mixed, boundary: "a")
        let inner = try MultipartLayout<Int>(.related, boundary: boundary)
        #expect(throws: MultipartError.invalidBoundary) { try outer.append(nested: inner) }
        var middle = try MultipartLayout<Int>(.mixed, boundary: "m")
        try middle.append(nested: inner)
        #expect(throws: MultipartError.invalidBoundary) { try outer.append(nested: middle) }
        #expect(outer.length == 5)
    }

    @Test func `negative and excessive lengths are refused and leave the layout unchanged`() throws {
        var layout = try MultipartLayout<Int>(.mixed, boundary: "B")
        try layout.append(.json, 1, length: 1 << 40)
        let before = layout
        for length in [-1, Int.min, Int.max, Int.max - (1 << 40)] {
            #expect(throws: MultipartError.invalidLength) { try layout.append(.json, 2, length: length) }
        }
        #expect(layout == before)
        #expect(layout.length > 1 << 40)
    }

    @Test(arguments: names)
    func `any attachment name survives the round trip and adds no header`(_ name: String) throws {
        var layout = try MultipartLayout<Int>(.related, boundary: "B")
        try layout.append(MultipartAttachment(name: name, contentType: "a/b", length: 0), 0)
        let bytes = render(layout) { _ in [] }
        var parser = MultipartParser(boundary: "B")
        let events = try parser.receive(bytes[...])
        guard case .partBegan(let headers) = events.first else {
            Issue.record("no part")
            return
        }
        #expect(headers.fields.map(\.name) == ["Content-Disposition", "Content-Type", "Content-Length"])
        #expect(headers.filename.map { Array($0.utf8) } == Array(name.utf8))
        #expect(events.count == 3)
        #expect(layout.length == bytes.count)
        #expect(bytes.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x0D || $0 == 0x0A })
        #expect(bytes.count { $0 == 0x0A } == 6)
        #expect(bytes.count { $0 == 0x0D } == 6)
    }

    @Test func `a content type or encoding that a header cannot carry is replaced`() {
        let long = String(repeating: "x", count: 2_000)
        for type in ["a/b\r\nInjected: yes", "", "text/é", "\0", long] {
            let headers = PartHeaders(
                MultipartAttachment(name: "a", contentType: type, length: 1, encoding: "a\r\nb: c")
            )
            #expect(headers["Content-Type"] == "application/octet-stream")
            #expect(headers.fields.count == 3)
        }
    }

    @Test func `a name that is too long for the headers is left out`() {
        for name in [String(repeating: "x", count: 9_000), String(repeating: "é", count: 4_500)] {
            let headers = PartHeaders(MultipartAttachment(name: name, contentType: "a/b", length: 1))
            #expect(headers["Content-Disposition"] == "attachment")
            #expect(headers.filename == nil)
        }
    }

    @Test func `boundaries with quotation marks are escaped in the content type`() throws {
        for boundary in ["a\"b", "a\\", "a;b", "--a"] {
            let writer = try MultipartWriter(boundary: boundary)
            #expect(MediaType(writer.contentType(.mixed))?.boundary == boundary)
        }
    }

    @Test func `random boundaries are valid and differ`() {
        var random = SeededGenerator(seed: 1)
        let boundaries = Set((0..<100).map { _ in MultipartBoundary.random(using: &random) })
        #expect(boundaries.count == 100)
        #expect(boundaries.allSatisfy { MultipartBoundary.isValid($0) && $0.utf8.count == 32 })
    }
}
