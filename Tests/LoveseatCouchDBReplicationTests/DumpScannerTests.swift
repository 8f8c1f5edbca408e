import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// Dumps of CouchDB databases.
struct DumpScannerTests {
    private func entries(_ text: String, pieces: Int = 10_000, maximum: Int = 1_000) throws -> [DumpEntry] {
        var scanner = DumpScanner(maximumEntry: maximum)
        let bytes = Array(text.utf8)
        var entries: [DumpEntry] = []
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            try scanner.receive(Array(bytes[start..<min(start + pieces, bytes.count)])) { entry, _ in
                entries.append(entry)
            }
        }
        try scanner.finish()
        return entries
    }

    private static func document(_ text: String) -> DumpEntry { .document(Array(text.utf8)) }

    @Test(arguments: [1, 2, 3, 7, 64, 10_000]) func `rows are found in any pieces`(_ size: Int) throws {
        let text = #"""
            {"total_rows":2,"offset":0,"more":{"rows":[{"no":1}],"docs":[]},"update\"_seq":"12-g","rows":[
            {"id":"a","doc":{"_id":"a","text":"]}\\\""}},
            {"id":"b","doc":null}
            ],"null":null}

            """#
        let expected = [#"{"id":"a","doc":{"_id":"a","text":"]}\\\""}}"#, #"{"id":"b","doc":null}"#]
        #expect(try entries(text, pieces: size) == expected.map { .row(Array($0.utf8)) })
    }

    @Test(arguments: [1, 5, 10_000]) func `documents are found in what couchdb-dump and couchbackup print`(
        _ size: Int
    ) throws {
        let bulk = "{\"new_edits\":false,\"docs\":[\n{\"_id\":\"a\"},\n{\"_id\":\"b\"}\n]}\n"
        let both = [Self.document("{\"_id\":\"a\"}"), Self.document("{\"_id\":\"b\"}")]
        #expect(try entries(bulk, pieces: size) == both)
        let lines =
            "{\"name\":\"@cloudant/couchbackup\",\"version\":2.1}\n[{\"_id\":\"a\"}]\n[{\"_id\":\"b\"}]\n"
        #expect(try entries(lines, pieces: size) == both)
        #expect(try entries("{\"docs\":[{\"_id\":\"a\"},{\"_id\":\"b\"},]}", pieces: size) == both)
        #expect(try entries("{\"docs\":[]}", pieces: size).isEmpty)
    }

    @Test(arguments: [
        "", "{}", "{\"error\":\"not_found\"}", "{\"rows\":[", "{\"rows\":[{}", "{\"rows\":[{}]", "[{} {}]",
        "[1]",
        "[\"a\"]", "{\"rows\" 1}", "{\"a\":1,}", "{\"a\":}", "{,}", "hello", "--boundary",
        "{\"rows\":{\"a\":1}}",
        "[,]", "]", "}",
    ]) func `anything else is refused`(_ text: String) throws {
        for size in [1, 10_000] {
            let error = #expect(throws: LoveseatError.self) { try entries(text, pieces: size) }
            #expect(error?.code == .invalidJSON)
        }
    }

    @Test func `an entry that is too large is refused before it is complete`() throws {
        var scanner = DumpScanner(maximumEntry: 100)
        try scanner.receive(Array("{\"docs\":[{\"a\":\"".utf8)) { _, _ in }
        let error = #expect(throws: LoveseatError.self) {
            try scanner.receive([UInt8](repeating: UInt8(ascii: "x"), count: 101)) { _, _ in }
        }
        #expect(error?.code == .invalidJSON)
        #expect(try entries("[{\"a\":1},{\"a\":2}]", maximum: 7).count == 2)
        let whole = #expect(throws: LoveseatError.self) { try entries("[{\"a\":12}]", maximum: 7) }
        #expect(whole?.code == .invalidJSON)
    }
}
