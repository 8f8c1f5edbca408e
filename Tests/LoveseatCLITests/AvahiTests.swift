import Foundation
import LoveseatTesting
import Testing

/// The Avahi daemon and Loveseat's own multicast DNS on the same link, and on the same host.
@Suite(
    .serialized,
    .enabled(
        if: NetworkNamespaces.areAllowed && NetworkNamespaces.haveAvahi,
        "needs root, ip netns and avahi-daemon"
    ),
    .timeLimit(.minutes(3))
)
struct AvahiTests {
    /// Starts a bus and a daemon of a host's own, and runs a command beside them. `ip netns exec` gives it mounts of its own.
    private static let script = """
        set -e
        host=$1; interface=$2; options=$3; shift 3
        mount -t tmpfs lv-run /run
        mkdir -p /run/avahi-daemon /run/lv
        cat > /run/lv/bus.conf <<END
        <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
        <busconfig><type>system</type><listen>unix:path=/run/lv/bus</listen><auth>EXTERNAL</auth>
        <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
        <allow own="*"/></policy></busconfig>
        END
        cat > /run/lv/avahi.conf <<END
        [server]
        host-name=$host
        use-ipv4=yes
        use-ipv6=yes
        allow-interfaces=$interface
        enable-dbus=yes
        [wide-area]
        enable-wide-area=no
        [publish]
        publish-hinfo=no
        publish-workstation=no
        $options
        [rlimits]
        END
        export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/lv/bus
        dbus-daemon --config-file=/run/lv/bus.conf --nofork --nopidfile 2>/dev/null & bus=$!
        until [ -S /run/lv/bus ]; do sleep 0.1; done
        daemon() {
            avahi-daemon -f /run/lv/avahi.conf --no-drop-root --no-rlimits --no-chroot > /run/lv/log 2>&1 & avahi=$!
            until grep -q 'startup complete' /run/lv/log; do sleep 0.1; done
        }
        daemon
        trap 'kill $child $avahi $bus 2>/dev/null; wait' EXIT
        trap 'kill -KILL $avahi; wait $avahi || true; rm -f /run/avahi-daemon/*; daemon; echo restarted >&2' USR1
        trap 'exit 0' TERM
        "$@" & child=$!
        while kill -0 $child 2>/dev/null; do wait $child || true; done
        """

    private func start(
        _ network: NetworkNamespaces,
        _ host: NetworkNamespaces.Host,
        options: String = "",
        _ command: [String]
    ) throws -> RunningProgram {
        try network.folder.write(Self.script, to: "avahi.sh")
        let arguments = ["\(network.folder.path)/avahi.sh", "lv-\(host.number)", host.interface, options]
        return try network.start(host, program: "/bin/bash", arguments + command)
    }

    private func browse(_ method: String) throws -> [String] {
        [try CommandLineFolder.program.path, "browse", "--discovery", method, "--json"]
    }

    private func says(_ event: String, _ name: String) -> ([String], [String]) -> Bool {
        { lines, _ in
            lines.contains { $0.contains("\"event\":\"\(event)\"") && $0.contains("\"name\":\"\(name)\"") }
        }
    }

    @Test func `Avahi finds, resolves and loses a peer that is advertised without it, also on one host`()
        throws
    {
        let network = try NetworkNamespaces(2)
        let server = try network.serve(network.hosts[0], "--advertise-as", "trips", "--port", "5001")
        let command = ["avahi-browse", "-r", "-p", "_loveseat._tcp"]
        let browsers = [
            try start(network, network.hosts[1], command), try start(network, network.hosts[0], command),
        ]
        for browser in browsers {
            try browser.wait(for: "the peer") { lines, _ in
                lines.contains {
                    $0.hasPrefix("=;") && $0.contains(";IPv4;trips;") && $0.contains(";10.77.0.1;5001;")
                        && $0.contains("\"path=db1\"")
                }
            }
        }
        server.end()
        for browser in browsers {
            try browser.wait(for: "the end", seconds: 3) { lines, _ in
                lines.contains { $0.hasPrefix("-;") && $0.contains(";trips;") }
            }
            browser.end()
        }
    }

    @Test func `a peer that Avahi advertises is found without it`() throws {
        let network = try NetworkNamespaces(2)
        let browser = try network.start(
            network.hosts[1],
            ["browse", "--discovery", "multicast", "--type", "_couchbaselite._tcp", "--resolve"]
        )
        let publisher = try start(
            network,
            network.hosts[0],
            ["avahi-publish", "-s", "photos on lv-a", "_couchbaselite._tcp", "55990", "path=/photos"]
        )
        try browser.wait(for: "the peer") { lines, _ in
            lines.contains { $0.hasPrefix("found\tphotos on lv-a\t-\tphotos\tlv2\t10.77.0.1:55990") }
        }
        publisher.end()
        try browser.wait(for: "the end", seconds: 5) { lines, _ in lines.contains { $0.hasPrefix("gone\t") } }
    }

    @Test
    func `through Avahi a peer is published, found, synced, renamed, and published again after a restart`()
        throws
    {
        let network = try NetworkNamespaces(3)
        let (ana, bob, eve) = (network.hosts[0], network.hosts[1], network.hosts[2])
        for host in [ana, eve] {
            try network.folder.run("put", "db\(host.number)", "host\(host.number)", "{\"n\":1}")
        }
        let program = try CommandLineFolder.program.path
        func serve(_ host: NetworkNamespaces.Host) throws -> RunningProgram {
            try start(
                network,
                host,
                [
                    program, "serve", "db\(host.number)", "--open", "--advertise-as", "trips", "--discovery",
                    "system",
                ]
            )
        }
        let server = try serve(ana)
        let browser = try start(network, bob, try browse("automatic"))
        try browser.wait(for: "the peer", says("found", "trips"))
        #expect(browser.lines.allSatisfy { $0.contains("\"path\":\"db1\"") || !$0.contains("\"found\"") })
        let second = try serve(eve)
        try browser.wait(for: "another name", says("found", "trips #2"))
        try network.folder.run("create", "copy")
        let sync = try start(
            network,
            bob,
            [program, "sync", "copy", "--find", "trips", "--discovery", "system", "--pin", server.pin]
        )
        sync.process.waitUntilExit()
        #expect(try network.folder.run("get", "copy", "host1").status == 0, "\(sync.errors)")
        // The daemon is killed and started again.
        second.end()
        try browser.wait(for: "the end", says("gone", "trips #2"))
        _ = kill(server.process.processIdentifier, SIGUSR1)
        try server.wait(for: "the restart") { _, errors in errors.contains("restarted") }
        let own = try network.start(eve, ["browse", "--discovery", "multicast"])
        try own.wait(for: "the peer again") { lines, _ in lines.contains { $0.hasPrefix("found\ttrips\t") } }
        server.end()
    }

    @Test func `a daemon that does not let users publish is named in the log`() throws {
        let network = try NetworkNamespaces(1)
        try network.folder.run("put", "db1", "host1", "{\"n\":1}")
        let program = try CommandLineFolder.program.path
        let server = try start(
            network,
            network.hosts[0],
            options: "disable-user-service-publishing=yes",
            [program, "serve", "db1", "--open", "--advertise", "--discovery", "system"]
        )
        try server.wait(for: "the reason") { _, errors in
            errors.contains { $0.contains("Avahi") && $0.contains("Not permitted") }
        }
        server.end()
    }

    @Test func `without a daemon, the system's discovery says so, and automatic does without`() throws {
        let network = try NetworkNamespaces(2)
        let missing = try network.run(network.hosts[0], "browse", "--once", "--discovery", "system")
        #expect(missing.process.terminationStatus == 69)
        #expect(missing.errors.first?.contains("Avahi") == true)
        let server = try network.serve(network.hosts[0], "--advertise-as", "trips")
        let browser = try network.start(network.hosts[1], ["browse"])
        try browser.wait(for: "the peer") { lines, _ in lines.contains { $0.hasPrefix("found\ttrips\t") } }
        #expect(browser.errors == [])
        server.end()
    }
}
