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
        #expect(times.sorted()[5] < 1, "\(times)")
        #expect(times.sorted()[9] < 3, "\(times)")
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
        #expect(unpinned.process.terminationStatus == 77)
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
            let sync = try network.sync(network.hosts[2], "copy\(host)", with: id, pin: server.pin)
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
        let sync = try network.sync(network.hosts[1], "copy", with: "trips", pin: server.pin)
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
        let sync = try network.sync(network.hosts[1], "copy", with: "trips", pin: server.pin)
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

    @Test func `a peer that is not pinned is asked about once, and cannot change its certificate`() throws {
        let network = try NetworkNamespaces(2)
        let (ana, bob) = (network.hosts[0], network.hosts[1])
        let first = try network.serve(ana, "--advertise-as", "trips")
        try network.folder.run("create", "copy")
        let sync = ["sync", "copy", "--find", "trips", "--discovery", "multicast"]
        let terminal = try Terminal(
            network.folder,
            command: network.command(bob, try CommandLineFolder.program.path, sync),
            environment: network.environment(bob)
        )
        try terminal.wait(for: first.pin)
        try terminal.wait(for: "[y/N]")
        try terminal.type("no\n")
        #expect(try terminal.end() == 77)
        #expect(try network.folder.run("get", "copy", "host1").status == 66)
        let second = try Terminal(
            network.folder,
            command: network.command(bob, try CommandLineFolder.program.path, sync),
            environment: network.environment(bob)
        )
        try second.wait(for: "[y/N]")
        try second.type("y\n")
        #expect(try second.end() == 0)
        #expect(try network.folder.run("get", "copy", "host1").status == 0)
        #expect(
            try network.folder.run("pair", "list", "copy").output
                == "\(first.pin)\ttrips._loveseat._tcp\tseen\n"
        )
        // No terminal, and no question.
        try network.folder.run("put", "copy", "fromBob", "{}")
        let known = try network.start(bob, sync)
        known.process.waitUntilExit()
        known.waitForEnd()
        #expect(known.process.terminationStatus == 0, "\(known.errors)")
        first.end()
        // Somebody else takes the name.
        try FileManager.default.removeItem(atPath: "\(network.folder.path)/identities1")
        let other = try network.serve(ana, "--advertise-as", "trips")
        #expect(other.pin != first.pin)
        let changed = try network.start(bob, sync)
        changed.process.waitUntilExit()
        changed.waitForEnd()
        #expect(changed.process.terminationStatus == 77, "\(changed.errors)")
        try network.folder.run("pair", "forget", "copy", first.pin)
        #expect(try network.folder.run("pair", "list", "copy").output == "")
        other.end()
    }

    @Test func `an address that is dead does not keep a peer from being reached at another`() throws {
        let network = try NetworkNamespaces(2)
        let (ana, bob) = (network.hosts[0], network.hosts[1])
        let server = try network.serve(ana, "--advertise-as", "trips")
        // Bob sends everything for the first address to nobody.
        try NetworkNamespaces.check([
            "-n", bob.namespace, "neigh", "add", "10.77.0.1", "lladdr", "02:00:00:00:00:99", "dev",
            bob.interface,
            "nud", "permanent",
        ])
        try network.folder.run("create", "copy")
        let start = Date()
        let sync = try network.sync(bob, "copy", with: "trips", pin: server.pin)
        #expect(sync.process.terminationStatus == 0, "\(sync.errors)")
        // An attempt would take 15 s to fail; the next address is tried after a quarter of a second.
        #expect(Date().timeIntervalSince(start) < 8)
        server.end()
    }

    @Test func `a peer that is found by its ID goes on at another address where it was`() throws {
        let network = try NetworkNamespaces(2)
        let (ana, bob) = (network.hosts[0], network.hosts[1])
        let browser = try network.start(bob, browse)
        let first = try network.serve(ana, "--advertise-as", "trips")
        try browser.wait(for: "the peer", found("trips"))
        let id = browser.lines.first?.split(separator: "\t").dropFirst(2).first.map(String.init) ?? ""
        try network.folder.run("create", "copy")
        let sync = ["sync", "copy", "--find", id, "--discovery", "multicast", "--pin", first.pin]
        let before = try network.start(bob, sync)
        before.process.waitUntilExit()
        #expect(before.process.terminationStatus == 0)
        // A comparison of all documents would bring it back.
        #expect(try network.folder.run("purge", "copy", "host1").status == 0)
        first.end()
        try NetworkNamespaces.check([
            "-n", ana.namespace, "addr", "del", "10.77.0.1/24", "dev", ana.interface,
        ])
        try NetworkNamespaces.check([
            "-n", ana.namespace, "addr", "add", "10.77.0.50/24", "dev", ana.interface,
        ])
        try network.folder.run("put", "db1", "later", "{}")
        let second = try network.serve(ana, "--advertise-as", "other name", "--port", "5077")
        let after = try network.start(bob, sync)
        after.process.waitUntilExit()
        after.waitForEnd()
        #expect(after.process.terminationStatus == 0, "\(after.errors)")
        #expect(try network.folder.run("get", "copy", "later").status == 0)
        #expect(try network.folder.run("get", "copy", "host1").status == 66)
        second.end()
    }

    @Test func `a search leaves nothing behind once it has led to a connection`() throws {
        let network = try NetworkNamespaces(2)
        try network.expectNothingIsLeftOfSearches(with: "multicast")
    }

    @Test func `an interface that gets another name is searched under that`() throws {
        let network = try NetworkNamespaces(2)
        let bob = network.hosts[1]
        let server = try network.serve(network.hosts[0], "--advertise-as", "trips")
        let browser = try network.start(bob, browse)
        try browser.wait(for: "the peer", found("trips"))
        try bob.setLink(up: false)
        try browser.wait(for: "the loss", seconds: 5, found("trips", "gone"))
        try NetworkNamespaces.check(["-n", bob.namespace, "link", "set", bob.interface, "name", "renamed0"])
        try NetworkNamespaces.check(["-n", bob.namespace, "link", "set", "renamed0", "up"])
        try browser.wait(for: "the peer again", seconds: 5) { lines, _ in
            lines.contains { $0.hasPrefix("found\ttrips\t") && $0.contains("renamed0") }
        }
        server.end()
    }

    @Test
    func `a host without a network says that nothing can be found, and without a daemon that it is not used`()
        throws
    {
        let network = try NetworkNamespaces(1)
        let host = network.hosts[0]
        try host.setLink(up: false)
        let none = try network.run(host, "browse", "--once", "--discovery", "multicast")
        #expect(none.process.terminationStatus == 69)
        #expect(
            none.errors.contains { $0.contains("multicast is not possible on any interface") },
            "\(none.errors)"
        )
        let system = try network.run(host, "browse", "--once", "--discovery", "system")
        #expect(system.process.terminationStatus == 69)
        #expect(system.errors.contains { $0.contains("Avahi daemon does not answer") }, "\(system.errors)")
        try host.setLink(up: true)
        let automatic = try network.run(host, "browse", "--once", "--verbose")
        #expect(automatic.process.terminationStatus == 66)
        #expect(
            automatic.errors.count { $0.contains("the Avahi daemon does not answer") } == 1,
            "\(automatic.errors)"
        )
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
