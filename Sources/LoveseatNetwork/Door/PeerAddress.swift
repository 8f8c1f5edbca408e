import LoveseatIdentity
package import NIOCore

/// The address of a client, for policies and for people.
package struct PeerAddress: Hashable {
    /// Without the port; an IPv4 address that came over an IPv6 socket in its own form.
    package let text: String

    package init(_ address: SocketAddress?) {
        let text = address?.ipAddress ?? ""
        let isMapped = text.hasPrefix("::ffff:") && text.contains(".")
        self.text = isMapped ? String(text.dropFirst("::ffff:".count)) : text
    }

    /// The unit that is throttled: an IPv4 address, or the /64 network of an IPv6 host.
    package static func network(of text: String) -> String {
        guard let bytes = IPAddress.bytes(text), bytes.count == 16 else { return text }
        return bytes.prefix(8).map { String($0, radix: 16) }.joined(separator: ":")
    }
}
