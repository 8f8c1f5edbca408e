import CDiscovery
package import LoveseatDiscoveryCore

/// The addresses of this host's interfaces.
package enum HostAddresses {
    private static let maximum = 1_024

    /// The interfaces that have addresses. `names`: the only ones to list; nil for all. `all`: whether to list those that are not up or
    /// cannot send multicasts, too.
    package static func interfaces(named names: Set<String>? = nil, all: Bool = false) -> [LinkInterface] {
        var list = [lv_address](repeating: lv_address(), count: maximum)
        let count = Int(lv_addresses(&list, Int32(maximum)))
        guard count > 0 else { return [] }
        var found: [UInt32: LinkInterface] = [:]
        for entry in list.prefix(count) where all || entry.is_usable != 0 {
            let name = withUnsafeBytes(of: entry.name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard names?.contains(name) ?? true else { continue }
            let bytes = withUnsafeBytes(of: entry.bytes) { Array($0.prefix(Int(entry.size))) }
            let address = LinkInterface.Address(bytes: bytes, prefixLength: Int(entry.prefix_length))
            found[entry.interface] = LinkInterface(
                index: entry.interface,
                name: name,
                addresses: (found[entry.interface]?.addresses ?? []) + [address]
            )
        }
        return found.values.sorted { $0.index < $1.index }
    }

    /// The name of an interface.
    package static func name(of interface: UInt32) -> String? {
        interfaces(all: true).first { $0.index == interface }?.name
    }
}
