import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// How a pull fetches revisions, and what it makes of those that do not come.
struct PullFetchTests {
    /// Answers requests for a document by itself.
    private static func singles(of id: String, _ answer: Pull.Answer) -> (Pull.Request) -> Pull.Answer? {
        { request in
            guard case .single(let wanted, _) = request, wanted.leaf.documentID == id else { return nil }
            return answer
        }
    }

    @Test func `documents are fetched in bulk, and those with attachments by themselves`() throws {
        var pull = Pull((0..<250).map { "d\($0)" })
        pull.alone = ["d3", "d200"]
        try pull.run()
        #expect(pull.log.count { $0.hasPrefix("bulk") } == 3)
        #expect(pull.log.filter { $0.hasPrefix("single") } == ["single d3", "single d200"])
        #expect(pull.pulled.count == 250)
        #expect(pull.store.transactions == [99, 100, 49, 1, 1])
    }

    @Test func `a remote without _bulk_get gives each document by itself`() throws {
        var pull = Pull(["a", "b", "c"])
        try pull.run { if case .bulk(let wanted) = $0 { .bulk([], singles: wanted) } else { nil } }
        #expect(pull.log.filter { $0.hasPrefix("single") } == ["single a", "single b", "single c"])
        #expect(pull.pulled == ["a", "b", "c"])
    }

    @Test(arguments: [401, 403, 429, 502, 503, 504]) func `a refused _bulk_get ends the pull`(_ status: Int) {
        var pull = Pull(["a"])
        let error = #expect(throws: LoveseatError.self) {
            try pull.run { if case .bulk = $0 { .refused(Answers.failure(status)) } else { nil } }
        }
        #expect(error?.code == LoveseatError.Code(10_000 + status))
        #expect(pull.checkpoint == nil)
    }

    @Test(arguments: [400, 403, 406, 410, 413, 414])
    func `a document that the remote refuses is one that fails`(
        _ status: Int
    ) throws {
        var pull = Pull(["a", "b"])
        pull.alone = ["a", "b"]
        try pull.run(Self.singles(of: "a", .refused(Answers.failure(status))))
        #expect(pull.failed == ["a"])
        #expect(pull.pulled == ["b"])
        #expect(pull.inbox.failed.sorted == ["a"])
        #expect(pull.checkpoint == "2")
        #expect(!pull.log.contains("presence"))
    }

    @Test(arguments: [408, 429, 502, 503, 504]) func `a remote that is too busy ends the pull`(_ status: Int)
    {
        var pull = Pull(["a", "b"])
        pull.alone = ["a", "b"]
        let error = #expect(throws: LoveseatError.self) {
            try pull.run(Self.singles(of: "a", .refused(Answers.failure(status))))
        }
        #expect(error?.code == LoveseatError.Code(10_000 + status))
        #expect(pull.checkpoint == nil)
        #expect(pull.inbox.failed.isEmpty)
    }

    @Test(arguments: [401, 405, 500, 501]) func `of a remote that still answers, a failure is the document's`(
        _ status: Int
    ) throws {
        for answers in [true, false] {
            var pull = Pull(["a", "b"])
            pull.alone = ["a", "b"]
            let single = Self.singles(of: "a", .refused(Answers.failure(status)))
            func answer(_ request: Pull.Request) -> Pull.Answer? {
                if case .presence = request { .presence(answers) } else { single(request) }
            }
            if answers {
                try pull.run(answer)
                #expect(pull.failed == ["a"])
                #expect(pull.checkpoint == "2")
            } else {
                #expect(throws: LoveseatError.self) { try pull.run(answer) }
                #expect(pull.inbox.failed.isEmpty)
                #expect(pull.checkpoint == nil)
            }
            // The other one is stored in either case.
            #expect(pull.store.revisions[ExactText("b")] != nil)
        }
    }

    @Test func `an answer that is damaged, or another revision, is a failure of its document`() throws {
        for answer in [
            Pull.Answer.damaged(LoveseatError(.remoteError, "cut")),
            .single(try Pull.fetched("a", "1-bb")),
        ] {
            var pull = Pull(["a", "b"])
            pull.alone = ["a"]
            try pull.run(Self.singles(of: "a", answer))
            #expect(pull.failed == ["a"])
            #expect(pull.pulled == ["b"])
            #expect(pull.inbox.failed.sorted == ["a"])
        }
    }

    @Test func `a newer revision than the listed one is as good`() throws {
        var pull = Pull(["a"])
        pull.alone = ["a"]
        try pull.run(Self.singles(of: "a", .single(try Pull.fetched("a", "2-bb"))))
        #expect(pull.pulled == ["a"])
    }

    @Test(arguments: ["1-aa", "1-bb", "2-aa"])
    func `an answer of _bulk_get is compared with what was asked for`(
        _ revision: String
    ) throws {
        let leaf = DocumentLeaf(documentID: "a", revision: try RevisionText.parse("1-aa"))
        let wanted = WantedLeaf(leaf: leaf, known: [])
        func documents(_ id: String, _ text: String) throws -> Int? {
            let answer = "{\"results\":[{\"id\":\"\(id)\",\"docs\":[\(text)]}]}"
            let items = BulkGetItem.read(try JSONElement(parsing: Array(answer.utf8)))
            return try wanted.documents(in: #require(items?.first))?.count
        }
        let good = "{\"ok\":{\"_id\":\"a\",\"_rev\":\"\(revision)\"}}"
        #expect(try documents("a", good) == (revision == "1-bb" ? nil : 1))
        #expect(try documents("b", good) == nil)
        #expect(try documents("a", "") == nil)
        #expect(try documents("a", "{\"ok\":{\"_id\":\"b\",\"_rev\":\"\(revision)\"}}") == nil)
        #expect(try documents("a", good + ",{\"error\":{\"error\":\"not_found\"}}") == nil)
        #expect(try documents("a", good + ",{\"ok\":{\"_id\":\"a\",\"_rev\":7}}") == nil)
    }

    // MARK: Documents that are not there

    @Test(arguments: [true, false]) func `a listed revision that is not there is asked for at the end`(
        _ comes: Bool
    ) throws {
        var pull = Pull(["a", "b"])
        pull.alone = ["a"]
        var requests = 0
        try pull.run { request in
            guard case .single = request else { return nil }
            requests += 1
            return comes && requests > 1 ? nil : .single(nil)
        }
        #expect(
            pull.log == [
                "changes -", "bulk a b", "single a", "changes 2", "listing a", "bulk a", "single a",
            ]
        )
        #expect(pull.failed == (comes ? [] : ["a"]))
        #expect(pull.inbox.failed.isEmpty == comes)
        #expect(pull.checkpoint == "2")
    }

    @Test func `documents that failed in an earlier session are asked for first`() throws {
        var pull = Pull(["a", "b", "c"], since: 3)
        pull.inbox.failed = ["a", "gone"]
        try pull.run()
        #expect(pull.log == ["listing a gone", "bulk a", "changes 3"])
        #expect(pull.pulled == ["a"])
        #expect(pull.inbox.failed.isEmpty)
        // If all is listed anyway, they are not.
        var new = Pull(["a"])
        new.inbox.failed = ["a"]
        try new.run()
        #expect(new.log.first == "changes -")
        #expect(new.inbox.failed.isEmpty)
    }

    @Test func `a document whose row may be one that cannot be read stays to be asked for`() throws {
        var pull = Pull([], since: 3)
        pull.inbox.failed = ["a"]
        try pull.run { request in
            guard case .listing = request else { return nil }
            var listing = ChangesListing()
            listing.isReadable = false
            return .listing(listing)
        }
        #expect(pull.failed == ["a"])
        #expect(pull.inbox.failed.sorted == ["a"])
    }

    // MARK: Attachments

    @Test func `attachments that are left out are asked for, if they are not here`() throws {
        var pull = Pull(["a"])
        pull.alone = ["a"]
        pull.store.revisions[ExactText("a")] = [try RevisionText.parse("1-bb")]
        let digest = BlobDigest(sha1: [UInt8](repeating: 7, count: 20)).text
        let body =
            ",\"x\":{\"@type\":\"blob\",\"digest\":\"\(digest)\",\"length\":1,\"content_type\":\"a/b\"}"
        let lacking = try Pull.fetched("a", "1-aa", body, blobs: TestBlobs(areHere: false))
        try pull.run { request in
            guard case .single(let wanted, _) = request, !wanted.known.isEmpty else { return nil }
            return .single(lacking)
        }
        #expect(pull.log.filter { $0.hasPrefix("single") } == ["single a known", "single a"])
        #expect(pull.pulled == ["a"])
    }

    @Test(arguments: [true, false])
    func `a stub for an attachment that is not here has the document sent again`(
        _ comes: Bool
    ) throws {
        var pull = Pull(["a", "b"])
        pull.store.results["a"] = [.lacksAttachments]
        let stub = ",\"_attachments\":{\"x\":{\"stub\":true,\"revpos\":1}}"
        let again = try Pull.fetched("a", "1-aa", comes ? "" : stub)
        try pull.run(Self.singles(of: "a", .single(again)))
        #expect(pull.log == ["changes -", "bulk a b", "single a", "changes 2"])
        #expect(pull.pulled == (comes ? ["a", "b"] : ["b"]))
        #expect(pull.failed == (comes ? [] : ["a"]))
    }

    @Test func `a document that lacks attachments again and again is not fetched for ever`() throws {
        var pull = Pull(["a", "b"])
        pull.alone = ["a"]
        pull.store.results["a"] = [PulledResult](repeating: .lacksAttachments, count: 100)
        try pull.run()
        #expect(pull.log.count { $0 == "single a" } == 2)
        #expect(pull.failed == ["a"])
        #expect(pull.checkpoint == "2")
    }

    @Test(arguments: [401, 403, 404, 500]) func `a document that is refused the second time fails`(
        _ status: Int
    ) throws {
        var pull = Pull(["a"])
        pull.store.results["a"] = [.lacksAttachments]
        let answer = status == 404 ? Pull.Answer.single(nil) : .refused(Answers.failure(status))
        try pull.run(Self.singles(of: "a", answer))
        // One that is not there is asked for again at the end of the feed, and comes.
        #expect(pull.inbox.failed.sorted == (status == 404 ? [] : ["a"]))
        #expect(pull.checkpoint == "1")
    }

    // MARK: Storing

    @Test func `a document that cannot be stored fails, and one that the filter refuses does not`() throws {
        var pull = Pull(["a", "b", "c"])
        pull.store.results = ["a": [.failed(LoveseatError(.remoteError, "no"))], "b": [.filtered]]
        try pull.run()
        #expect(pull.failed == ["a", "b"])
        #expect(pull.inbox.failed.sorted == ["a"])
        #expect(pull.pulled == ["c"])
    }

    @Test func `a conflict is resolved before the checkpoint is saved`() throws {
        var pull = Pull(["a"])
        pull.store.results["a"] = [.stored(hasConflict: true)]
        try pull.run()
        let resolved = pull.reports.firstIndex { if case .resolve = $0 { true } else { false } }
        let saved = pull.reports.firstIndex(of: .checkpoint(isLast: false))
        #expect(try #require(resolved) < #require(saved))
    }

    @Test func `of a document only the failure of one of its revisions is reported`() throws {
        var pull = Pull([])
        pull.rows = [Pull.row("a", ["1-aa", "1-bb"])]
        pull.alone = ["a"]
        try pull.run { request in
            guard case .single(let wanted, _) = request, wanted.leaf.revision.text == "1-aa" else {
                return nil
            }
            return .refused(Answers.failure(403))
        }
        #expect(pull.failed == ["a"])
        #expect(pull.inbox.failed.sorted == ["a"])
        #expect(pull.store.revisions[ExactText("a")]?.count == 1)
    }

    @Test func `documents that a gateway takes away are removed, if they were here`() throws {
        var pull = Pull(["c"])
        pull.rows += [Pull.row("a", isRevoked: true), Pull.row("b", isRevoked: true)]
        pull.store.revisions[ExactText("a")] = [try RevisionText.parse("1-aa")]
        let removed = try Pull.fetched("c", "1-aa", ",\"_removed\":true")
        pull.store.revisions[ExactText("c")] = [try RevisionText.parse("1-bb")]
        try pull.run { if case .bulk = $0 { .bulk([removed], singles: []) } else { nil } }
        #expect(pull.inbox.removed == ["a", "c"])
        #expect(pull.store.transactions == [])
        #expect(pull.checkpoint == "3")
    }
}
