import LoveseatCore
import LoveseatCouchDB
import LoveseatCouchDBReplication
import LoveseatCouchDBTesting
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// What CouchDB's clients see first, and rely on.
struct FirstAnswersTests {
    @Test func `who asks without credentials learns what answers, and nothing else`() async throws {
        let served = try await ServedDatabase {
            $0.authenticator = ListenerPasswordAuthenticator { user, password in
                ListenerPasswordAuthenticator.isEqual(password, user)
            }
            $0.allowsBasicWithoutTLS = true
        }
        for method in ["GET", "HEAD"] {
            for path in ["/", "/_up", "/_session"] {
                #expect(try await served.call(method, path).status == 200, "\(method) \(path)")
            }
        }
        #expect(try await served.call("GET", "/").json["couchdb"] == "Welcome")
        let session = try await served.call("GET", "/_session").json
        #expect(session["userCtx"]?["name"] == .null)
        #expect(session["userCtx"]?["roles"] == [])
        for path in ["/main", "/_all_dbs", "/_active_tasks", "/_uuids", "/main/_changes", "/main/d"] {
            #expect(try await served.call("GET", path).status == 401, "\(path)")
        }
        #expect(try await served.call("POST", "/").status == 401)
        #expect(try await served.call("GET", "/", as: "ana").status == 200)
        let wrong = try await served.call("GET", "/", nil, [("Authorization", "Basic YW5hOmJvYg==")])
        #expect(wrong.status == 401)
        await served.listener.stop()
    }

    @Test func `revisions begin with their start`() async throws {
        let served = try await ServedDatabase()
        let made = try await served.call("PUT", "/main/d", ["n": 1])
        let digest = try #require(made.json["rev"]?.string?.split(separator: "-").last)
        let wanted = "\"_revisions\":{\"start\":1,\"ids\":[\"\(digest)\"]}"
        #expect(try await served.call("GET", "/main/d?revs=true").text.contains(wanted))
        #expect(
            try await served.call(
                "GET",
                "/main/d?revs=true&open_revs=all",
                nil,
                [("Accept", "application/json")]
            ).text.contains(wanted)
        )
        let bulk = try await served.call("POST", "/main/_bulk_get?revs=true", ["docs": [["id": "d"]]])
        #expect(bulk.text.contains(wanted))
        _ = try await served.call("PUT", "/main/_local/a", ["n": 1])
        let local = try await served.call("GET", "/main/_local/a?revs=true")
        #expect(local.text.contains("\"_revisions\":{\"start\":0,\"ids\":[\"1\"]}"))
        #expect(local.json["n"] == 1)
        await served.listener.stop()
    }

    @Test func `changes are asked for in JSON`() async throws {
        let served = try await ServedDatabase()
        #expect(try await served.call("POST", "/main/_changes", [:]).status == 200)
        for headers in [[], [("Content-Type", "text/plain")]] {
            let (client, all) = (served.client, headers)
            let answer = try await offPool {
                try client.send("POST", "/main/_changes", all, body: Array("{}".utf8))
            }
            #expect(answer.status == 415)
            #expect(answer.json["error"] == "bad_content_type")
        }
        await served.listener.stop()
    }

    @Test(arguments: [JSONValue.bool(true), false, nil, 1, "x"])
    func `a document cannot say that it was removed`(_ value: JSONValue) async throws {
        let served = try await ServedDatabase()
        let document: JSONValue = ["_id": "d", "_removed": value]
        for (method, path) in [("PUT", "/main/d"), ("POST", "/main"), ("PUT", "/main/_design/d")] {
            let answer = try await served.call(method, path, path == "/main" ? document : ["_removed": value])
            #expect(answer.status == 400, "\(path) \(answer.text)")
            #expect(answer.json["error"] == "doc_validation", "\(path) \(answer.text)")
        }
        for isNew in [true, false] {
            var given = document
            given["_rev"] = isNew ? nil : "1-00000000000000000000000000000001"
            _ = try await served.call(
                "POST",
                "/main/_bulk_docs",
                ["docs": [given], "new_edits": .bool(isNew)]
            )
        }
        #expect(try await served.call("GET", "/main").json["doc_count"] == 0)
        await served.listener.stop()
    }

    @Test func `a new database begins at 0`() async throws {
        let served = try await ServedDatabase { $0.allowsDatabaseCreation = true }
        #expect(try await served.call("PUT", "/other").status == 201)
        #expect(try await served.call("GET", "/other").json["update_seq"] == 0)
        let changes = try await served.call("GET", "/other/_changes").json
        #expect(changes["last_seq"] == 0)
        #expect(changes["pending"] == 0)
        for number in 1...3 { _ = try await served.call("PUT", "/other/d\(number)", [:]) }
        #expect(try await served.call("GET", "/other/_changes").json["last_seq"] == 3)
        #expect(try await served.call("GET", "/other/_changes?since=1").ids.count == 2)
        await served.listener.stop()
    }

    @Test(arguments: [
        "", "&feed=longpoll&timeout=100", "&feed=continuous&timeout=100", "&feed=eventsource&timeout=100",
    ])
    func `a database that is made anew begins at 0, and a reader of the former one misses nothing`(
        _ feed: String
    )
        async throws
    {
        let served = try await ServedDatabase { $0.allowsDatabaseCreation = true }
        var ends: [String] = []
        for made in 0..<3 {
            #expect(try await served.call("PUT", "/other").status == 201)
            let begin = try await served.call("GET", "/other").json["update_seq"]
            #expect(
                begin.map { $0.int == 0 || $0.string?.hasPrefix("0-") == true } == true,
                "\(begin ?? nil)"
            )
            for number in 0..<5 + made { _ = try await served.call("PUT", "/other/d\(number)", [:]) }
            let changes = try await served.call("GET", "/other/_changes").json
            let sequences = (changes["results"]?.array ?? []).compactMap {
                $0["seq"].map { $0.string ?? "\($0)" }
            }
            #expect(sequences.map { $0.prefix { $0 != "-" } } == (1...5 + made).map { "\($0)" })
            // From each of its sequences the rest follows, and from those of an earlier database everything.
            for (number, sequence) in sequences.enumerated() {
                let text = try await served.call("GET", "/other/_changes?since=\(sequence)\(feed)&limit=100")
                    .text
                #expect(
                    text.split(separator: "\"changes\"", omittingEmptySubsequences: false).count - 1
                        == sequences.count - number - 1,
                    "\(text)"
                )
            }
            for end in ends {
                let text = try await served.call("GET", "/other/_changes?since=\(end)\(feed)&limit=100").text
                #expect(
                    text.split(separator: "\"changes\"", omittingEmptySubsequences: false).count - 1
                        == sequences.count,
                    "\(text)"
                )
            }
            ends.append(sequences.last ?? "")
            let document = try await served.call("GET", "/other/d0?local_seq=true").json
            #expect(document["_local_seq"].map { $0.string ?? "\($0)" } == sequences[0])
            #expect(try await served.call("GET", "/other/_changes?since=x").status == 400)
            #expect(try await served.call("DELETE", "/other").status == 200)
        }
        await served.listener.stop()
    }

    // MARK: Mango

    /// A number near one at which a type or an exact double ends.
    private static func random(_ generator: inout SeededGenerator) -> JSONNumber {
        let edges: [Int64] = [0, 1 << 53, (1 << 53) + 1, Int64.max, Int64.min, 1_895_131_128_281_567_232]
        let near = edges[Int.random(in: 0..<edges.count, using: &generator)]
        let (value, overflow) = near.addingReportingOverflow(Int64.random(in: -3...3, using: &generator))
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: return .integer(overflow ? near : value)
        case 1: return .unsigned(UInt64.max - UInt64.random(in: 0...4, using: &generator))
        case 2: return .double(Double(near))
        default: return .double(Double(Int64.random(in: -9...9, using: &generator)) / 2)
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `numbers are compared by their values, whatever they are written as`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        // All of them are halves of integers below 2^65.
        func doubled(_ number: JSONNumber) throws -> Int128 {
            switch number {
            case .integer(let value): Int128(value) * 2
            case .unsigned(let value): Int128(value) * 2
            case .double(let value): try #require(Int128(exactly: value * 2))
            case .text: 0
            }
        }
        for _ in 0..<500 {
            let (one, other) = (Self.random(&generator), Self.random(&generator))
            let (left, right) = (try doubled(one), try doubled(other))
            let wanted: Selector.Comparison = left < right ? .before : left > right ? .after : .same
            #expect(
                LoveseatCouchDBReplication.Collation.compare(.number(one), .number(other)) == wanted,
                "\(one) \(other)"
            )
        }
    }

    @Test(arguments: [false, true])
    func `integers of 64 bits are found exactly`(_ isIndexed: Bool) async throws {
        let served = try await ServedDatabase()
        let all: [JSONNumber] = [
            .integer(1_895_131_128_281_567_232), .integer(1_895_131_128_281_567_233),
            .integer(1_895_131_128_281_567_234), .integer(.max), .integer(.min), .unsigned(.max),
            .unsigned(.max - 1), .text("18446744073709551616"), .text("18446744073709551617"), .double(0.5),
        ]
        for (index, number) in all.enumerated() {
            _ = try await served.call("PUT", "/main/d\(index)", ["id": .number(number)])
        }
        if isIndexed { _ = try await served.call("POST", "/main/_index", ["index": ["fields": ["id"]]]) }
        func found(_ selector: JSONValue) async throws -> Set<String> {
            let answer = try await served.call(
                "POST",
                "/main/_find",
                ["selector": ["id": selector], "limit": 99]
            )
            return Set(answer.json["docs"]?.array?.compactMap { $0["_id"]?.string } ?? [])
        }
        for (index, number) in all.enumerated() {
            let value = JSONValue.number(number)
            #expect(try await found(value) == ["d\(index)"], "\(number)")
            #expect(try await found(["$in": [value]]) == ["d\(index)"], "\(number)")
            let orders = all.map { LoveseatCouchDBReplication.Collation.compare(.number($0), value) }
            for (sign, wanted) in [("$gt", Selector.Comparison.after), ("$lt", .before)] {
                let ids = Set(orders.indices.filter { orders[$0] == wanted }.map { "d\($0)" })
                #expect(try await found(.object([sign: value])) == ids, "\(sign) \(number)")
            }
        }
        await served.listener.stop()
    }

    @Test(arguments: [false, true])
    func `a name that begins with a dollar sign is written with a backslash`(_ isIndexed: Bool) async throws {
        let served = try await ServedDatabase()
        _ = try await served.call("PUT", "/main/one", ["$price": 5, "in": ["$unit": "kg", "a.b": 1]])
        _ = try await served.call("PUT", "/main/two", ["$price": 7])
        if isIndexed {
            for field in ["\\$price", "in.\\$unit"] {
                let made = try await served.call(
                    "POST",
                    "/main/_index",
                    ["index": ["fields": [.string(field)]]]
                )
                #expect(made.status == 200)
            }
        }
        let cases: [(JSONValue, [String])] = [
            (["\\$price": 5], ["one"]), (["\\$price": ["$gt": 4]], ["one", "two"]),
            (["in.\\$unit": "kg"], ["one"]), (["in": ["\\$unit": "kg"]], ["one"]),
            (["in.a\\.b": 1], ["one"]), (["$or": [["\\$price": 5], ["\\$price": 7]]], ["one", "two"]),
        ]
        for (selector, wanted) in cases {
            let answer = try await served.call(
                "POST",
                "/main/_find",
                ["selector": selector, "fields": ["_id", "\\$price"]]
            )
            let documents = answer.json["docs"]?.array ?? []
            #expect(Set(documents.compactMap { $0["_id"]?.string }) == Set(wanted), "\(selector)")
            #expect(documents.allSatisfy { $0["$price"] != nil })
            // What is shown of a selector means the same.
            let parsed = try Selector(parsing: selector)
            #expect(try Selector(parsing: parsed.description).description == parsed.description)
        }
        let refused = try await served.call("POST", "/main/_find", ["selector": ["$price": 5]])
        #expect(refused.json["error"] == "invalid_operator")
        await served.listener.stop()
    }
}
