import Foundation
import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatTesting
import Testing

// Group in ./test: programs
/// The replicator against a fake CouchDB in all its forms.
struct FakeCouchTests {
    static let forms: [[String]] = [
        [], ["--seqs", "int"], ["--touchdb"], ["--no-bulk-get"], ["--no-multipart"], ["--fail", "5"],
        ["--touchdb", "--no-multipart"],
    ]

    /// What every form has to bring: text and binary attachments, conflicts, tombstones with bodies, long histories, odd IDs.
    private func fill(_ couch: FakeCouch) async throws {
        try await couch.send("PUT", "/db")
        func put(_ id: String, _ json: String) async throws {
            let answer = try await couch.send("PUT", "/db/\(id)?new_edits=false", json)
            #expect(answer.status < 300, "\(id): \(answer.text)")
        }
        try await put("plain", #"{"_rev":"1-aa","n":1,"s":"ä€😀"}"#)
        for rev in ["aa", "bb"] {
            try await put("conflict", #"{"_revisions":{"start":2,"ids":["\#(rev)","0"]},"v":"\#(rev)"}"#)
        }
        try await put(
            "gone",
            #"{"_revisions":{"start":3,"ids":["c","b","a"]},"_deleted":true,"why":"old"}"#
        )
        let ids = (1...300).reversed().map { "\"r\($0)\"" }.joined(separator: ",")
        try await put("deep", #"{"_revisions":{"start":300,"ids":[\#(ids)]}}"#)
        try await put("with%2Fslash", #"{"_rev":"1-a"}"#)
        try await put("a%2Bb%20c%3F", #"{"_rev":"1-a"}"#)
        try await put("_design/d", #"{"_rev":"1-a","views":{}}"#)
        try await put(
            "att",
            #"{"_rev":"1-a","_attachments":{"t.txt":{"content_type":"text/plain","data":"aGVsbG8=","revpos":1},"b c.bin":{"content_type":"application/x-bin","data":"AAECAw==","revpos":1}}}"#
        )
        try await put(
            "att",
            #"{"_revisions":{"start":2,"ids":["b","a"]},"n":2,"_attachments":{"t.txt":{"stub":true,"revpos":1},"new":{"data":"bmV3","revpos":2}}}"#
        )
    }

    @Test(arguments: forms) func `a pull brings everything, and a push to an empty one too`(_ form: [String])
        async throws
    {
        let couch = try await FakeCouch(form)
        try await fill(couch)
        let active = try ActiveSide()
        func run(_ url: URL, _ type: ReplicatorType, creates: Bool = false) async throws -> ActiveSide.Pass {
            var endpoint = CouchDBEndpoint(url: url)
            endpoint.createsTarget = creates
            return try await active.replicate(try active.configuration(endpoint, type))
        }
        let pull = try await run(couch.url(), .pull)
        #expect(pull.status.error == nil, "\(form)")
        #expect(pull.failed.isEmpty)
        #expect(try active.leaves("conflict") == ["2-bb", "2-aa"])
        #expect(try active.leaves("gone") == ["3-c deleted"])
        #expect(try active.history("deep").count == 300)
        for id in ["plain", "with/slash", "a+b c?", "_design/d"] {
            #expect(try active.leaves(id).count == 1, "\(id)")
        }
        let document = try #require(try active.collection.document(id: "att"))
        for (name, text) in [("t.txt", "hello"), ("new", "new")] {
            let attachment = try #require(document.attachment(name))
            #expect(attachment.length == UInt64(text.utf8.count))
        }
        // Again: nothing.
        #expect(try await run(couch.url(), .pull).pulled == [])

        let push = try await run(couch.url("copy"), .push, creates: true)
        #expect(push.status.error == nil, "\(form)")
        #expect(push.failed.isEmpty)
        for (path, wanted) in [
            ("conflict?conflicts=true", #""_conflicts": ["2-aa"]"#), ("deep?revs=true", #""start": 300"#),
            ("plain", #""s": "ä€😀""#), ("with%2Fslash", #""_rev": "1-a""#),
            ("a%2Bb%20c%3F", #""_rev": "1-a""#),
            ("gone?rev=3-c", #""why": "old""#), ("_design/d", #""views": {}"#),
        ] {
            let answer = try await couch.send("GET", "/copy/\(path)")
            #expect(answer.text.contains(wanted), "\(path): \(answer.text)")
        }
        for (name, text) in [("t.txt", "hello"), ("new", "new")] {
            let answer = try await couch.send("GET", "/copy/att/\(name)")
            #expect(answer.text == text, "\(name): \(answer.text)")
        }
        #expect(try await run(couch.url("copy"), .push).pushed == [])
    }

    @Test(arguments: [[], ["--touchdb"]]) func `an edited document keeps its attachments`(_ form: [String])
        async throws
    {
        let couch = try await FakeCouch(form)
        try await fill(couch)
        let active = try ActiveSide()
        _ = try await active.replicate(couch.url(), .pull)
        var document = try #require(try active.collection.document(id: "att"))
        document["edited"] = true
        try active.collection.save(&document)
        let pass = try await active.replicate(couch.url(), .pushAndPull)
        #expect(pass.status.error == nil)
        #expect(pass.pushed == ["att"])
        let answer = try await couch.send("GET", "/db/att")
        #expect(answer.text.contains(#""edited": true"#), "\(answer.text)")
        #expect(try await couch.send("GET", "/db/att/t.txt").text == "hello")
        // And back.
        let rev = try #require(try active.leaves("att").first)
        let put = try await couch.send(
            "PUT",
            "/db/att/third?rev=\(rev)",
            "3",
            headers: [("Content-Type", "application/octet-stream")]
        )
        #expect(put.status == 201, "\(put.text)")
        #expect(try await active.replicate(couch.url(), .pull).pulled == ["att"])
        let pulled = try #require(try active.collection.document(id: "att"))
        #expect(Set(["t.txt", "new", "third"].filter { pulled.attachment($0) != nil }).count == 3)
    }

    @Test func `a remote database that was made anew gets everything again`() async throws {
        let couch = try await FakeCouch()
        try await couch.send("PUT", "/db")
        let active = try ActiveSide()
        try active.save("a", [:])
        #expect(try await active.replicate(couch.url(), .pushAndPull).pushed == ["a"])
        try await couch.send("DELETE", "/db")
        try await couch.send("PUT", "/db")
        #expect(try await active.replicate(couch.url(), .pushAndPull).pushed == ["a"])
    }

    @Test func `a user name and password are sent`() async throws {
        let couch = try await FakeCouch(["--user", "ana:se:cret"])
        let login = [("Authorization", "Basic \(Data("ana:se:cret".utf8).base64EncodedString())")]
        try await couch.send("PUT", "/db", nil, headers: login)
        let active = try ActiveSide()
        try active.save("a", [:])
        #expect(try await active.replicate(couch.url(), .push).status.error?.code == .httpAuthRequired)
        var configuration = try active.configuration(CouchDBEndpoint(url: couch.url()), .push)
        configuration.authenticator = BasicAuthenticator(username: "ana", password: "se:cret")
        #expect(try await active.replicate(configuration).pushed == ["a"])
    }
}
