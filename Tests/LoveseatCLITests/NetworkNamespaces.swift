import Foundation
import LoveseatTesting
import Synchronization
import Testing

/// Hosts in network namespaces of their own, on a bridge in another one. Nothing that they send leaves the namespaces.
final class NetworkNamespaces: Sendable {
    private static let ip = "/usr/sbin/ip"
    private static let count = Atomic(0)

    /// Whether this process may make namespaces; says so loudly if not.
    static let areAllowed: Bool = {
        let name = "lvprobe\(ProcessInfo.processInfo.processIdentifier)"
        let allowed =
            FileManager.default.isExecutableFile(atPath: ip) && (try? run(["netns", "add", name])) == 0
        if allowed { _ = try? run(["netns", "del", name]) }
        if !allowed {
            FileHandle.standardError.write(
                Data(
                    "\n*** SKIPPED: tests of discovery need root and `ip netns` (apt-get install iproute2) ***\n\n"
                        .utf8
                )
            )
        }
        return allowed
    }()

    let folder: CommandLineFolder
    let hosts: [Host]
    private let bridge: String

    /// `addresses`: whether the hosts have IPv4 addresses, beside IPv6 addresses of the link.
    init(_ hostCount: Int, addresses: Bool = true) throws {
        folder = try CommandLineFolder()
        let run = Self.count.add(1, ordering: .relaxed).newValue
        let prefix = "lv\(ProcessInfo.processInfo.processIdentifier)x\(run)"
        bridge = "\(prefix)b"
        hosts = (1...hostCount).map { Host(namespace: "\(prefix)n\($0)", number: $0) }
        try Self.check(["netns", "add", bridge])
        try Self.check(["-n", bridge, "link", "add", "bridge0", "type", "bridge", "mcast_snooping", "0"])
        try Self.check(["-n", bridge, "link", "set", "bridge0", "up"])
        for host in hosts {
            try Self.check(["netns", "add", host.namespace])
            try Self.check([
                "link", "add", host.interface, "netns", host.namespace, "type", "veth", "peer", "name",
                "port\(host.number)", "netns", bridge,
            ])
            try Self.check(["-n", bridge, "link", "set", "port\(host.number)", "master", "bridge0", "up"])
            // Without a check for duplicates, an address can be used at once.
            try Self.check([
                "netns", "exec", host.namespace, "sysctl", "-q", "-w",
                "net.ipv6.conf.\(host.interface).accept_dad=0",
            ])
            try Self.check(["-n", host.namespace, "link", "set", "lo", "up"])
            try Self.check(["-n", host.namespace, "link", "set", host.interface, "up"])
            if addresses {
                try Self.check([
                    "-n", host.namespace, "addr", "add", "10.77.0.\(host.number)/24", "dev", host.interface,
                ])
            }
        }
    }

    deinit {
        for name in hosts.map(\.namespace) + [bridge] { _ = try? Self.run(["netns", "del", name]) }
    }

    static func run(_ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(filePath: ip)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    static func check(_ arguments: [String]) throws {
        let status = try run(arguments)
        try #require(status == 0, "ip \(arguments.joined(separator: " "))")
    }

    /// One host.
    struct Host: Sendable {
        let namespace: String
        let number: Int
        var interface: String { "lv\(number)" }

        func setLink(up: Bool) throws {
            try NetworkNamespaces.check(["-n", namespace, "link", "set", interface, up ? "up" : "down"])
        }
    }

    /// The host's own identities, and its own bus, on which there is no Avahi daemon unless ``AvahiDaemon`` starts one.
    func environment(_ host: Host) -> [String: String] {
        [
            "LOVESEAT_IDENTITIES": "\(folder.path)/identities\(host.number)",
            "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(busSocket(host))",
        ]
    }

    /// Not in the folder, whose path may be too long for a socket.
    func busSocket(_ host: Host) -> String { "/tmp/\(host.namespace).bus" }

    /// How a program is started on a host.
    func command(_ host: Host, _ program: String, _ arguments: [String]) -> [String] {
        [Self.ip, "netns", "exec", host.namespace, program] + arguments
    }

    /// Starts a program on a host.
    func start(_ host: Host, program: String? = nil, _ arguments: [String]) throws -> RunningProgram {
        let process = Process()
        let command = command(host, try program ?? CommandLineFolder.program.path, arguments)
        process.executableURL = URL(filePath: command[0])
        process.arguments = Array(command.dropFirst())
        process.currentDirectoryURL = URL(filePath: folder.path)
        process.environment = ProcessInfo.processInfo.environment.merging(environment(host)) { $1 }
        return try RunningProgram(process)
    }

    /// Runs a program on a host to its end.
    func run(_ host: Host, program: String? = nil, _ arguments: String...) throws -> RunningProgram {
        let running = try start(host, program: program, arguments)
        running.process.waitUntilExit()
        running.waitForEnd()
        return running
    }

    /// Syncs a database on a host with a peer that is found by its name or ID and has to show a certificate.
    func sync(
        _ host: Host,
        _ database: String,
        with title: String,
        pin: String,
        _ method: String = "multicast"
    ) throws -> RunningProgram {
        try run(host, "sync", database, "--find", title, "--discovery", method, "--pin", pin)
    }

    /// Serves a database that has one document with a host's number, and waits until it is listening.
    func serve(_ host: Host, _ arguments: String...) throws -> RunningProgram {
        let database = "db\(host.number)"
        if !FileManager.default.fileExists(atPath: "\(folder.path)/\(database).loveseat") {
            try folder.run("put", database, "host\(host.number)", "{\"n\":\(host.number)}")
        }
        let method = arguments.contains("--discovery") ? [] : ["--discovery", "multicast"]
        let server = try start(host, ["serve", database, "--open"] + method + arguments)
        try server.wait(for: "URLs") { lines, errors in
            !lines.isEmpty && (arguments.contains("--no-tls") || errors.contains { $0.contains(" pin ") })
        }
        return server
    }
}

extension NetworkNamespaces {
    /// What a process uses that a search could leave behind.
    private struct Used {
        let descriptors: Int
        let threads: Int
        /// Sockets of its host on the port of multicast DNS.
        let multicastSockets: Int
        /// Connections to the bus of its host.
        let busConnections: Int

        init(_ process: Process, bus: String) throws {
            let folder = "/proc/\(process.processIdentifier)"
            func count(_ name: String) throws -> Int {
                try FileManager.default.contentsOfDirectory(atPath: "\(folder)/\(name)").count
            }
            func lines(_ name: String, _ isMeant: (Substring) -> Bool) throws -> Int {
                try String(contentsOfFile: "\(folder)/net/\(name)", encoding: .utf8).split(separator: "\n")
                    .count(where: isMeant)
            }
            descriptors = try count("fd")
            threads = try count("task")
            multicastSockets = try ["udp", "udp6"].reduce(0) { sum, name in
                try sum + lines(name) { $0.contains(":14E9 ") }
            }
            busConnections = try lines("unix") { $0.hasSuffix(bus) }
        }
    }

    /// Lets a replicator of the second host find a peer of the first one again and again, and compares what is left each time.
    func expectNothingIsLeftOfSearches(with method: String) throws {
        let (ana, bob) = (hosts[0], hosts[1])
        try folder.run("create", "copy")
        let idle = try start(bob, program: "/bin/bash", ["-c", "echo here; sleep 100"])
        try idle.wait(for: "a process on the host") { lines, _ in !lines.isEmpty }
        let before = try Used(idle.process, bus: busSocket(bob))
        var server = try serve(ana, "--advertise-as", "trips", "--port", "5077")
        let sync = try start(
            bob,
            ["sync", "copy", "--find", "trips", "--discovery", method, "--continuous", "--pin", server.pin]
        )
        var used: [Used] = []
        let rounds = 6
        for round in 1...rounds {
            try sync.wait(for: "connection \(round)", seconds: 20) { _, errors in
                errors.count { $0.hasPrefix("idle") } >= round
            }
            used.append(try Used(sync.process, bus: busSocket(bob)))
            server.end()
            if round < rounds { server = try serve(ana, "--advertise-as", "trips", "--port", "5077") }
        }
        #expect(used.allSatisfy { $0.multicastSockets == before.multicastSockets }, "\(before) \(used)")
        #expect(used.allSatisfy { $0.busConnections == before.busConnections }, "\(before) \(used)")
        // What is made once is there after two rounds, except for threads of pools, which come as there is work for them and go later. A
        // thread that each search left would be one more in every round.
        #expect(used[rounds - 1].descriptors == used[1].descriptors, "\(used)")
        #expect(zip(used[1...], used[2...]).contains { $1.threads <= $0.threads }, "\(used)")
        idle.kill()
        #expect(sync.end() == 0)
    }
}

/// A program and what it has written.
final class RunningProgram: Sendable {
    let process: Process
    private let condition = NSCondition()
    private let written = Mutex(Written())

    private struct Written {
        var output = Data()
        var errors = Data()
        var openPipes = 2
    }

    init(_ process: Process) throws {
        self.process = process
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        process.standardInput = FileHandle.nullDevice
        try Lifeline.run(process)
        collect(output.fileHandleForReading) { $0.output.append($1) }
        collect(errors.fileHandleForReading) { $0.errors.append($1) }
    }

    private func collect(_ file: FileHandle, _ add: @escaping @Sendable (inout Written, Data) -> Void) {
        Thread.detachNewThread { [self] in
            while true {
                let data = file.availableData
                condition.lock()
                written.withLock { data.isEmpty ? $0.openPipes -= 1 : add(&$0, data) }
                condition.broadcast()
                condition.unlock()
                if data.isEmpty { return }
            }
        }
    }

    var lines: [String] { written.withLock { Self.lines($0.output) } }
    var errors: [String] { written.withLock { Self.lines($0.errors) } }

    private static func lines(_ data: Data) -> [String] {
        String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Waits until what was written is as wanted. Returns the seconds that it took.
    @discardableResult
    func wait(
        for title: String,
        seconds: Double = 10,
        _ isMeant: ([String], [String]) -> Bool
    ) throws -> Double {
        let start = Date()
        condition.lock()
        defer { condition.unlock() }
        while !isMeant(lines, errors) {
            let isInTime = condition.wait(until: start.addingTimeInterval(seconds))
            try #require(isInTime, "\(title) within \(seconds) s: \(lines) \(errors)")
        }
        return Date().timeIntervalSince(start)
    }

    func waitForEnd() {
        condition.lock()
        while written.withLock({ $0.openPipes > 0 }) { condition.wait() }
        condition.unlock()
    }

    /// Ends it by SIGTERM.
    @discardableResult
    func end() -> Int32 {
        process.terminate()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Ends it by SIGKILL.
    func kill() {
        _ = Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// The fingerprint that `serve` prints.
    var pin: String {
        errors.first { $0.hasPrefix("loveseat: pin ") }?.split(separator: " ").last.map(String.init) ?? ""
    }

    deinit { if process.isRunning { _ = Foundation.kill(process.processIdentifier, SIGKILL) } }
}
