import LoveseatCouchDBReplication
import Testing

@Suite struct AcceptHeaderTests {
    @Test func `an absent or blank header accepts everything and names nothing`() {
        for text in [nil, "", " \t"] {
            let accept = AcceptHeader(text)
            #expect(accept.allows("a", "b"))
            #expect(!accept.names("a", "b"))
        }
    }

    @Test func `wildcards allow but do not name`() {
        let accept = AcceptHeader("multipart/*, text/plain")
        #expect(accept.allows("Multipart", "Related"))
        #expect(!accept.names("multipart", "related"))
        #expect(accept.allows("text", "plain"))
        #expect(accept.names("TEXT", "plain"))
        #expect(!accept.allows("text", "html"))
        #expect(AcceptHeader("*/*").allows("a", "b"))
    }

    @Test func `the most specific range decides, whatever the order`() {
        for text in [
            "*/*;q=0.1, multipart/*;q=0.5, multipart/mixed;q=0",
            "multipart/mixed;q=0, multipart/*;q=0.5, */*;q=0.1",
        ] {
            let accept = AcceptHeader(text)
            #expect(!accept.allows("multipart", "mixed"))
            #expect(!accept.names("multipart", "mixed"))
            #expect(accept.quality("multipart", "related") == 0.5)
            #expect(accept.quality("a", "b") == 0.1)
        }
    }

    @Test func `weights are read in every form, and ranges with a malformed one ignored`() {
        for (text, quality) in [
            ("1", 1), ("1.000", 1), ("0", 0), ("0.25", 0.25), (".2", 0.2), ("0.", 0), ("\"0.5\"", 0.5),
        ] {
            #expect(AcceptHeader("a/b; Q=\(text)").quality("a", "b") == quality)
        }
        for text in ["2", "-1", "x", "nan", "1e0", "0x1", "0.00000000000000001", ".", "1.1.1", "inf"] {
            #expect(AcceptHeader("a/b;q=\(text)").quality("a", "b") == 0)
        }
    }

    @Test func `malformed ranges do not hide the others`() {
        let accept = AcceptHeader(
            "junk, , a/b c/d, *;q=.2, x/y;z=\"1,2\", application/json;;, multipart/mixed;q"
        )
        #expect(accept.allows("application", "json"))
        #expect(accept.allows("x", "y"))
        #expect(!accept.allows("a", "b"))
        #expect(!accept.allows("multipart", "mixed"))
    }

    @Test func `ranges after the hundredth are ignored`() {
        let many = Array(repeating: "a/b", count: 100).joined(separator: ",")
        #expect(!AcceptHeader(many + ",c/d").allows("c", "d"))
        #expect(AcceptHeader(many.dropFirst(4) + ",c/d").allows("c", "d"))
        #expect(!AcceptHeader(String(repeating: ",", count: 1 << 20)).allows("c", "d"))
    }

    @Test(arguments: [
        (nil, DocumentFormat.related), ("*/*", .related), ("multipart/related", .related),
        ("multipart/mixed", .json),
        ("application/json", .json), ("multipart/related, application/json", .related),
        ("application/json, multipart/related", .related), ("multipart/related; q=0.9, */*;q=0.1", .related),
        ("application/json, */*", .related), ("*/*, multipart/related;q=0", .json),
    ])
    func `a document is sent as multipart wherever that is acceptable`(
        _ text: String?,
        _ format: DocumentFormat
    ) {
        #expect(AcceptHeader(text).documentFormat == format)
    }

    @Test(arguments: [
        (nil, DocumentFormat.mixed), ("*/*", .mixed), ("multipart/mixed", .mixed),
        ("application/json", .json),
        ("multipart/mixed, application/json", .json), ("application/json;q=0, */*", .mixed),
    ])
    func `open revisions are sent as multipart unless JSON is named`(
        _ text: String?,
        _ format: DocumentFormat
    ) {
        #expect(AcceptHeader(text).openRevisionsFormat == format)
    }

    @Test(arguments: [
        (nil, DocumentFormat.json), ("*/*", .json), ("multipart/*", .json), ("multipart/mixed", .mixed),
        ("multipart/related", .related), ("multipart/related, multipart/mixed", .mixed),
        ("multipart/mixed, application/json", .json), ("application/json", .json), ("text/html", .json),
    ])
    func `a bulk request is answered as multipart only where that alone is named`(
        _ text: String?,
        _ format: DocumentFormat
    ) {
        #expect(AcceptHeader(text).bulkGetFormat == format)
    }
}
