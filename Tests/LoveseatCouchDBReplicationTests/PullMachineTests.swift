import LoveseatCouchDBReplication
import LoveseatModel
import LoveseatReplication
import Testing

/// How a pull reads the remote's feed, and how far it counts it as read.
struct PullMachineTests {
    @Test func `an empty feed ends the pull`() throws {
        var pull = Pull([])
        try pull.run()
        #expect(pull.log == ["changes -"])
        #expect(pull.reports == [.busy(true), .checkpoint(isLast: true), .busy(false)])
    }

    @Test func `pages are pulled in turn, each up to its end`() throws {
        var pull = Pull(["a", "b", "c"])
        pull.pageSize = 2
        try pull.run()
        #expect(pull.log == ["changes -", "bulk a b", "changes 2", "bulk c", "changes 3"])
        #expect(pull.pulled == ["a", "b", "c"])
        #expect(pull.checkpoint == "3")
        #expect(pull.inbox.log == ["marked", "marked"])
        #expect(pull.reports.count { $0 == .checkpoint(isLast: false) } == 2)
    }

    @Test func `a page does not count as read while a document of it is under way`() throws {
        var pull = Pull(["a"])
        pull.alone = ["a"]
        var seen: [String?] = []
        var machine = pull.machine
        try pull.run { request in
            if case .single = request { seen.append(machine.progress.checkpoint.remote?.text) }
            return nil
        }
        machine = pull.machine
        #expect(seen == [nil])
        #expect(machine.progress.checkpoint.remote?.text == "1")
    }

    @Test func `what is here is not fetched`() throws {
        var pull = Pull(["a", "b"])
        pull.store.revisions[ExactText("a")] = [try RevisionText.parse("1-aa")]
        try pull.run()
        #expect(pull.log == ["changes -", "bulk b", "changes 2"])
        #expect(pull.checkpoint == "2")
    }

    @Test func `a session goes on from its checkpoint`() throws {
        var pull = Pull(["a", "b", "c"], since: 2)
        try pull.run()
        #expect(pull.log == ["changes 2", "bulk c", "changes 3"])
    }

    @Test func `only the documents that were chosen are pulled`() throws {
        var pull = Pull(["a", "b"], documentIDs: ["b"])
        pull.rows.append("\"id\":\"_user/x\",\"changes\":[]")
        try pull.run()
        #expect(pull.log == ["changes -", "bulk b", "changes 3"])
        #expect(pull.failed == [])
    }

    @Test func `a document that cannot be stored here is reported, and the others are pulled`() throws {
        var pull = Pull(["a", "_local/x", "_x"])
        pull.rows.append(Pull.row("b", ["1-aa", "x"]))
        try pull.run()
        #expect(pull.failed == ["_local/x", "_x", "b"])
        #expect(pull.inbox.failed.sorted == ["_local/x", "_x", "b"])
        #expect(pull.store.revisions[ExactText("b")] != nil)
        #expect(pull.checkpoint == "4")
    }

    // MARK: Feeds that are wrong

    @Test func `a remote that does not know a sequence is read from the beginning`() throws {
        for isContinuous in [false, true] {
            var pull = Pull(["a", "b"], since: 2, isContinuous: isContinuous)
            var isFirst = true
            try pull.run { request in
                guard isFirst else { return nil }
                isFirst = false
                return .refused(Answers.failure(400, "Malformed sequence supplied in 'since'"))
            }
            #expect(pull.log.prefix(3) == ["changes 2", "changes -", "bulk a b"])
            #expect(pull.checkpoint == "2")
        }
    }

    @Test(arguments: [400, 401, 403, 404, 429, 500, 503]) func `a refused feed ends the pull`(_ status: Int)
        throws
    {
        var pull = Pull(["a"], since: 1)
        let error = #expect(throws: LoveseatError.self) {
            try pull.run { _ in .refused(Answers.failure(status)) }
        }
        #expect(error?.code == LoveseatError.Code(10_000 + status))
        #expect(pull.checkpoint == "1")
    }

    @Test(arguments: [1, 4, 5]) func `a remote that lists nothing although changes follow is asked again`(
        _ count: Int
    ) throws {
        var pull = Pull(["a"])
        let empty = try Pull.page([], 0, pending: 1)
        var left = count
        func answer(_ request: Pull.Request) -> Pull.Answer? {
            guard case .changes = request, left > 0 else { return nil }
            left -= 1
            return empty
        }
        guard count > 4 else {
            try pull.run(answer)
            #expect(pull.pulled == ["a"])
            #expect(pull.log.count { $0.hasPrefix("pause") } == count)
            #expect(pull.log.contains("pause 250"))
            return
        }
        let error = #expect(throws: LoveseatError.self) { try pull.run(answer) }
        #expect(error?.code == .remoteError)
        #expect(pull.checkpoint == nil)
    }

    @Test func `a remote that selects documents may count others`() throws {
        var pull = Pull([], selection: .selector(.emptyObject))
        let empty = try Pull.page([], 9, pending: 1)
        try pull.run { _ in empty }
        #expect(pull.log == ["changes -"])
        #expect(pull.checkpoint == "9")
    }

    @Test func `a feed that does not go on ends the pull`() throws {
        var pull = Pull(["a"], since: 7)
        let page = try Pull.page(["{\"seq\":7,\(Pull.row("a"))}"], 7)
        let error = #expect(throws: LoveseatError.self) {
            try pull.run { if case .changes = $0 { page } else { nil } }
        }
        #expect(error?.code == .remoteError)
    }

    @Test func `a feed that lists the same again and again ends the pull`() throws {
        var pull = Pull(["a"])
        var number = 0
        let error = #expect(throws: LoveseatError.self) {
            try pull.run { request in
                guard case .changes = request else { return nil }
                number += 1
                return try? Pull.page(["{\"seq\":\(number),\(Pull.row("a"))}"], number)
            }
        }
        #expect(error?.code == .remoteError)
        #expect(number == RepeatedPages.maximum + 2)
    }

    // MARK: Rows that cannot be read

    @Test func `rows that cannot be read are reported, remembered, and read again in the next session`()
        throws
    {
        var pull = Pull(["a"])
        let broken = try Pull.page(["{\"seq\":1,\(Pull.row("a"))}", "{\"id\":\"b\"}"], 2)
        try pull.run { request in
            if case .changes(let query, _) = request, query.since == nil { broken } else { nil }
        }
        #expect(pull.failed == ["b"])
        #expect(pull.machine.progress.unreadable == [Answers.sequence(1)])
        #expect(pull.checkpoint == "2")

        // It still cannot be read, and then it can.
        for isReadable in [false, true] {
            var next = Pull(["a", "b"])
            next.machine.begin(at: pull.machine.progress)
            let again = try Pull.page(["{\"id\":\"b\"}"], 2)
            try next.run { request in
                guard !isReadable, case .changes(let query, _) = request, query.since?.text == "1" else {
                    return nil
                }
                return again
            }
            #expect(next.log.first == "changes 1")
            #expect(next.log.last == "changes 2")
            #expect(next.machine.progress.unreadable.count == (isReadable ? 0 : 1))
            #expect(next.failed == (isReadable ? [] : ["b"]))
            #expect(next.pulled == (isReadable ? ["b"] : []))
        }
    }

    @Test func `a place is not forgotten if the answer about it is cut`() throws {
        var start = RemoteCheckpoint()
        start.advance(to: Answers.sequence(2), past: [Answers.sequence(1)])
        var pull = Pull(["a", "b"])
        pull.machine.begin(at: start)
        let end = ChangesParser.End(lastSequence: Answers.sequence(1))
        try pull.run { request in
            guard case .changes(let query, _) = request, query.since?.text == "1" else { return nil }
            return .changes(ChangesPage(end: end, isWhole: false), after: .zero)
        }
        #expect(pull.machine.progress.unreadable == [Answers.sequence(1)])
    }

    @Test func `places say nothing about a remote that does not know them`() throws {
        var start = RemoteCheckpoint()
        start.advance(to: Answers.sequence(2), past: [Answers.sequence(1)])
        var pull = Pull(["a", "b"])
        pull.machine.begin(at: start)
        try pull.run { request in
            guard case .changes(let query, _) = request, query.since?.text == "1" else { return nil }
            return .refused(Answers.failure(400, "since"))
        }
        #expect(pull.log == ["changes 1", "changes -", "bulk a b", "changes 2"])
        #expect(pull.machine.progress.unreadable == [])
    }

    // MARK: Waiting

    @Test func `a continuous pull waits at the end of the feed`() throws {
        var pull = Pull(["a"], isContinuous: true)
        try pull.run()
        #expect(pull.log == ["changes -", "bulk a", "changes 1", "changes 1 waiting"])
        #expect(pull.reports.suffix(2) == [.checkpoint(isLast: true), .busy(false)])
        // A remote that does not wait is asked once a second.
        let fast = try Pull.page([], 1, after: .zero)
        let slow = try Pull.page([], 1, after: .seconds(60))
        for answer in [fast, slow] {
            var given = [answer]
            try pull.run { request in
                if case .changes = request, !given.isEmpty { given.removeFirst() } else { nil }
            }
        }
        #expect(
            pull.log.dropFirst(4) == ["pause 1000", "changes 1 waiting", "changes 1 waiting"]
        )
        // What comes is pulled.
        pull.rows.append(Pull.row("b"))
        var isNew = true
        let page = try Pull.page(["{\"seq\":2,\(Pull.row("b"))}"], 2)
        try pull.run { request in
            defer { if case .changes = request { isNew = false } }
            if case .changes = request, isNew { return page } else { return nil }
        }
        #expect(pull.pulled == ["a", "b"])
        #expect(pull.log.suffix(3) == ["bulk b", "changes 2", "changes 2 waiting"])
    }

    @Test func `while the feed waits, documents that failed are asked for again, less and less often`() throws
    {
        var pull = Pull(["a"], isContinuous: true)
        pull.alone = ["a"]
        func answer(_ request: Pull.Request) -> Pull.Answer? {
            if case .single = request { .refused(Answers.failure(403)) } else { nil }
        }
        try pull.run(answer)
        #expect(pull.log.last == "changes 1 waiting for 2")
        for delay in [4, 8, 16] {
            var isUp = false
            try pull.run { request in
                guard case .changes = request, !isUp else { return answer(request) }
                isUp = true
                return .timeIsUp
            }
            #expect(pull.log.suffix(2).first == "single a")
            #expect(pull.log.last == "changes 1 waiting for \(delay)")
        }
        var isUp = false
        try pull.run { request in
            guard case .changes = request, !isUp else { return nil }
            isUp = true
            return .timeIsUp
        }
        #expect(pull.log.last == "changes 1 waiting")
        #expect(pull.inbox.failed.isEmpty)
    }
}
