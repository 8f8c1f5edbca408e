import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// Base64 and revisions as peers of CouchDB's wire write them. Tests name the changes that they notice.
struct ContentEncodingTests {
    /// The padding that is allowed, one less or more.
    @Test(arguments: [
        ("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmE=", "fooba"),
        ("Zm9vYmFy", "foobar"),
    ])
    func `content of each length is encoded with its padding, and decoded with and without it`(
        _ text: String,
        _ content: String
    ) {
        #expect(BulkBase64.encode(content.utf8) == Array(text.utf8))
        #expect(BulkBase64.decode(text.utf8) == Array(content.utf8))
        #expect(BulkBase64.decode(text.utf8.filter { $0 != UInt8(ascii: "=") }) == Array(content.utf8))
        #expect(BulkBase64.decode(text.utf8.flatMap { [$0, 0x0A] }) == Array(content.utf8))
    }

    @Test(arguments: ["Z", "Zg===", "====", "Zg=A", "Zm9vY", "Zm9v-", "Zg==Zg=="])
    func `text that is not Base64 has no content`(_ text: String) {
        #expect(BulkBase64.decode(text.utf8) == nil)
    }

    /// The highest generation, one less or more.
    @Test func `revisions are read up to the highest generation that leaves room for edits`() throws {
        for generation in [1, 2, 2_147_483_647] as [UInt32] {
            #expect(try RevisionText.parse("\(generation)-aa").generation == generation)
            let history = try JSONElement(parsing: Array(#"{"start":\#(generation),"ids":["aa"]}"#.utf8))
            #expect(try RevisionText.history(history).map(\.generation) == [generation])
        }
        for generation in [2_147_483_648, 2_147_483_649, 4_294_967_295] as [UInt32] {
            #expect(throws: CouchDBError.self) { try RevisionText.parse("\(generation)-aa") }
            let history = try JSONElement(parsing: Array(#"{"start":\#(generation),"ids":["aa"]}"#.utf8))
            #expect(throws: CouchDBError.self) { try RevisionText.history(history) }
        }
    }
}
