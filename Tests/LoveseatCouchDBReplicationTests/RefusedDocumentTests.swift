import LoveseatCouchDBReplication
import LoveseatModel
import Testing

/// What a remote says of documents that were sent to it together.
struct RefusedDocumentTests {
    private func read(_ json: String) throws -> [RefusedDocument] {
        try RefusedDocument.read(try JSONElement(parsing: Array(json.utf8)), of: ["a", "b"])
    }

    @Test(arguments: [
        #"[{"ok":true,"id":"a","rev":"1-a"},{"id":"b","rev":"1-b"}]"#, "[]",
        #"[{"id":"a","rev":"1-a","ok":true,"status":201}]"#,
    ])
    func `a row that says that a document was stored is no refusal`(_ json: String) throws {
        #expect(try read(json).isEmpty)
    }

    @Test(arguments: [
        #"{"id":"a","rev":"1-a","error":5}"#, #"{"id":"a","error":{"forbidden":"x"}}"#,
        #"{"id":"a","ok":false}"#,
        #"{"id":"a","error":"new_error","reason":"x"}"#, #"{"id":"a","error":null}"#, #"{"id":"a"}"#,
        #"{"id":"a","rev":"1-a","reason":"x"}"#, #"{"id":"a","rev":"1-a","error":null,"reason":"x"}"#,
        #"{"id":"a","rev":"1-a","status":403}"#, #"{"id":"a","rev":"1-a","status":"x"}"#,
        #"{"id":"a","rev":"1-a","ok":"yes"}"#,
    ])
    func `a row that does not say so is a refusal of its document`(_ row: String) throws {
        let refused = try read("[\(row)]")
        #expect(refused.map(\.documentID) == ["a"])
        #expect(refused.first?.failure.code == .remoteError)
    }

    @Test(arguments: [
        #"{"error":"forbidden"}"#, #"{"status":403}"#, #"{"ok":false}"#, "3", "null",
        #"{"id":"c","error":"forbidden"}"#,
    ])
    func `a row that names no document that was sent and no success is an error of the answer`(_ row: String)
    {
        let error = #expect(throws: LoveseatError.self) { try read("[\(row)]") }
        #expect(error?.code == .remoteError)
    }

    @Test func `who is not let in is asked again next time, who is forbidden is not`() throws {
        let refused = try read(#"[{"id":"a","error":"unauthorized"},{"id":"b","error":"forbidden"}]"#)
        #expect(refused.map(\.failure.code) == [.httpAuthRequired, .httpForbidden])
        #expect(refused.map(\.failure.isFinalRefusal) == [false, true])
    }
}
