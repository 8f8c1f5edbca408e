import LoveseatInspector
import LoveseatModel
import Testing

/// The parts without a server.
struct PartTests {
    private func changes(_ old: String, _ new: String) throws -> [String] {
        let difference = JSONDifference(from: try JSONValue(parsing: old), to: try JSONValue(parsing: new))
        return difference.changes.map { "\($0.kind) \($0.path)" }
    }

    @Test func `a difference names the places that changed`() throws {
        #expect(try changes("{}", "{}") == [])
        #expect(try changes(#"{"a":1,"b":2}"#, #"{"a":1,"b":3,"c":4}"#) == ["changed /b", "added /c"])
        #expect(try changes(#"{"a":{"b":{"c":1}}}"#, #"{"a":{"b":{}}}"#) == ["removed /a/b/c"])
        #expect(try changes(#"{"a":[1,2,3,4]}"#, #"{"a":[1,9,3,4]}"#) == ["changed /a/1"])
        #expect(try changes(#"{"a":[1,2,3]}"#, #"{"a":[1,2,5,6,3]}"#) == ["added /a/2", "added /a/3"])
        #expect(try changes(#"{"a":[1,2,3]}"#, #"{"a":[3]}"#) == ["removed /a/0", "removed /a/1"])
        #expect(try changes(#"{"a/b":1,"c~d":1}"#, "{}") == ["removed /a~1b", "removed /c~0d"])
        #expect(try changes(#"{"a":1}"#, #"{"a":[1]}"#) == ["changed /a"])
    }

    @Test func `a difference has a bound`() {
        let many = (0..<5_000).map { JSONValue($0) }
        let difference = JSONDifference(
            from: .array(many),
            to: .array(many.map { JSONValue(($0.int ?? 0) + 1) })
        )
        #expect(difference.changes.count == JSONDifference.maximumChanges)
        #expect(difference.isCut)
    }

    private func sighting(
        _ activity: PeerSighting.Activity,
        sent: UInt64 = 0,
        done: UInt64 = 0,
        of total: UInt64 = 0,
        key: String = "in-1"
    ) -> PeerSighting {
        var sighting = PeerSighting(
            key: key,
            direction: .incoming,
            wire: "BLIP",
            address: "127.0.0.1:4711",
            activity: activity
        )
        (sighting.sent, sighting.completed, sighting.total) = (sent, done, total)
        sighting.user = "ana"
        return sighting
    }

    @Test func `connections have rates, a lag, and events`() throws {
        var table = ConnectionTable()
        table.update(sighting(.connecting), at: 1_000)
        table.update(sighting(.busy, sent: 5, done: 500, of: 2_000), at: 1_500)
        table.endSecond(at: 2_000)
        var report = table.report(after: 0, at: 3_000)
        #expect(report["peers"]?[0]?["rate"]?["sent"]?.int == 5)
        #expect(report["peers"]?[0]?["pendingBytes"]?.int == 1_500)
        #expect(report["peers"]?[0]?["lag"]?.int == 1_500)
        #expect(report["peers"]?[0]?["why"]?.string == "pending")
        #expect(report["rates"]?[0] == [5, 0, 500])
        table.update(sighting(.idle, sent: 20, done: 2_000, of: 2_000), at: 4_000)
        table.endSecond(at: 4_500)
        report = table.report(after: 0, at: 5_000)
        #expect(report["peers"]?[0]?["lag"] == nil)
        #expect(report["peers"]?[0]?["upToDate"]?.int == 4_000)
        table.failed("doc", in: "a.b", on: "in-1", isPush: false, isRefusal: false, "no room", at: 5_000)
        table.update(sighting(.stopped, sent: 20), at: 6_000)
        report = table.report(after: 0, at: 7_000)
        #expect(report["peers"] == [])
        let kinds = report["events"]?.array?.compactMap { $0["kind"]?.string }
        #expect(kinds == ["connected", "transferred", "up-to-date", "transferred", "failed", "disconnected"])
        #expect(report["events"]?[4]?["why"]?.string == "not-pulled")
        #expect(table.report(after: 4, at: 0)["events"]?.array?.count == 2)
        #expect(table.report(after: .max, at: 0)["events"] == [])
    }

    @Test func `a peer's failures are counted once each, and others do not push them out`() throws {
        var table = ConnectionTable()
        table.update(sighting(.idle, key: "in-1"), at: 1_000)
        table.update(sighting(.idle, key: "in-2"), at: 1_000)
        for _ in 0..<2 {
            table.failed("doc", in: "a.b", on: "in-1", isPush: false, isRefusal: true, "may not", at: 2_000)
        }
        for number in 0..<3_000 {
            table.failed(
                "doc\(number)",
                in: "a.b",
                on: "in-2",
                isPush: false,
                isRefusal: true,
                "may not",
                at: 3_000
            )
        }
        let peers = table.report(after: 0, at: 4_000)["peers"]?.array
        #expect(peers?.map { $0["failures"]?.int } == [1, 3_000])
        #expect(peers?.map { $0["title"]?.string } == ["ana (1)", "ana (2)"])
        #expect(peers?.first?["why"]?.string == "refused")
        #expect(peers?.first?["error"]?.string == "may not")
    }

    @Test func `documents of the same ID in two collections are two failures`() throws {
        var table = ConnectionTable()
        table.update(sighting(.idle), at: 1_000)
        for collection in ["a.b", "a.c", "a.b"] {
            table.failed("doc", in: collection, on: "in-1", isPush: false, isRefusal: true, "no", at: 2_000)
        }
        #expect(table.report(after: 0, at: 3_000)["peers"]?[0]?["failures"]?.int == 2)
    }

    @Test func `a commit beside a look that failed is seen by the next one`() {
        var version = SeenVersion()
        var seen: [Bool] = []
        for look in [nil, 1, 1, nil, nil, 2, 2, nil, 2, 3] as [Int?] { seen.append(version.see(look)) }
        // The first success is what pages have read; a failure and its end are each told once.
        #expect(seen == [false, false, false, true, false, true, false, true, true, true])
    }

    @Test func `earlier peers are recorded once, with their last sync`() throws {
        var table = ConnectionTable()
        table.update(sighting(.idle), at: 1_000)
        let changes = [table.drainPastChange(), table.drainPastChange()]
        let recorded = try #require(changes[0])
        #expect(changes[1] == nil)
        var again = ConnectionTable(past: recorded)
        again.update(sighting(.connecting, key: "in-7"), at: 9_000)
        again.update(sighting(.stopped, key: "in-7"), at: 10_000)
        let past = again.report(after: 0, at: 0)["past"]
        #expect(past?.array?.count == 1)
        #expect(past?[0]?["upToDate"]?.int == 1_000)
        #expect(past?[0]?["seen"]?.int == 10_000)
        #expect(ConnectionTable(past: "damaged").report(after: 0, at: 0)["past"] == [])
    }

    @Test func `the log keeps the last 1,000 events, and cuts what peers say`() {
        var log = PeerEventLog()
        let long = String(repeating: "x", count: 100_000)
        for time in 0..<5_000 { log.add(.connected, long, long, document: long, on: "in-1", at: Int64(time)) }
        let events = log.events(after: 0, limit: .max)
        #expect(events.count == 1_000)
        #expect(events.first?.number == 4_001)
        #expect(events.allSatisfy { $0.text.count <= 500 && $0.peer.count <= 500 })
        #expect(log.events(after: 4_990, limit: 3).map(\.number) == [4_991, 4_992, 4_993])
        #expect(log.events(after: -5, limit: 1).first?.number == 4_001)
    }

    @Test func `connections beyond the bound are not listed`() {
        var table = ConnectionTable()
        for number in 0..<3_000 { table.update(sighting(.idle, key: "in-\(number)"), at: 1) }
        #expect(table.report(after: 0, at: 1)["peers"]?.array?.count == ConnectionTable.maximumConnections)
    }

    @Test func `only a certificate makes a found peer a connected one`() {
        let fingerprint = String(repeating: "ab", count: 32)
        func found(_ id: String, hint: String?) -> MeshPicture.Found {
            MeshPicture.Found(
                id: id,
                peerID: id,
                name: "same name",
                path: "db",
                wire: "BLIP",
                fingerprintHint: hint,
                usesTLS: true,
                isPairing: false,
                interfaces: ["lo"]
            )
        }
        let report: JSONValue = [
            "peers": [
                ["key": "in-1", "title": "same name", "wire": "BLIP", "fingerprint": .string(fingerprint)]
            ]
        ]
        let mesh = MeshPicture.json(
            name: "db",
            ownID: "own",
            found: [
                found("a", hint: String(fingerprint.prefix(32))),
                found("b", hint: String(repeating: "cd", count: 16)),
                found("c", hint: ""), found("own", hint: String(fingerprint.prefix(32))),
            ],
            report: report,
            problem: nil
        )
        let nodes = mesh["nodes"]?.array ?? []
        let linked = nodes.filter { $0["links"]?.array?.isEmpty == false }.compactMap { $0["id"]?.string }
        #expect(linked == ["found a"])
        #expect(nodes.filter { $0["isSelf"] == true }.count == 1)
        #expect(nodes.count == 4)
    }
}
