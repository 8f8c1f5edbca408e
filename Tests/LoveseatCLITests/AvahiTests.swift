import Foundation
import LoveseatTesting
import Testing

/// Loveseat beside, with and against the Avahi daemon, on hosts that are network namespaces.
@Suite(
    .serialized,
    .enabled(
        if: NetworkNamespaces.areAllowed && AvahiDaemon.isInstalled,
        "needs root, ip netns, avahi-daemon, avahi-utils and dbus-daemon"
    ),
    .timeLimit(.minutes(3))
)
struct AvahiTests {
    private static let id = "0f0e0d0c0b0a09080706050403020100"

    private func found(_ name: String, _ word: String = "found") -> ([String], [String]) -> Bool {
        { lines, _ in lines.contains { $0.hasPrefix("\(word)\t\(name)\t") } }
    }

    private func browser(
        _ network: NetworkNamespaces,
        _ host: Int,
        _ method: String
    ) throws -> RunningProgram {
        try network.start(network.hosts[host], ["browse", "--resolve", "--discovery", method])
    }

    @Test func `what Avahi advertises is found and lost without a daemon`() throws {
        let network = try NetworkNamespaces(2)
        let avahi = try AvahiDaemon(network, network.hosts[0])
        defer { avahi.kill() }
        try avahi.start()
        let browser = try browser(network, 1, "multicast")
        let service = try avahi.publish(
            "-s",
            "photos ✓",
            "_loveseat._tcp",
            "55990",
            "path=/photos",
            "id=\(Self.id)"
        )
        try browser.wait(for: "the service") { lines, _ in
            lines.contains { $0 == "found\tphotos ✓\t\(Self.id)\tphotos\tlv2\t10.77.0.1:55990\tfe80::" }
                || lines.contains {
                    $0.hasPrefix("found\tphotos ✓\t\(Self.id)\tphotos\tlv2\t10.77.0.1:55990")
                }
        }
        service.kill()
        try browser.wait(for: "its end", seconds: 3, found("photos ✓", "gone"))
        #expect(browser.errors == [])
    }

    @Test func `what is advertised without a daemon is found, resolved and lost by Avahi`() throws {
        let network = try NetworkNamespaces(2)
        let avahi = try AvahiDaemon(network, network.hosts[0])
        defer { avahi.kill() }
        try avahi.start()
        let watch = try network.start(
            network.hosts[0],
            program: "/usr/bin/avahi-browse",
            ["-r", "-p", "_loveseat._tcp"]
        )
        let server = try network.serve(network.hosts[1], "--advertise-as", "Ana's trips")
        try watch.wait(for: "the service") { lines, _ in
            lines.contains {
                $0.hasPrefix("=;lv1;IPv4;Ana\\039s\\032trips;_loveseat._tcp;local;")
                    && $0.contains(";10.77.0.2;") && $0.contains("\"path=db2\"")
            }
        }
        server.end()
        try watch.wait(for: "its end", seconds: 3) { lines, _ in
            lines.contains { $0.hasPrefix("-;lv1;IPv4;Ana\\039s\\032trips;") }
        }
    }

    @Test func `through the daemon a peer is found, syncs, and is gone after it is killed`() throws {
        let network = try NetworkNamespaces(2)
        let daemons = try network.hosts.map { try AvahiDaemon(network, $0) }
        defer { for daemon in daemons { daemon.kill() } }
        for daemon in daemons { try daemon.start() }
        let browser = try browser(network, 1, "system")
        let server = try network.serve(
            network.hosts[0],
            "--advertise-as",
            "Ana's trips",
            "--discovery",
            "system"
        )
        try server.wait(for: "its name") { _, errors in
            errors.contains("loveseat: advertised as \"Ana's trips\"")
        }
        try browser.wait(for: "the peer", seconds: 3, found("Ana's trips"))
        try network.folder.run("create", "copy")
        let sync = try network.sync(network.hosts[1], "copy", with: "Ana's trips", pin: server.pin, "system")
        #expect(sync.process.terminationStatus == 0, "\(sync.errors)")
        #expect(try network.folder.run("get", "copy", "host1").status == 0)
        server.kill()
        // A second for the daemon's goodbye, and one to see whether the peer comes back.
        try browser.wait(for: "its end", seconds: 3, found("Ana's trips", "gone"))
        #expect(browser.errors == [])
        #expect(browser.end() == 0)
    }

    @Test func `a search through the daemon leaves nothing behind once it has led to a connection`() throws {
        let network = try NetworkNamespaces(2)
        let daemon = try AvahiDaemon(network, network.hosts[1])
        defer { daemon.kill() }
        try daemon.start()
        try network.expectNothingIsLeftOfSearches(with: "system")
    }

    @Test func `somebody who takes the name of a pinned peer gets no password`() throws {
        let network = try NetworkNamespaces(2)
        let daemon = try AvahiDaemon(network, network.hosts[0])
        defer { daemon.kill() }
        try daemon.start()
        let path = network.folder.path
        let made = try network.run(
            network.hosts[0],
            program: "/usr/bin/openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            "\(path)/key.pem",
            "-out",
            "\(path)/cert.pem",
            "-subj",
            "/CN=trips",
            "-days",
            "2"
        )
        #expect(made.process.terminationStatus == 0, "\(made.errors)")
        // It prints what it receives, and ends with its input.
        let fake = try network.start(
            network.hosts[0],
            program: "/bin/bash",
            [
                "-c",
                "cd '\(path)' && mkfifo input && exec openssl s_server -accept 5077 -cert cert.pem -key key.pem <> input",
            ]
        )
        try fake.wait(for: "the fake") { lines, _ in lines.contains("ACCEPT") }
        let service = try daemon.publish("-s", "trips", "_loveseat._tcp", "5077", "path=/db1", "tls=1")
        defer { service.kill() }
        try network.folder.run("create", "copy")
        try network.folder.write("secret", to: "password.txt")
        let pin = String(repeating: "ab", count: 32)
        let sync = try network.run(
            network.hosts[1],
            "sync",
            "copy",
            "--find",
            "trips",
            "--discovery",
            "multicast",
            "--pin",
            pin,
            "--user",
            "ana",
            "--password-file",
            "\(path)/password.txt"
        )
        #expect(sync.process.terminationStatus == 77, "\(sync.errors)")
        #expect(sync.errors.contains { $0.contains("certificate") }, "\(sync.errors)")
        fake.kill()
        fake.waitForEnd()
        #expect(
            !(fake.lines + fake.errors).contains { $0.contains("GET ") || $0.contains("Authorization") },
            "\(fake.lines)"
        )
    }

    @Test func `names that are taken on the host or on the network get a number`() throws {
        let network = try NetworkNamespaces(3)
        let daemons = try network.hosts.prefix(2).map { try AvahiDaemon(network, $0) }
        defer { for daemon in daemons { daemon.kill() } }
        for daemon in daemons { try daemon.start() }
        let browser = try browser(network, 2, "multicast")
        let first = try network.serve(
            network.hosts[0],
            "--advertise-as",
            "trips",
            "--discovery",
            "system"
        )
        try browser.wait(for: "the first", found("trips"))
        let second = try network.serve(
            network.hosts[1],
            "--advertise-as",
            "trips",
            "--discovery",
            "system"
        )
        try second.wait(for: "its name") { _, errors in
            errors.contains("loveseat: advertised as \"trips #2\"")
        }
        try browser.wait(for: "both") { [self] lines, errors in
            found("trips")(lines, errors) && found("trips #2")(lines, errors)
        }
        #expect(first.end() == 0)
        #expect(second.end() == 0)
    }

    @Test func `a daemon that comes later, or again, advertises and searches what was asked of it`() throws {
        let network = try NetworkNamespaces(2)
        let avahi = try AvahiDaemon(network, network.hosts[0])
        defer { avahi.kill() }
        let other = try browser(network, 1, "multicast")
        let server = try network.serve(
            network.hosts[0],
            "--advertise-as",
            "trips",
            "--discovery",
            "system"
        )
        let foreign = try network.serve(network.hosts[1], "--advertise-as", "far")
        try avahi.start()
        try other.wait(for: "the peer", seconds: 5, found("trips"))
        let watching = try browser(network, 0, "system")
        try watching.wait(for: "the other peer", seconds: 5, found("far"))
        avahi.kill()
        try server.wait(for: "its word") { _, errors in errors.contains { $0.contains("not advertised:") } }
        try avahi.start()
        try server.wait(for: "its name again", seconds: 5) { _, errors in
            errors.count { $0 == "loveseat: advertised as \"trips\"" } == 2
        }
        try watching.wait(for: "the other peer again", seconds: 5) { lines, _ in
            lines.count { $0.hasPrefix("found\tfar\t") } == 2
        }
        #expect(try avahi.browse().contains { $0.hasPrefix("=;lv1;IPv4;trips;") })
        for program in [server, foreign] { #expect(program.end() == 0) }
    }

    @Test func `a peer whose daemon was killed is connected to at once when it is there again`() throws {
        let network = try NetworkNamespaces(2)
        let daemons = try network.hosts.map { try AvahiDaemon(network, $0) }
        defer { for daemon in daemons { daemon.kill() } }
        for daemon in daemons { try daemon.start() }
        let serving = ["--advertise-as", "trips", "--discovery", "system", "--port", "5077"]
        let first = try network.serve(
            network.hosts[0],
            serving[0],
            serving[1],
            serving[2],
            serving[3],
            serving[4],
            serving[5]
        )
        try network.folder.run("create", "copy")
        let sync = try network.start(
            network.hosts[1],
            [
                "sync", "copy", "--find", "trips", "--discovery", "system", "--pin", first.pin,
                "--continuous",
                "--max-wait", "300", "--verbose",
            ]
        )
        try sync.wait(for: "the document") { _, errors in
            errors.contains { $0.contains("pulled _default._default/host1") }
        }
        // Nobody says goodbye.
        daemons[0].kill()
        first.kill()
        // The next attempt comes in 10 s or more, but for the return of the peer.
        try sync.wait(for: "three attempts", seconds: 60) { _, errors in
            errors.count { $0.contains("offline: ") } >= 4
        }
        try network.folder.run("put", "db1", "later", "{}")
        try daemons[0].start()
        let second = try network.serve(
            network.hosts[0],
            serving[0],
            serving[1],
            serving[2],
            serving[3],
            serving[4],
            serving[5]
        )
        try sync.wait(for: "the later document", seconds: 8) { _, errors in
            errors.contains { $0.contains("pulled _default._default/later") }
        }
        sync.end()
        second.end()
    }

    @Test func `a daemon that does not publish is named`() throws {
        let network = try NetworkNamespaces(1)
        let avahi = try AvahiDaemon(network, network.hosts[0], publish: "disable-user-service-publishing=yes")
        defer { avahi.kill() }
        try avahi.start()
        let server = try network.serve(
            network.hosts[0],
            "--advertise-as",
            "trips",
            "--discovery",
            "system",
            "--quiet"
        )
        try server.wait(for: "its word") { _, errors in
            errors.contains {
                $0.contains("not advertised: the Avahi daemon") && $0.contains("Not permitted")
            }
        }
        #expect(server.end() == 0)
    }

    @Test func `with and without the daemon, two listeners of one host are found`() throws {
        let network = try NetworkNamespaces(2)
        let avahi = try AvahiDaemon(network, network.hosts[0])
        defer { avahi.kill() }
        try avahi.start()
        try network.folder.run("put", "db7", "host7", "{}")
        let first = try network.serve(
            network.hosts[0],
            "--advertise-as",
            "with",
            "--discovery",
            "system"
        )
        let second = try network.start(
            network.hosts[0],
            ["serve", "db7", "--open", "--discovery", "multicast", "--advertise-as", "without"]
        )
        let browser = try browser(network, 1, "multicast")
        try browser.wait(for: "both", seconds: 5) { [self] lines, errors in
            found("with")(lines, errors) && found("without")(lines, errors)
        }
        // On the host itself, too.
        let own = try self.browser(network, 0, "system")
        try own.wait(for: "both", seconds: 5) { [self] lines, errors in
            found("with")(lines, errors) && found("without")(lines, errors)
        }
        for program in [first, second] { #expect(program.end() == 0) }
    }

    @Test func `a service that leads to a host beyond the link is not connected to`() throws {
        let network = try NetworkNamespaces(2)
        let (ana, bob) = (network.hosts[0], network.hosts[1])
        let avahi = try AvahiDaemon(network, ana)
        defer { avahi.kill() }
        try avahi.start()
        // There is a listener, and the way to it works.
        try NetworkNamespaces.check(["-n", ana.namespace, "addr", "add", "203.0.113.5/32", "dev", "lo"])
        try NetworkNamespaces.check(["-n", bob.namespace, "route", "add", "default", "via", "10.77.0.1"])
        let server = try network.serve(ana, "--port", "5077", "--interface", "203.0.113.5", "--advertise")
        try network.folder.run("create", "copy")
        let direct = try network.run(
            bob,
            "sync",
            "copy",
            "wss://203.0.113.5:5077/db1",
            "--pin",
            server.pin
        )
        #expect(direct.process.terminationStatus == 0, "\(direct.errors)")
        let address = try avahi.publish("-a", "-R", "far.local", "203.0.113.5")
        let service = try avahi.publish("-s", "-H", "far.local", "far", "_loveseat._tcp", "5077", "path=db1")
        let sync = try network.sync(bob, "copy", with: "far", pin: server.pin)
        #expect(sync.process.terminationStatus == 69, "\(sync.errors)")
        for program in [address, service] { program.kill() }
        server.end()
    }
}
