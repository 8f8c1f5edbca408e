import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

/// Dumps of CouchDB databases in a collection, as CouchDB's clients see them.
struct DumpImporterTests {
    @discardableResult
    private func load(_ dump: String, into database: Database) throws -> Int {
        var importer = try DumpImporter(collection: try database.defaultCollection(), name: "dump")
        let bytes = Array(dump.utf8)
        for start in stride(from: 0, to: bytes.count, by: 100) {
            try importer.receive(Array(bytes[start..<min(start + 100, bytes.count)]))
        }
        try importer.finish()
        return importer.count
    }

    @Test func `revisions, histories, tombstones and attachments of a dump are kept`() async throws {
        let served = try await ServedDatabase()
        let dump = #"""
            {"total_rows":3,"offset":0,"rows":[
            {"id":"a","key":"a","value":{"rev":"3-c"},"doc":{"_id":"a","_rev":"3-c","_revisions":{"start":3,"ids":["c","b","a"]},"n":1}},
            {"id":"gone","key":"gone","value":{"rev":"2-x","deleted":true},"doc":null},
            {"key":"none","error":"not_found"},
            {"id":"photo","key":"photo","value":{"rev":"2-p"},"doc":{"_id":"photo","_rev":"2-p","_attachments":{"hello.txt":{"content_type":"text/plain","revpos":2,"digest":"md5-XUFAKrxLKna5cZ2REBfFkg==","data":"aGVsbG8="}}}}
            ]}
            """#
        for _ in 0..<2 { #expect(try load(dump, into: served.database) == 3) }
        let document = try await served.call("GET", "/main/a?revs=true").json
        #expect(document["_revisions"] == ["start": 3, "ids": ["c", "b", "a"]])
        #expect(document["n"] == 1)
        #expect(try await served.call("GET", "/main/gone").json["reason"] == "deleted")
        let difference: JSONValue = ["a": ["3-c"], "gone": ["2-x"], "photo": ["2-p"]]
        #expect(try await served.call("POST", "/main/_revs_diff", difference).json == [:])
        let photo = try await served.call("GET", "/main/photo").json["_attachments"]?["hello.txt"]
        #expect(photo?["content_type"] == "text/plain")
        #expect(photo?["revpos"] == 2)
        #expect(try await served.call("GET", "/main/photo/hello.txt").text == "hello")
        #expect(try await served.call("GET", "/main").json["doc_count"] == 2)
    }

    @Test func `a byte order mark before a dump is left out`() async throws {
        let served = try await ServedDatabase()
        for size in [1, 2, 3, 100] {
            let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
            let bytes = mark + Array(#"{"rows":[{"doc":{"_id":"n\#(size)","n":1}}]}"#.utf8)
            var importer = try DumpImporter(collection: try served.database.defaultCollection(), name: "dump")
            for start in stride(from: 0, to: bytes.count, by: size) {
                try importer.receive(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            try importer.finish()
            #expect(importer.count == 1)
        }
        #expect(try await served.call("GET", "/main/_all_docs").ids.count == 4)
        await served.listener.stop()
    }

    @Test func `a dump in UTF-16 is named`() async throws {
        let served = try await ServedDatabase()
        for mark: [UInt8] in [[0xFF, 0xFE], [0xFE, 0xFF]] {
            var importer = try DumpImporter(collection: try served.database.defaultCollection(), name: "dump")
            let error = #expect(throws: LoveseatError.self) { try importer.receive(mark + [0x7B, 0]) }
            #expect(error?.code == .invalidJSON)
            #expect(error?.message.contains("UTF-16") == true)
        }
        await served.listener.stop()
    }

    @Test func `what couchdb-dump printed is imported, conflicts and deletions included`() async throws {
        let served = try await ServedDatabase()
        let dump = """
            {"new_edits":false,"docs":[
            {"_id":"a","_rev":"1-a","n":1},
            {"_id":"a","_rev":"1-b","n":2},
            {"_id":"gone","_rev":"3-z","_deleted":true},
            {"_id":"_design/d","_rev":"1-d","language":"query"},
            {"_id":"new","n":3}
            ]}
            """
        #expect(try load(dump, into: served.database) == 5)
        let document = try await served.call("GET", "/main/a?conflicts=true").json
        #expect(document["_rev"] == "1-b")
        #expect(document["_conflicts"] == ["1-a"])
        #expect(try await served.call("GET", "/main/gone").status == 404)
        #expect(try await served.call("GET", "/main/_all_docs").ids == ["_design/d", "a", "new"])
        #expect(try await served.call("GET", "/main/new").json["_rev"]?.string?.hasPrefix("1-") == true)
    }

    @Test(arguments: [
        (#"{"_id":"d","_rev":"1-a","_attachments":{"x":{"stub":true,"length":1}}}"#, "attachments=true"),
        (#"{"_id":"d","_rev":"1-a","_attachments":{"x":{"data":"???"}}}"#, "attachment"),
        (#"{"_id":"d","_rev":"no"}"#, "rev"), (#"{"_id":"_x","_rev":"1-a"}"#, "reserved"),
        (#"{"_id":"_local/x","_rev":"1-a"}"#, "local"),
    ]) func `a document that cannot be imported is named, and says why`(_ document: String, _ reason: String)
        throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        let error = #expect(throws: LoveseatError.self) {
            try load("{\"docs\":[{\"_id\":\"ok\",\"_rev\":\"1-a\"},\(document)]}", into: database)
        }
        #expect(error?.message.hasPrefix("dump, line 1, document 2: ") == true)
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
        #expect(try database.defaultCollection().count == 0)
    }

    @Test(arguments: ["\n", "", " \r\n"])
    func `documents one after another are a dump, if they begin as CouchDB prints them`(_ end: String)
        async throws
    {
        let served = try await ServedDatabase()
        let documents = [
            #"{"_id":"a","_rev":"2-b","n":{"_id":"x"}}"#, #"{ "_rev" : "1-c" , "_id":"b","s":"}{"}"#,
            #"{"_id":"c"}"#, #"[{"_id":"d","_rev":"1-a"}]"#, #"{"docs":[{"_id":"e"}]}"#,
        ]
        #expect(try load(documents.map { $0 + end }.joined(), into: served.database) == 5)
        #expect(try await served.call("GET", "/main/_all_docs").ids == ["a", "b", "c", "d", "e"])
        #expect(
            try await served.call("GET", "/main/a").json == ["_id": "a", "_rev": "2-b", "n": ["_id": "x"]]
        )
        #expect(try await served.call("GET", "/main/b").json["s"] == "}{")
        let error = #expect(throws: LoveseatError.self) { try load(#"{"_id":"f""#, into: served.database) }
        #expect(error?.code == .invalidJSON)
        await served.listener.stop()
    }

    @Test(arguments: [
        (#"{"key":"x","error":"unauthorized"}"#, "unauthorized"),
        (#"{"id":"x","error":{"a":1}}"#, "could not read"),
        (#"{"id":"x","key":"x","value":{"rev":"1-a"},"doc":null}"#, "neither"),
    ]) func `a row without a document is an error, unless the document does not exist`(
        _ row: String,
        _ reason: String
    )
        throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        var importer = try DumpImporter(collection: try database.defaultCollection(), name: "dump")
        try importer.receive(Array(#"{"rows":[{"key":"none","error":"not_found"},"#.utf8))
        let error = #expect(throws: LoveseatError.self) { try importer.receive(Array("\(row)]}".utf8)) }
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
        #expect(importer.absentCount == 1)
    }

    @Test(arguments: [
        ("{\"_id\":\"a\"}\n{\"_id\":\"b\"}\n{\"_id\":\"c\",\n\"_rev\":\"x\"}", "line 3, document 3: "),
        ("\r\n[\n{\"_id\":\"a\",\n\"n\":\"\\n\"},\r\n{\"_id\":\"_b\"}]", "line 5, document 2: "),
        ("{\"n\":[\n1,\n2],\"rows\":\n[{\"doc\":{\"_id\":\"a\"}},\n{\"doc\":1}]}", "line 5, document 2: "),
        ("{\n\"_id\":\"a\"}\n{\n\"_id\":\"_b\"}", "line 3, document 2: "),
        (
            "{\"docs\":[\n{\"_id\":\"a\"}\n]}\n{\"docs\":[{\"_id\":\"b\"},\n{\"_id\":\"c\",\"n\":}]}",
            "line 5, document 3: "
        ),
        ("{\"_id\":\"a\"}\n\n}", "line 3, after document 1: "), ("{\"_id\":\"a\"}\n{\"_id\":\n", "line 3: "),
    ])
    func `an error in a dump names the line and the number of its document`(_ dump: String, _ place: String)
        throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        for size in [1, 7, 1_000] {
            let error = #expect(throws: LoveseatError.self) {
                var importer = try DumpImporter(collection: try database.defaultCollection(), name: "dump")
                let bytes = Array(dump.utf8)
                for start in stride(from: 0, to: bytes.count, by: size) {
                    try importer.receive(Array(bytes[start..<min(start + size, bytes.count)]))
                }
                try importer.finish()
            }
            #expect(error?.message.hasPrefix("dump, \(place)") == true, "\(error?.message ?? "")")
        }
    }

    @Test func `a dump that is no JSON behind a document says behind which`() throws {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        let error = #expect(throws: LoveseatError.self) {
            try load(#"{"docs":[{"_id":"ok","_rev":"1-a"},{"_id":"d","n":[}]}"#, into: database)
        }
        #expect(error?.message.hasPrefix("dump, line 1, after document ") == true, "\(error?.message ?? "")")
        #expect(try database.defaultCollection().count == 0)
    }

    @Test func `a dump without documents says how to dump them`() throws {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        let error = #expect(throws: LoveseatError.self) {
            try load(#"{"rows":[{"id":"a","key":"a","value":{"rev":"1-a"}}]}"#, into: database)
        }
        #expect(error?.message.contains("include_docs=true") == true)
    }

    @Test func `documents of a cut dump that were saved stay`() throws {
        let scratch = try Scratch()
        let database = try scratch.database("main")
        let documents = (0..<1_500).map { "{\"_id\":\"d\($0)\",\"_rev\":\"1-a\"},\n" }.joined()
        let error = #expect(throws: LoveseatError.self) {
            try load("{\"docs\":[" + documents, into: database)
        }
        #expect(error?.message.contains("cut off") == true)
        #expect(try database.defaultCollection().count == 1_000)
    }
}
