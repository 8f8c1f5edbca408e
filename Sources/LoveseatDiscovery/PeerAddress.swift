public import Foundation
import LoveseatCore
public import LoveseatDiscoveryCore
import LoveseatIdentity
import LoveseatModel
import LoveseatNetwork
private import Synchronization

/// An address at which a peer can be reached now. Addresses change, so do not store them.
public struct PeerAddress: Hashable, Sendable {
    /// The IP address as text, with the scope of an IPv6 link-local address, such as `fe80::1%eth0`.
    public let address: String
    /// The TCP port.
    public let port: UInt16
    /// The name of the host in the domain `local`. The system may be unable to resolve it.
    public let host: String
    /// The TXT record of the service.
    public let text: ServiceText

    package init(address: String, port: UInt16, host: String, text: ServiceText) {
        self.address = address
        self.port = port
        self.host = host
        self.text = text
    }

    /// Returns a URL, such as `http://192.168.1.7:59840/trips`, with the path of the TXT record.
    ///
    /// The scheme is `wss`, `ws`, `https` or `http`, for example. The default port of a scheme is left out.
    public func url(scheme: String) -> URL? {
        let bracketed = "[\(address.replacingOccurrences(of: "%", with: "%25"))]"
        let standard = ["http": 80, "ws": 80, "https": 443, "wss": 443][scheme.lowercased()]
        let suffix = standard == Int(port) ? "" : ":\(port)"
        let path = String((text["path"] ?? "").drop { $0 == "/" })
        guard let encoded = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) else {
            return nil
        }
        return URL(string: "\(scheme)://\(address.contains(":") ? bracketed : address)\(suffix)/\(encoded)")
    }
}

extension DiscoveredPeer {
    /// Finds out at which addresses the peer can be reached, best first: IPv4, IPv6, IPv6 of the link, IPv4 of the link.
    ///
    /// Only addresses that are on a link of this host are returned, and no ports below 1,024.
    ///
    /// It waits for at most 5 seconds, or as long as `timeout` says.
    ///
    /// - Throws: `LoveseatError`: `timeout` if the peer does not answer; `CancellationError`.
    public func resolve(timeout: Duration = .seconds(5)) async throws -> [PeerAddress] {
        try await Resolver(origin: origin).addresses(of: found.services, timeout: timeout, name: name)
            .filter { $0.port >= Resolver.firstOrdinaryPort }
    }
}

/// Resolves services to addresses.
struct Resolver {
    static let firstOrdinaryPort: UInt16 = 1_024
    /// After the first answer, how long to wait for those of other links.
    private static let patience = Duration.milliseconds(100)
    /// The maximum number of addresses that are tried.
    private static let maximumAddresses = 16

    let origin: DiscoveryOrigin

    /// Resolves all services of a peer. The service of an impostor is among them, and does not replace the peer's own.
    func addresses(of services: [ServiceName], timeout: Duration, name: String) async throws -> [PeerAddress]
    {
        let provider = try await origin.provider
        var ranked: [(rank: Int, address: PeerAddress)] = []
        try await withThrowingTaskGroup(of: [MulticastNode.Location].self) { group in
            for service in services {
                group.addTask { try await Self.locate(service, with: provider, timeout: timeout) }
            }
            for try await locations in group { ranked += Self.candidates(locations) }
        }
        var seen: Set<String> = []
        let addresses = ranked.sorted { $0.rank < $1.rank }.map(\.address).filter {
            seen.insert("\($0.address) \($0.port)").inserted
        }
        guard !addresses.isEmpty else {
            try Task.checkCancellation()
            throw LoveseatError(
                .timeout,
                "\"\(name)\" does not answer on this network: is its device awake, and does its app run?"
            )
        }
        return Array(addresses.prefix(Self.maximumAddresses))
    }

    private static func locate(
        _ service: ServiceName,
        with provider: any DiscoveryProvider,
        timeout: Duration
    ) async throws -> [MulticastNode.Location] {
        let (stream, continuation) = AsyncStream<[MulticastNode.Location]>.makeStream(
            bufferingPolicy: .bufferingNewest(1)
        )
        let task = provider.resolve(service) { continuation.yield($0) }
        defer { withExtendedLifetime(task) {} }
        let deadline = Task {
            try await Task.sleep(for: timeout)
            continuation.finish()
        }
        defer { deadline.cancel() }
        var found: [MulticastNode.Location] = []
        var ending: Task<Void, any Error>?
        defer { ending?.cancel() }
        for await locations in stream {
            found = locations
            guard ending == nil else { continue }
            ending = Task {
                try await Task.sleep(for: patience)
                continuation.finish()
            }
        }
        try Task.checkCancellation()
        return found
    }

    /// The addresses that are on a link of this host: a record must not lead connections elsewhere.
    private static func candidates(_ locations: [MulticastNode.Location]) -> [(Int, PeerAddress)] {
        let interfaces = HostAddresses.interfaces(all: true)
        var found: [(Int, PeerAddress)] = []
        for location in locations {
            guard let interface = interfaces.first(where: { $0.index == location.link.interface }) else {
                continue
            }
            for bytes in location.addresses where interface.isOnLink(bytes) {
                guard let text = text(of: bytes, on: interface), let rank = rank(of: bytes) else { continue }
                let address = PeerAddress(
                    address: text,
                    port: location.port,
                    host: location.host.hasSuffix(".") ? String(location.host.dropLast()) : location.host,
                    text: ServiceText(bytes: location.text)
                )
                found.append((rank, address))
            }
        }
        return found
    }

    private static func rank(of bytes: [UInt8]) -> Int? {
        if bytes.count == 4 { return bytes[0] == 169 && bytes[1] == 254 ? 3 : 0 }
        guard bytes.count == 16 else { return nil }
        return bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80 ? 2 : 1
    }

    private static func text(of bytes: [UInt8], on interface: LinkInterface) -> String? {
        if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") }
        let groups = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        let plain = groups.map { String($0, radix: 16) }.joined(separator: ":")
        guard let text = IPAddress.compressed(plain) else { return nil }
        return bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80 ? "\(text)%\(interface.name)" : text
    }
}
