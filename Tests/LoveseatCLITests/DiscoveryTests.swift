import Foundation
import LoveseatTesting
import Testing

/// Processes on several hosts that find each other. The hosts are network namespaces, so that nothing is sent to a real network.
@Suite(
    .serialized,
    .enabled(if: NetworkNamespaces.areAllowed, "needs root and ip netns"),
    .timeLimit(.minutes(3))
)
struct DiscoveryTests {
    private func found(_ name: String, _ word: String = "found") -> ([String], [String]) -> Bool {
        { lines, _ in lines.contains { $0.hasPrefix("\(word)\t\(name)\t") } }
    }

    private let browse = ["browse", "--discovery", "multicast"]

    @Test
    func
        `a peer is found within a second, syncs by its name over TLS, and is gone two seconds after it stops`()
        throws
    {
        let network = try NetworkNamespaces(2)
        let (ana, bob) = (network.hosts[0], network.hosts[1])
        let browser = try network.start(bob, browse)
        let server = try network.serve(ana, "--advertise-as", "Ana's trips. ✓")
        // Three probes come first.
        try browser.wait(for: "the peer", seconds: 2, found("Ana's trips. ✓"))
        var times: [Double] = []
        for _ in 0..<10 {
            let second = try network.start(bob, browse)
            times.append(try second.wait(for: "the peer", seconds: 5, found("Ana's trips. ✓")))
            second.end()
        }
        // All ten on an idle machine. Each includes the start of a process, for which a busy one takes its time.
        #expect(times.sorted()[5] < 1 && times.sorted()[9] < 3, "\(times)")
        try network.folder.run("create", "copy")
        let sync = ["sync", "copy", "--find", "Ana's trips. ✓", "--discovery", "multicast"]
        let synced = try network.start(bob, sync + ["--pin", server.pin])
        synced.process.waitUntilExit()
        synced.waitForEnd()
        #expect(synced.process.terminationStatus == 0, "\(synced.errors)")
        #expect(try network.folder.run("get", "copy", "host1").output.contains("\"n\": 1"))
        // Nobody is trusted because of a name.
        let unpinned = try network.start(bob, sync)
        unpinned.process.waitUntilExit()
        #expect(unpinned.process.terminationStatus == 64)
        let wrong = try network.start(bob, sync + ["--pin", String(repeating: "ab", count: 32)])
        wrong.process.waitUntilExit()
        wrong.waitForEnd()
        #expect(wrong.process.terminationStatus == 77, "\(wrong.errors)")
        #expect(server.end() == 0)
        try browser.wait(for: "the end", seconds: 2.5, found("Ana's trips. ✓", "gone"))
        #expect(browser.errors == [])
        #expect(browser.end() == 0)
    }

    @Test
    func
        `two peers with one name get different ones, also in one process, and sync by ID finds the right one`()
        throws
    {
        let network = try NetworkNamespaces(3)
        let browser = try network.start(network.hosts[2], browse)
        let first = try network.serve(
            network.hosts[0],
            "--advertise-as",
            "trips",
            "--couchdb",
            "--couchdb-port",
            "0"
        )
        let second = try network.serve(network.hosts[1], "--advertise-as", "trips")
        try browser.wait(for: "three names", seconds: 10) { lines, _ in
            ["trips", "trips #2", "trips #3"].allSatisfy { name in
                lines.contains { $0.split(separator: "\t").dropFirst().first.map(String.init) == name }
            }
        }
        let ids = Set(
            browser.lines.compactMap { $0.split(separator: "\t").dropFirst(2).first.map(String.init) }
        )
        #expect(ids.count == 2)
        for (server, host) in [(first, 1), (second, 2)] {
            let id = try network.folder.read(id: "db\(host)", among: ids)
            try network.folder.run("create", "copy\(host)")
            let sync = try network.run(
                network.hosts[2],
                "sync",
                "copy\(host)",
                "--find",
                id,
                "--discovery",
                "multicast",
                "--pin",
                server.pin
            )
            #expect(sync.process.terminationStatus == 0, "\(sync.errors)")
            #expect(try network.folder.run("get", "copy\(host)", "host\(host)").status == 0)
        }
    }

    @Test func `a peer that is killed is gone for those that ask after it`() throws {
        let network = try NetworkNamespaces(2)
        let server = try network.serve(network.hosts[0], "--advertise-as", "trips")
        let browser = try network.start(network.hosts[1], browse)
        try browser.wait(for: "the peer", found("trips"))
        server.kill()
        try network.folder.run("create", "copy")
        let sync = try network.run(
            network.hosts[1],
            "sync",
            "copy",
            "--find",
            "trips",
            "--discovery",
            "multicast",
            "--pin",
            server.pin
        )
        #expect(sync.process.terminationStatus == 69, "\(sync.errors)")
        let once = try network.start(network.hosts[1], browse + ["--once"])
        once.process.waitUntilExit()
        #expect(once.process.terminationStatus == 66)
    }

    @Test func `a link that goes down loses its peers, and finds them when it is up again`() throws {
        let network = try NetworkNamespaces(2)
        let server = try network.serve(network.hosts[0], "--advertise-as", "trips")
        let browser = try network.start(network.hosts[1], browse)
        try browser.wait(for: "the peer", found("trips"))
        try network.hosts[1].setLink(up: false)
        try browser.wait(for: "the loss", seconds: 5, found("trips", "gone"))
        try network.hosts[1].setLink(up: true)
        try browser.wait(for: "the peer again", seconds: 5) { lines, _ in
            lines.count { $0.hasPrefix("found\ttrips\t") } == 2
        }
        server.end()
    }

    @Test func `hosts that have only IPv6 addresses of the link find each other and sync`() throws {
        let network = try NetworkNamespaces(2, addresses: false)
        let server = try network.serve(network.hosts[0], "--advertise-as", "trips")
        let browser = try network.start(network.hosts[1], browse + ["--resolve"])
        try browser.wait(for: "the address") { lines, _ in
            lines.contains {
                $0.hasPrefix("found\ttrips\t") && $0.contains("\tfe80::") && $0.contains("%lv2:")
            }
        }
        try network.folder.run("create", "copy")
        let sync = try network.run(
            network.hosts[1],
            "sync",
            "copy",
            "--find",
            "trips",
            "--discovery",
            "multicast",
            "--pin",
            server.pin
        )
        #expect(sync.process.terminationStatus == 0, "\(sync.errors)")
        #expect(try network.folder.run("get", "copy", "host1").status == 0)
    }

    @Test func `twenty peers are all found`() throws {
        let network = try NetworkNamespaces(21)
        let browser = try network.start(network.hosts[20], browse)
        let servers = try network.hosts.prefix(20).map {
            try network.serve($0, "--advertise-as", "peer \($0.number)", "--quiet")
        }
        try browser.wait(for: "twenty peers", seconds: 10) { lines, _ in
            lines.count { $0.hasPrefix("found\t") } == 20
        }
        for server in servers { server.process.terminate() }
        try browser.wait(for: "their ends", seconds: 10) { lines, _ in
            lines.count { $0.hasPrefix("gone\t") } == 20
        }
        #expect(!browser.lines.contains { $0.hasPrefix("changed\t") && $0.contains("peer 1\t-") })
    }

    @Test func `a listener on a loopback address is not advertised`() throws {
        let network = try NetworkNamespaces(1)
        let server = try network.serve(
            network.hosts[0],
            "--advertise-as",
            "trips",
            "--interface",
            "127.0.0.1"
        )
        let once = try network.start(network.hosts[0], browse + ["--once"])
        once.process.waitUntilExit()
        #expect(once.process.terminationStatus == 66)
        #expect(server.end() == 0)
    }

    @Test func `the article of 2012: advertise a type with a path, browse, resolve, replicate, remove`()
        throws
    {
        let network = try NetworkNamespaces(2)
        let server = try network.serve(
            network.hosts[0],
            "--no-tls",
            "--advertise-as",
            "My app",
            "--type",
            "_myapp._tcp",
            "--couchdb"
        )
        let browser = try network.start(
            network.hosts[1],
            ["browse", "--discovery", "multicast", "--type", "_myapp._tcp", "--resolve", "--json"]
        )
        let peer = { (lines: [String]) in
            lines.compactMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
                .first {
                    ($0["txt"] as? [String: Any])?["v"] as? String == "b2,b3,c"
                        && $0["event"] as? String == "found"
                }
        }
        try browser.wait(for: "the CouchDB listener") { lines, _ in peer(lines) != nil }
        let found = try #require(peer(browser.lines))
        #expect(found["path"] as? String == "db1")
        let addresses = try #require(found["addresses"] as? [[String: Any]])
        let first = try #require(addresses.first)
        let (address, port) = (first["address"] as? String ?? "", first["port"] as? Int ?? 0)
        #expect(address == "10.77.0.1")
        // The requests of TouchDB's puller.
        let base = "http://\(address):\(port)/\(found["path"] as? String ?? "")"
        for (path, expected) in [("/_changes?style=all_docs", "host1"), ("/host1", "\"n\":1")] {
            let answer = try network.run(network.hosts[1], program: "/usr/bin/curl", "-s", base + path)
            #expect(answer.lines.joined().contains(expected), "\(answer.lines)")
        }
        let other = try network.start(
            network.hosts[1],
            ["browse", "--discovery", "multicast", "--type", "_otherapp._tcp", "--once"]
        )
        other.process.waitUntilExit()
        #expect(other.process.terminationStatus == 66)
        server.end()
        try browser.wait(for: "the removal", seconds: 3) { lines, _ in
            lines.contains { $0.contains("\"gone\"") }
        }
    }

    @Test func `digits are enough to pair with a machine that advertises`() throws {
        let network = try NetworkNamespaces(2)
        try network.folder.run("put", "db1", "host1", "{\"n\":1}")
        let show = try network.start(
            network.hosts[0],
            ["pair", "show", "db1", "--advertise", "--discovery", "multicast", "--port", "5099"]
        )
        try show.wait(for: "the digits") { lines, _ in lines.count >= 2 }
        let digits = String(show.lines[1].prefix { $0 != " " })
        let use = try network.run(network.hosts[1], "pair", "use", "copy", digits, "--discovery", "multicast")
        #expect(use.process.terminationStatus == 0, "\(use.errors)")
        show.process.waitUntilExit()
        let server = try network.start(
            network.hosts[0],
            [
                "serve", "db1", "--paired", "--advertise-as", "trips", "--discovery", "multicast", "--port",
                "5098",
            ]
        )
        try server.wait(for: "the URLs") { lines, _ in !lines.isEmpty }
        // It has another port now: only the name leads to it.
        let sync = try network.run(
            network.hosts[1],
            "sync",
            "copy",
            "--paired",
            "--find",
            "trips",
            "--discovery",
            "multicast"
        )
        #expect(sync.process.terminationStatus == 0, "\(sync.errors)")
        #expect(try network.folder.run("get", "copy", "host1").status == 0)
    }
}

extension CommandLineFolder {
    /// Which of some IDs a database has, by its file.
    func read(id database: String, among ids: Swift.Set<String>) throws -> String {
        let file = URL(filePath: "\(path)/\(database).loveseat/db.sqlite")
        let data =
            try Data(contentsOf: file)
            + ((try? Data(contentsOf: URL(filePath: file.path + "-wal"))) ?? Data())
        return try #require(ids.first { data.range(of: Data($0.utf8)) != nil })
    }
}
