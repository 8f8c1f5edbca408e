import ArgumentParser
import Foundation
import Loveseat
import LoveseatDiscovery

struct Browse: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the peers that are advertised on this network, until interrupted.",
        discussion: """
            Prints one line for each change: found, changed or gone, and the peer's name, ID, database and interfaces. Anybody on the \
            network can advertise any name: only a pin or pairing says who a peer is.

            EXAMPLE
              loveseat browse --once
            """
    )
    @OptionGroup var discovery: DiscoveryOptions
    @OptionGroup var quieting: QuietOption
    @Flag(help: "Show the peers that answer within a second, and end. The exit code is 66 if there are none.")
    var once = false
    @Flag(help: "Print one JSON object per line.")
    var json = false
    @Flag(help: "Print the addresses of each peer that is found, too.")
    var resolve = false
    @OptionGroup var logging: LogOptions

    func run() async throws {
        try logging.begin()
        Signals.begin()
        let browser = try discovery.browser()
        if let problem = await browser.problem { throw Unreachable.error(problem) }
        let watching = Task {
            for await event in browser {
                try await Self.print(event, resolves: resolve, asJSON: json)
                try Output.standard.flush()
            }
        }
        Signals.onInterrupt { watching.cancel() }
        guard once else { return try await watching.value }
        try await Task.sleep(for: .seconds(1))
        watching.cancel()
        try await watching.value
        if browser.peers.isEmpty {
            throw LoveseatError(.notFound, "there are no peers of the type \(discovery.type) on this network")
        }
    }

    private static func print(_ event: PeerEvent, resolves: Bool, asJSON: Bool) async throws {
        let (word, peer) =
            switch event {
            case .found(let peer): ("found", peer)
            case .changed(let peer): ("changed", peer)
            case .gone(let peer): ("gone", peer)
            }
        let places = peer.interfaces.joined(separator: ",")
        // A peer that does not answer is shown without addresses.
        let addresses = resolves && word == "found" ? (try? await peer.resolve()) ?? [] : []
        guard asJSON else {
            return try Output.standard.fields(
                [word, peer.name, peer.peerID ?? "-", peer.path ?? "-", places]
                    + addresses.map { "\($0.address):\($0.port)" }
            )
        }
        var text = JSONObject()
        for entry in peer.text.entries {
            // A key without a value is not the same as one with an empty value.
            text[entry.key] = entry.value.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null
        }
        try Output.standard.line([
            "event": .string(word), "name": .string(peer.name), "type": .string(peer.type),
            "id": peer.peerID.map { .string($0) } ?? .null, "path": peer.path.map { .string($0) } ?? .null,
            "interfaces": .array(peer.interfaces.map { .string($0) }), "txt": .object(text),
            "addresses": .array(
                addresses.map { address in
                    [
                        "address": .string(address.address), "port": JSONValue(Int(address.port)),
                        "host": .string(address.host),
                    ]
                }
            ),
        ])
    }
}

/// Errors of searches, which end with the exit code of a peer that cannot be reached.
enum Unreachable {
    static func error(_ problem: LoveseatError) -> LoveseatError {
        LoveseatError(.timeout, problem.message)
    }
}

/// Where and what to search.
struct DiscoveryOptions: ParsableArguments {
    @Option(help: "The type of service, such as _myapp._tcp.")
    var type = "_loveseat._tcp"
    @Option(
        name: .customLong("on-interface"),
        help: "The interfaces to search on, separated by commas. The default is all."
    )
    var interfaces = ""
    @Option(
        name: .customLong("discovery"),
        help:
            "How to search: automatic, system (the Avahi daemon, or Apple's mDNSResponder), or multicast (without a daemon).",
        transform: Self.method
    )
    var method = DiscoveryMethod.automatic

    var interfaceNames: Swift.Set<String>? { interfaces.isEmpty ? nil : Swift.Set(interfaces.listItems) }

    private static func method(_ text: String) throws -> DiscoveryMethod {
        guard let method = DiscoveryMethod(rawValue: text) else {
            throw ValidationError("Use automatic, system or multicast.")
        }
        return method
    }

    func browser() throws -> PeerBrowser {
        try PeerBrowser(type: type, method: method, interfaces: interfaceNames)
    }

    /// Finds the first peer that is meant, within five seconds.
    func find(_ title: String, where isMeant: @escaping @Sendable (DiscoveredPeer) -> Bool) async throws
        -> DiscoveredPeer
    {
        let browser = try browser()
        if let problem = await browser.problem { throw Unreachable.error(problem) }
        let search = Task { () -> DiscoveredPeer? in
            for await event in browser {
                switch event {
                case .found(let peer), .changed(let peer): if isMeant(peer) { return peer }
                case .gone: break
                }
            }
            return nil
        }
        Signals.onInterrupt { search.cancel() }
        let deadline = Task {
            try await Task.sleep(for: .seconds(5))
            search.cancel()
        }
        defer { deadline.cancel() }
        guard let peer = await search.value else {
            if let signal = Signals.interruption { throw ExitCode(128 + signal) }
            throw LoveseatError(
                .timeout,
                "\(title) is not on this network: see `loveseat browse --once --type \(type)`"
            )
        }
        return peer
    }
}

/// The options with which a listener is advertised.
struct AdvertiseOptions: ParsableArguments {
    @Flag(
        name: .customLong("advertise"),
        help: "Let other machines of the network find this one (`loveseat browse`)."
    )
    var isOn = false
    @Option(
        name: .customLong("advertise-as"),
        help:
            "The name to advertise. The default is the database's name and the machine's. Implies --advertise."
    )
    var name: String?
    @OptionGroup var discovery: DiscoveryOptions

    func validate() throws {
        guard isOn || name != nil || (discovery.interfaces.isEmpty && discovery.method == .automatic) else {
            throw ValidationError("--on-interface and --discovery need --advertise.")
        }
    }

    /// Nil if the listener is not to be advertised.
    var advertisement: ServiceAdvertisement? {
        guard isOn || name != nil else { return nil }
        var advertisement = ServiceAdvertisement(type: discovery.type, name: name)
        advertisement.method = discovery.method
        advertisement.interfaces = discovery.interfaceNames
        return advertisement
    }
}
