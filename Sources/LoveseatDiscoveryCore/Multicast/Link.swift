/// One of this host's interfaces with one family of addresses: where datagrams come from and go to.
package struct Link: Hashable, Sendable {
    /// The index of the interface.
    package let interface: UInt32
    package let isIPv6: Bool

    package init(interface: UInt32, isIPv6: Bool) {
        self.interface = interface
        self.isIPv6 = isIPv6
    }
}

/// An interface that is up and can send multicasts.
package struct LinkInterface: Hashable, Sendable {
    /// An address with the length of its network's prefix.
    package struct Address: Hashable, Sendable {
        /// 4 or 16 bytes.
        package let bytes: [UInt8]
        package let prefixLength: Int

        package init(bytes: [UInt8], prefixLength: Int) {
            self.bytes = bytes
            self.prefixLength = prefixLength
        }

        package var isIPv6: Bool { bytes.count == 16 }

        package func contains(_ other: [UInt8]) -> Bool {
            guard other.count == bytes.count else { return false }
            let whole = min(prefixLength / 8, bytes.count)
            guard bytes[..<whole] == other[..<whole] else { return false }
            guard whole < bytes.count, prefixLength % 8 > 0 else { return true }
            return (bytes[whole] ^ other[whole]) >> UInt8(8 - prefixLength % 8) == 0
        }
    }

    package let index: UInt32
    package let name: String
    package let addresses: [Address]

    package init(index: UInt32, name: String, addresses: [Address]) {
        self.index = index
        self.name = name
        self.addresses = addresses
    }

    /// The families in which the interface can be used.
    package var links: [Link] {
        [false, true].filter { family in addresses.contains { $0.isIPv6 == family } }.map {
            Link(interface: index, isIPv6: $0)
        }
    }

    /// Whether the interface reaches this host only.
    package var isLoopback: Bool {
        addresses.contains { $0.bytes.first == 127 || $0.bytes == [UInt8](repeating: 0, count: 15) + [1] }
    }

    /// Whether an address is on the interface's link, and not behind a router. IPv6's link-local addresses always are.
    package func isOnLink(_ address: [UInt8]) -> Bool {
        if address.count == 16, address[0] == 0xFE, address[1] & 0xC0 == 0x80 { return true }
        return addresses.contains { $0.contains(address) }
    }
}

/// A datagram that arrived at the multicast port.
package struct IncomingDatagram: Sendable {
    package let bytes: [UInt8]
    /// 4 or 16 bytes.
    package let source: [UInt8]
    package let port: UInt16
    package let link: Link

    package init(bytes: [UInt8], source: [UInt8], port: UInt16, link: Link) {
        self.bytes = bytes
        self.source = source
        self.port = port
        self.link = link
    }
}
