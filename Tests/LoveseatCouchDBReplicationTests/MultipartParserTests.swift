import LoveseatCouchDBReplication
import Testing

@Suite struct MultipartParserTests {
    private static let plain =
        "--B\r\nContent-Type: application/json\r\n\r\n{}\r\n--B\r\nA: b\r\n\r\nxyz\r\n--B--"

    @Test func `two parts are read with their headers and data`() {
        let body = ParsedBody(Self.plain)
        #expect(body.texts == ["{}", "xyz"])
        #expect(body.parts.map(\.fields) == [["Content-Type=application/json"], ["A=b"]])
        #expect(body.parts.allSatisfy { $0.isComplete })
        #expect(body.wasClosed)
        #expect(body.endedCount == 1)
    }

    @Test func `events come in the order of the body`() throws {
        var parser = MultipartParser(boundary: "B")
        let events = try parser.receive(Array("--B\r\nA: b\r\n\r\nxyz\r\n--B--".utf8)[...])
        var headers = PartHeaders()
        try headers.append("A", "b")
        #expect(events == [.partBegan(headers), .data(Array("xyz".utf8)[...]), .partEnded, .ended])
        #expect(try parser.finish() == parser.finish())
    }

    @Test(arguments: [
        "preamble\r\n", "\r\n", "\r\n\r\n", "--\r\n", "--Bx\r\n", "--B-\r\n", "\r", "--\r\n--B x\r\n",
        "\n\r\n",
    ])
    func `text before the first boundary is skipped`(_ preamble: String) {
        let body = ParsedBody(preamble + (preamble.hasSuffix("\r\n") ? "" : "\r\n") + Self.plain)
        #expect(body.texts == ["{}", "xyz"])
    }

    @Test(arguments: ["\r\n", "\r\nepilogue", "epilogue", "\r\n--B\r\n\r\nno part", "\n", "\r\n--B--"])
    func `everything after the closing boundary is ignored`(_ epilogue: String) {
        let body = ParsedBody(Self.plain + epilogue)
        #expect(body.texts == ["{}", "xyz"])
        #expect(body.wasClosed)
        #expect(body.endedCount == 1)
    }

    @Test func `blanks and tabs may follow a boundary`() {
        #expect(ParsedBody("--B \t \r\n\r\n1\r\n--B\t\r\n\r\n2\r\n--B--  ").texts == ["1", "2"])
    }

    @Test func `a boundary line with too many blanks is data`() {
        func body(_ count: Int) -> ParsedBody {
            ParsedBody("--B\r\n\r\n1\r\n--B\(String(repeating: " ", count: count))\r\n\r\n2\r\n--B--")
        }
        #expect(body(128).texts == ["1", "2"])
        #expect(body(129).parts.count == 1)
    }

    @Test func `a body with only the closing boundary has no parts`() {
        for text in ["--B--", "\r\n--B--", "--B--\r\n", "preamble\r\n--B--"] {
            let body = ParsedBody(text)
            #expect(body.error == nil)
            #expect(body.parts.isEmpty)
            #expect(body.wasClosed)
            #expect(body.endedCount == 1)
        }
    }

    @Test func `a part may have no headers`() {
        let body = ParsedBody("--B\r\n\r\nabc\r\n--B--")
        #expect(body.texts == ["abc"] && body.parts[0].fields.isEmpty)
    }

    @Test func `a part may have no data, with or without a line break of its own`() {
        #expect(ParsedBody("--B\r\nA: b\r\n\r\n\r\n--B\r\n\r\n\r\n--B--").texts == ["", ""])
        #expect(ParsedBody("--B\r\nA: b\r\n\r\n--B\r\n\r\n--B--").texts == ["", ""])
    }

    @Test func `line breaks at the ends of the data belong to the data`() {
        #expect(ParsedBody("--B\r\n\r\n\r\n\r\nabc\r\n\r\n\r\n--B--").texts == ["\r\n\r\nabc\r\n\r\n"])
        #expect(ParsedBody("--B\r\n\r\n\r\n\r\n--B--").texts == ["\r\n"])
        #expect(ParsedBody("--B\r\n\r\n\n\r\r\r\n--B--").texts == ["\n\r\r"])
    }

    @Test(arguments: ["--", "----eafe8718f8a1511739a629957812665e", "-", "--B--", "a b'()+_,./:=?"])
    func `boundaries may begin with dashes and have punctuation`(_ boundary: String) {
        let text = "\r\n--\(boundary)\r\n\r\n1\r\n--\(boundary)\r\n\r\n2--\(boundary)\r\n-\r\n--\(boundary)--"
        let body = ParsedBody(text, boundary: boundary)
        #expect(body.texts == ["1", "2--\(boundary)\r\n-"])
        #expect(body.wasClosed)
    }

    @Test func `a line that begins with the boundary and goes on is data`() {
        for line in ["--Bx", "--B-", "--B-x--", "--B x", "--B\rx", "--b", "--B \r\r"] {
            #expect(ParsedBody("--B\r\n\r\n1\r\n\(line)\r\n--B--").texts == ["1\r\n\(line)"])
        }
    }

    @Test func `a boundary in the middle of a line, or after a bare LF or CR, is data`() {
        for data in ["x--B\r\n\r\n", "\n--B\r\n", "x\r--B--", "\n--B--"] {
            #expect(ParsedBody("--B\r\n\r\n\(data)\r\n--B--").texts == [data])
        }
    }

    @Test func `an inner boundary may begin with the outer one`() throws {
        let inner = "--Binner\r\n\r\n1\r\n--Binner\r\n\r\n2\r\n--Binner--"
        let outer = ParsedBody("--B\r\n\r\n\(inner)\r\n--B--")
        #expect(outer.texts == [inner])
        #expect(ParsedBody(inner, boundary: "Binner").texts == ["1", "2"])
    }

    @Test func `without a closing boundary the last part ends with the input`() {
        for (tail, data) in [
            ("", "abc"), ("\r", "abc\r"), ("\r\n", "abc\r\n"), ("\r\n-", "abc\r\n-"), ("\r\n--", "abc\r\n--"),
            ("\r\n--B", "abc"), ("\r\n--B-", "abc"), ("\r\n--B \t\r", "abc"),
        ] {
            let body = ParsedBody("--B\r\n\r\nabc\(tail)")
            #expect(body.texts == [data] && body.parts[0].isComplete)
            #expect(body.error == nil)
            #expect(!body.wasClosed)
            #expect(body.endedCount == 0)
        }
    }

    @Test func `a body that ends right after the headers has an empty part`() {
        let body = ParsedBody("--B\r\nA: b\r\n\r\n")
        #expect(body.texts == [""])
        #expect(body.error == nil)
        #expect(!body.wasClosed)
    }

    @Test func `data events share the storage of the input`() throws {
        var parser = MultipartParser(boundary: "boundary")
        let data = [UInt8](repeating: 0x0D, count: 100_000)
        let input = Array("--boundary\r\n\r\n".utf8) + data + Array("\r\n--boundary\r\n\r\nx".utf8)
        var slices: [ArraySlice<UInt8>] = []
        for case .data(let slice) in try parser.receive(input[...]) { slices.append(slice) }
        #expect(slices.map(\.count) == [100_000, 1])
        let offset = input.withUnsafeBufferPointer { all in
            slices[0].withUnsafeBufferPointer { part in
                all.baseAddress.flatMap { base in part.baseAddress.map { $0 - base } }
            }
        }
        #expect(offset == 14)
    }

    @Test func `a slice that does not begin at index 0 is read correctly`() throws {
        let text = Array("junk--B\r\n\r\nab\r\n--B--junk".utf8)
        #expect(ParsedBody([text[4..<9], text[9..<15], text[15..<21]], boundary: "B").texts == ["ab"])
    }
}
