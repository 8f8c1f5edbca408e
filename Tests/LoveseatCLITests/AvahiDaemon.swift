import Foundation
import LoveseatTesting
import Testing

/// The Avahi daemon of a host in a network namespace, with a bus of its own.
final class AvahiDaemon {
    /// Whether it is installed; says so loudly if not.
    static let isInstalled: Bool = {
        let programs = ["/usr/sbin/avahi-daemon", "/usr/bin/avahi-browse", "/usr/bin/dbus-daemon"]
        let isInstalled = programs.allSatisfy(FileManager.default.isExecutableFile)
        if !isInstalled {
            FileHandle.standardError.write(
                Data(
                    "\n*** SKIPPED: tests with Avahi need avahi-daemon, avahi-utils and dbus-daemon ***\n\n"
                        .utf8
                )
            )
        }
        return isInstalled
    }()

    private let network: NetworkNamespaces
    private let host: NetworkNamespaces.Host
    private let settings: String
    private var daemon: RunningProgram?
    private let bus: RunningProgram

    /// Starts the bus, but not the daemon. `publish`: lines of the daemon's settings.
    init(_ network: NetworkNamespaces, _ host: NetworkNamespaces.Host, publish: String = "") throws {
        (self.network, self.host) = (network, host)
        settings = "\(network.folder.path)/avahi\(host.number).conf"
        let busSettings = "bus\(host.number).conf"
        try network.folder.write(
            """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" \
            "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig><type>system</type><listen>unix:path=\(network.busSocket(host))</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
            </policy></busconfig>
            """,
            to: busSettings
        )
        try network.folder.write(
            """
            [server]
            host-name=host\(host.number)
            allow-interfaces=\(host.interface)
            [wide-area]
            enable-wide-area=no
            [publish]
            publish-hinfo=no
            publish-workstation=no
            \(publish)
            [rlimits]
            """,
            to: "avahi\(host.number).conf"
        )
        bus = try Self.start(
            network,
            host,
            "/usr/bin/dbus-daemon '--config-file=\(network.folder.path)/\(busSettings)' --nofork --nopidfile --print-address=1"
        )
        try bus.wait(for: "the bus") { lines, _ in !lines.isEmpty }
    }

    deinit {
        kill()
        Self.kill(bus)
        try? FileManager.default.removeItem(atPath: network.busSocket(host))
    }

    /// Starts the daemon, and waits until it is ready.
    func start() throws {
        // Its socket and its process ID lie in /run, which `ip netns exec` lets this process have for itself.
        let daemon = try Self.start(
            network,
            host,
            before: "mount -t tmpfs none /run && mkdir -p /run/avahi-daemon",
            "/usr/sbin/avahi-daemon -f '\(settings)' --no-drop-root --no-rlimits --no-chroot"
        )
        self.daemon = daemon
        try daemon.wait(for: "the Avahi daemon") { lines, errors in
            (lines + errors).contains { $0.contains("Server startup complete") }
        }
    }

    /// Starts a daemon, as the child of a shell that says its process ID.
    ///
    /// Daemons close the descriptor by which Foundation's `Process` sees that its child is alive.
    private static func start(
        _ network: NetworkNamespaces,
        _ host: NetworkNamespaces.Host,
        before: String = "true",
        _ command: String
    ) throws -> RunningProgram {
        let script = """
            \(before)
            \(command) &
            echo "pid $!" >&2
            wait $!
            """
        return try network.start(host, program: "/bin/bash", ["-c", script])
    }

    /// Ends the daemon without a goodbye.
    func kill() {
        if let daemon { Self.kill(daemon) }
        daemon = nil
    }

    private static func kill(_ shell: RunningProgram) {
        let line = shell.errors.first { $0.hasPrefix("pid ") }
        if let process = line.flatMap({ Int32($0.dropFirst(4)) }) { _ = Foundation.kill(process, SIGKILL) }
        shell.process.waitUntilExit()
    }

    /// What `avahi-browse` finds and resolves now, in its format for programs.
    func browse(_ type: String = "_loveseat._tcp") throws -> [String] {
        try network.run(host, program: "/usr/bin/avahi-browse", "-t", "-r", "-p", type).lines
    }

    /// Advertises something until it is killed: it begins with other signals blocked.
    func publish(_ arguments: String...) throws -> RunningProgram {
        try network.start(host, program: "/usr/bin/avahi-publish", arguments)
    }
}
