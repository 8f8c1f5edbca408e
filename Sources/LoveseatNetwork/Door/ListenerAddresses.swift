package import Foundation
import LoveseatModel
package import NIOCore
import NIOPosix

/// The addresses of this host.
package enum ListenerAddresses {
    /// Returns the address to bind for an interface's name or address.
    package static func address(of interface: String, port: Int) throws -> SocketAddress {
        if let address = try? SocketAddress(ipAddress: interface, port: port) { return address }
        let candidates = try System.enumerateDevices().filter { $0.name == interface }.compactMap(\.address)
        // IPv4 first, because it is easier to write down.
        let sorted = candidates.filter { $0.protocol == .inet } + candidates.filter { $0.protocol == .inet6 }
        guard var address = sorted.first else {
            throw LoveseatError(
                .unknownHost,
                "there is no network interface \"\(interface)\" with an address"
            )
        }
        address.port = port
        return address
    }

    /// Whether only this host reaches an interface's name or address.
    package static func isLoopback(_ interface: String) -> Bool {
        // Nobody can listen on an interface that does not exist or has no address: binding to it says why.
        guard let host = try? address(of: interface, port: 0).ipAddress else { return false }
        return isLoopback(address: host)
    }

    private static func isLoopback(address: String) -> Bool {
        address.hasPrefix("127.") || address.isExactly("::1")
    }

    /// The first of some URLs with another host; none without a host.
    package static func url(in urls: [URL], host: String?) -> [URL] {
        guard let host, let first = urls.first,
            var parts = URLComponents(url: first, resolvingAgainstBaseURL: false)
        else { return [] }
        parts.host = host
        return [parts.url].compactMap { $0 }
    }

    /// The URLs of a listener: those that other hosts reach first, this host's own last.
    package static func urls(
        networkInterface: String?,
        port: UInt16,
        schemes: (plain: String, secure: String) = ("ws", "wss"),
        isSecure: Bool,
        databaseName: String
    ) throws -> [URL] {
        let path = databaseName.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? databaseName
        func url(_ host: String) -> URL? {
            let host = host.contains(":") ? "[\(host.replacingOccurrences(of: "%", with: "%25"))]" : host
            return URL(string: "\(isSecure ? schemes.secure : schemes.plain)://\(host):\(port)/\(path)")
        }
        if let networkInterface {
            let address = try address(of: networkInterface, port: Int(port))
            return [address.ipAddress].compactMap { $0 }.compactMap(url)
        }
        var seen: Set<String> = []
        var hosts: [(rank: Int, host: String)] = []
        for device in try System.enumerateDevices() {
            guard let address = device.address, let host = address.ipAddress, seen.insert(host).inserted
            else {
                continue
            }
            let isLoopback = isLoopback(address: host)
            let isLinkLocal = host.hasPrefix("fe80:")
            let rank = (isLoopback ? 4 : 0) + (isLinkLocal ? 2 : 0) + (address.protocol == .inet6 ? 1 : 0)
            let zone = isLinkLocal && !host.contains("%") ? "%\(device.name)" : ""
            hosts.append((rank, host + zone))
        }
        return hosts.sorted { $0.rank < $1.rank }.compactMap { url($0.host) }
    }
}
