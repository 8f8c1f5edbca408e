import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// The values of a replication over CouchDB's wire.
struct SessionTests {
    private static let page = #"""
        {"results":[
        {"seq":"1-x","id":"a","changes":[{"rev":"1-a"},{"rev":"1-b"}]},
        {"seq":2,"id":"b]}\"","changes":[{"rev":"2-c"}],"deleted":true,"doc":{"results":[1]}}
        ],
        "last_seq":[3,"y"],"pending":7}

        """#

    @Test(arguments: [1, 2, 3, 7, 64, 10_000]) func `a list of changes is read in any pieces`(_ size: Int)
        throws
    {
        var parser = ChangesParser()
        let bytes = Array(Self.page.utf8)
        var rows: [RemoteChange] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            rows += try parser.receive(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        let end = try parser.finish()
        #expect(rows.map(\.documentID) == ["a", "b]}\""])
        #expect(rows.map(\.sequence.text) == ["\"1-x\"", "2"])
        #expect(rows.map(\.revisions) == [["1-a", "1-b"], ["2-c"]])
        #expect(rows.map(\.isDeleted) == [false, true])
        #expect(end.lastSequence?.text == "[3,\"y\"]")
        #expect(end.pending == 7)
    }

    @Test func `a list of changes may have its end in front, and no rows`() throws {
        var parser = ChangesParser()
        let rows = try parser.receive(Array(#"{"last_seq":5,"results":[]}"#.utf8))
        #expect(rows.isEmpty)
        #expect(try parser.finish().lastSequence?.text == "5")
    }

    @Test(arguments: [
        "", "{", #"{"results":["#, #"{"results":[{"seq":1"#, "[]", #"{"results":[1]}"#, #"{"results":[{}]}"#,
        #"{"results":{}}"#, "<html>", #"{"results":[{"seq":null,"id":"a","changes":[]}]}"#,
    ]) func `what is not a list of changes is refused`(_ text: String) {
        let error = #expect(throws: LoveseatError.self) {
            var parser = ChangesParser()
            _ = try parser.receive(Array(text.utf8))
            let end = try parser.finish()
            // An object without rows has no sequence either.
            guard end.lastSequence != nil else { throw LoveseatError(.remoteError, "") }
        }
        #expect(error?.code == .remoteError || error?.code == .webSocketAbnormalClose)
    }

    @Test func `a row without an end is not kept for ever`() throws {
        var parser = ChangesParser()
        _ = try parser.receive(Array(#"{"results":[{"id":""#.utf8))
        let error = #expect(throws: LoveseatError.self) {
            for _ in 0..<100 { _ = try parser.receive([UInt8](repeating: 0x61, count: 64 << 10)) }
        }
        #expect(error?.code == .remoteError)
    }

    @Test func `a sequence is sent as it came`() throws {
        func query(_ sequence: String) throws -> String {
            let since = try #require(RemoteSequence(json: sequence))
            return try #require(ChangesQuery(.all, since: since, limit: 10).request).query
        }
        #expect(try query("\"12-g1AAA_-\"").contains("since=12-g1AAA_-"))
        #expect(try query("12").contains("since=12"))
        #expect(try query(#"[3,"x"]"#).contains("since=%5B3%2C%22x%22%5D"))
    }

    @Test func `a remote without bodies is asked in the URL, as far as that goes`() throws {
        let few = ChangesQuery(.documents(["a", "b/c"]), since: nil, limit: 1, usesBody: false)
        let request = try #require(few.request)
        #expect(request.method == .get)
        #expect(request.query.contains("doc_ids=%5B%22a%22%2C%22b%2Fc%22%5D"))
        let many = ChangesQuery(
            .documents((0..<2_000).map { "document \($0)" }),
            since: nil,
            limit: 1,
            usesBody: false
        )
        let long = try #require(many.request)
        #expect(long.query.utf8.count < 1_000)
        #expect(!long.query.contains("filter"))
        #expect(ChangesQuery(.selector(.emptyObject), since: nil, limit: 1, usesBody: false).request == nil)
    }

    @Test func `a URL with known revisions stays below 7,000 bytes`() throws {
        let known = try (0..<500).map {
            try #require(RevisionID("\($0 + 1)-0123456789abcdef0123456789abcdef"))
        }
        let leaf = DocumentLeaf(documentID: "d", revision: try #require(RevisionID("900-a")))
        let request = RemoteRequest.revision(leaf, known: known)
        #expect(request.path.utf8.count + request.query.utf8.count < RemoteRequest.maximumTarget)
        #expect(request.query.contains("atts_since="))
    }

    @Test func `paths keep the slash of design documents and encode others`() {
        #expect(PathEncoding.document("_design/a b") == "/_design/a%20b")
        #expect(PathEncoding.document("a/b+c") == "/a%2Fb%2Bc")
        #expect(PathEncoding.document("..") == "/%2E%2E")
        #expect(PathEncoding.document("ä") == "/%C3%A4")
    }

    @Test func `the older of two checkpoints counts where one remembers the other`() throws {
        func sequence(_ text: String) throws -> RemoteSequence { try #require(RemoteSequence(json: text)) }
        var old = RemoteCheckpoint()
        old.advance(to: try sequence("\"1-a\""))
        old.checkpoint.completed.insert(1...5)
        var new = old
        new.advance(to: try sequence("\"2-b\""))
        new.checkpoint.completed.insert(6...9)
        #expect(old.joined(with: new).checkpoint.remote?.text == "\"1-a\"")
        #expect(new.joined(with: old).checkpoint.remote?.text == "\"1-a\"")
        #expect(new.joined(with: old).checkpoint.completed.completeUpTo == 5)
        #expect(new.joined(with: new).checkpoint.remote?.text == "\"2-b\"")
        #expect(new.joined(with: nil) == RemoteCheckpoint())
        var stranger = RemoteCheckpoint()
        stranger.advance(to: try sequence("\"2-z\""))
        #expect(new.joined(with: stranger).checkpoint.remote == nil)
        let copy = RemoteCheckpoint(JSONElement(new.json(time: 1)))
        #expect(copy.checkpoint == new.checkpoint)
        #expect(copy.earlier == new.earlier)
    }

    @Test func `a locked account is no refusal of a document`() {
        let locked = RemoteFailure(
            status: 403,
            body: Array(
                #"{"error":"forbidden","reason":"Account is temporarily locked due to multiple authentication failures"}"#
                    .utf8
            )
        )
        #expect(locked.isLockedOut)
        #expect(!locked.refusesDocument)
        let failure = locked.failure(of: "x")
        #expect(failure.isTransient)
        #expect(failure.retryAfter == 300)
        let plain = RemoteFailure(status: 400, body: Array("use https\n".utf8)).failure(of: "x")
        #expect(plain.message == "the peer answered 400 to x: use https")
        let page = RemoteFailure(status: 502, body: Array("<html>".utf8)).failure(of: "x")
        #expect(page.message == "the peer answered 502 to x: HTTP 502")
        let refused = RemoteFailure(status: 403, body: Array(#"{"error":"forbidden","reason":"no"}"#.utf8))
        #expect(refused.refusesDocument)
        #expect(!refused.failure(of: "x").isTransient)
        let busy = RemoteFailure(status: 429, body: [], retryAfter: 17).failure(of: "x")
        #expect(busy.isTransient)
        #expect(busy.retryAfter == 17)
    }

    @Test func `batches are divided by count and bytes, and halved`() {
        let batches = DocumentBatches.divide([5, 5, 5, 50, 1], count: 2, bytes: 20) { $0 }
        #expect(batches == [[5, 5], [5], [50], [1]])
        let halves = DocumentBatches.halves([1, 2, 3])
        #expect(halves?.0 == [1])
        #expect(halves?.1 == [2, 3])
        #expect(DocumentBatches.halves([1]) == nil)
    }
}
