import Foundation

/// Addresses as text and as bytes.
package enum IPAddress {
    /// The 4 bytes of an IPv4 address or the 16 of an IPv6 address; nil for other texts.
    package static func bytes(_ text: String) -> [UInt8]? {
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: four) { Array($0) } }
        var six = in6_addr()
        if inet_pton(AF_INET6, text, &six) == 1 { return withUnsafeBytes(of: six) { Array($0) } }
        return nil
    }

    /// The usual short form of an IPv6 address.
    package static func compressed(_ text: String) -> String? {
        var six = in6_addr()
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_pton(AF_INET6, text, &six) == 1,
            inet_ntop(AF_INET6, &six, &buffer, socklen_t(buffer.count)) != nil
        else { return nil }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
