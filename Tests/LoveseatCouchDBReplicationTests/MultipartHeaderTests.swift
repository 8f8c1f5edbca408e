import LoveseatCouchDBReplication
import Testing

@Suite struct PartHeadersTests {
    private func headers(_ lines: String) throws -> PartHeaders {
        var parser = MultipartParser(boundary: "B")
        for case .partBegan(let headers) in try parser.receive(Array("--B\r\n\(lines)\r\n\r\n".utf8)[...]) {
            return headers
        }
        throw MultipartError.missingBoundary
    }

    private func filename(_ disposition: String) throws -> String? {
        try headers("Content-Disposition: \(disposition)").filename
    }

    @Test func `names are matched without regard to case, and the first field counts`() throws {
        let headers = try headers("content-LENGTH:  12 \t\r\nX-A:1\r\nx-a: 2\r\nEmpty:")
        #expect(headers["Content-Length"] == "12")
        #expect(headers.contentLength == 12)
        #expect(headers["X-A"] == "1")
        #expect(headers["empty"] == "")
        #expect(headers["X-B"] == nil)
        #expect(headers.fields.map(\.name) == ["content-LENGTH", "X-A", "x-a", "Empty"])
    }

    @Test func `a folded line continues the field before it`() throws {
        #expect(try headers("A: b\r\n\t  c\r\nD: e")["a"] == "b c")
    }

    @Test func `lengths that are not plain numbers are ignored`() throws {
        for text in ["", "-1", "+1", "1 2", "0x1", "99999999999999999999", "１"] {
            #expect(try headers("Content-Length: \(text)").contentLength == nil)
        }
    }

    @Test func `the identity encoding is no encoding`() throws {
        #expect(try headers("Content-Encoding: GZIP").contentEncoding == "gzip")
        #expect(try headers("Content-Encoding: identity").contentEncoding == nil)
        #expect(try headers("A: b").contentEncoding == nil)
    }

    @Test func `a part with the error parameter is an error`() throws {
        #expect(try headers("Content-Type: application/json; error=\"true\"").isError)
        #expect(try headers("Content-Type: application/json;error=true").isError)
        #expect(try !headers("Content-Type: application/json").isError)
        #expect(try !headers("Content-Type: application/json; error=\"false\"").isError)
        #expect(try !headers("A: b").isError)
    }

    @Test func `file names are read in every form that peers send`() throws {
        #expect(try filename("attachment; filename=\"b c.png\"") == "b c.png")
        #expect(try filename("attachment;filename=a.txt") == "a.txt")
        #expect(try filename("attachment; FileName=\"a;b\"; size=3") == "a;b")
        #expect(try filename("attachment; x=\"filename=no\"; filename=\"yes\"") == "yes")
        #expect(try filename("attachment; filename=\"a\\\"b\\\\c\"") == "a\"b\\c")
        #expect(try filename("filename=\"a\"") == nil)
        #expect(try filename("attachment") == nil)
        #expect(try filename("attachment; filename=\"open") == nil)
    }

    @Test func `file names that CouchDB sends without escapes are read`() throws {
        #expect(try filename("attachment; filename=\"dir/ü \"q\".txt\"") == "dir/ü \"q\".txt")
        #expect(try filename("attachment; filename=\"a\"\"") == "a\"")
        #expect(try filename("attachment; filename=\"a\\b\"") == "a\\b")
        #expect(try filename("attachment; filename=\"a\\\"") == "a\\")
        #expect(try filename("attachment; filename=\"\"") == "")
    }

    @Test func `an extended file name is preferred, and a broken one ignored`() throws {
        #expect(try filename("attachment; filename=\"e\"; filename*=UTF-8''%C3%A9%20a") == "é a")
        #expect(try filename("attachment; filename*=utf-8'en'%e2%82%ac; filename=\"e\"") == "€")
        for broken in [
            "UTF-8''%C3", "UTF-8''%C", "UTF-8''%zz", "UTF-8", "ISO-8859-1''%E9", "UTF-8'x", "UTF-8''%",
        ] {
            #expect(try filename("attachment; filename=\"e\"; filename*=\(broken)") == "e")
        }
    }

    @Test func `appended values cannot add header lines`() throws {
        var headers = PartHeaders()
        try headers.append("X-Doc-Id", "a\r\nInjected: b\0")
        #expect(headers["X-Doc-Id"] == "a  Injected: b")
        #expect(throws: MultipartError.malformedHeader) { try headers.append("A: b\r\nC", "d") }
        #expect(throws: MultipartError.malformedHeader) { try headers.append("", "d") }
        #expect(headers.fields.count == 1)
    }
}

@Suite struct MediaTypeTests {
    @Test func `types, subtypes and parameter names are in lower case, values unchanged`() throws {
        let media = try #require(MediaType(" Multipart/RELATED ; Boundary=\"aB c\" ;type=Application/JSON"))
        #expect(media.type == "multipart")
        #expect(media.subtype == "related")
        #expect(media.matches("MULTIPART", "Related"))
        #expect(media["BOUNDARY"] == "aB c")
        #expect(media["type"] == "Application/JSON")
        #expect(media["x"] == nil)
    }

    @Test func `quoted values may have separators and escapes`() {
        #expect(MediaType("a/b; c=\"d;e,\\\"f\\\\\"; g=h")?.parameters.map(\.value) == ["d;e,\"f\\", "h"])
    }

    @Test func `superfluous semicolons and blanks around the equal sign are accepted`() {
        #expect(MediaType("a/b;")?.parameters == [])
        #expect(MediaType("a/b ;; ; c = d ; ")?["c"] == "d")
    }

    @Test(arguments: [
        "", "a", "a/", "/b", "a b/c", "a/b c", "a/b; c", "a/b; =d", "a/b; c=", "a/b; c=\"d", "a/b; c=\"d\"e",
        "a/b; c=d; C=e",
        "a/b, c/d", "a/b; c=\"d\\", "é/b", "a/b; c=d e",
    ])
    func `malformed types are refused`(_ text: String) {
        #expect(MediaType(text) == nil)
    }

    @Test func `a value above 16 KiB is refused`() {
        func media(_ count: Int) -> MediaType? {
            MediaType("a/b;c=" + String(repeating: "x", count: count - 6))
        }
        #expect(media(16 << 10) != nil)
        #expect(media((16 << 10) + 1) == nil)
    }

    @Test func `boundaries are read quoted and unquoted, up to 200 characters`() {
        #expect(MediaType("multipart/related; boundary=--eafe87")?.boundary == "--eafe87")
        #expect(MediaType("multipart/mixed; boundary=\"a b=/?:\"")?.boundary == "a b=/?:")
        #expect(MediaType("multipart/mixed; boundary=a=/?:")?.boundary == "a=/?:")
        let longest = String(repeating: "x", count: 200)
        #expect(MediaType("multipart/mixed; boundary=\(longest)")?.boundary == longest)
        #expect(MediaType("multipart/mixed; boundary=\(longest)x")?.boundary == nil)
    }

    @Test func `invalid boundaries and those of other types are ignored`() {
        for text in [
            "multipart/mixed", "multipart/mixed; boundary=\"\"", "multipart/mixed; boundary=\"a \"",
            "multipart/mixed; boundary=é", "multipart/mixed; boundary=\"a\tb\"",
            "application/json; boundary=a",
        ] {
            #expect(MediaType(text) != nil)
            #expect(MediaType(text)?.boundary == nil)
        }
    }
}
