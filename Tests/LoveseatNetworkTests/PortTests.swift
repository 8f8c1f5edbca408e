import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatNetwork
import LoveseatTesting
import Testing

/// Ports that URLs name: the program's own, a user's, or those of a redirect.
struct PortTests {
    private static let hosts = ["127.0.0.1", "[::1]", "a.example", "localhost", "user:65536@a.example"]

    /// Numbers around the limits of 16, 32 and 64 bits, and any other.
    private static func digits(_ generator: inout SeededGenerator) -> String {
        let edges = [
            "0", "1", "80", "65534", "65535", "65536", "65537", "451000", "2147483648", "4294967296",
            "4294967376",
            "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
            "18446744073709551697", "-1", "+80", "00080", "8_0", "8 0", "0x50", "",
        ]
        if generator.chance(0.5) { return generator.pick(edges) }
        return String(generator.int(0...1 << generator.int(1...61)))
    }

    @Test func `only a port from 1 to 65535 is one, in every kind of URL`() throws {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<3_000 {
            let digits = Self.digits(&generator)
            let scheme = generator.pick(["http", "https", "ws", "wss", "HTTPS"])
            let text =
                "\(scheme)://\(generator.pick(Self.hosts)):\(digits)\(generator.pick(["", "/", "/db", "/db?a=b:1", "#x:5"]))"
            let expected: UInt16? =
                digits.isEmpty ? (["https", "wss"].contains(scheme.lowercased()) ? 443 : 80) : UInt16(digits)
            guard let url = URL(string: text) else { continue }
            let port = digits.hasPrefix("+") ? nil : expected.flatMap { $0 > 0 ? $0 : nil }
            #expect(url.validPort == port, "\(text)")
            guard port == nil else { continue }
            let error = #expect(throws: LoveseatError.self, "\(text)") { try URLEndpoint(url).validate() }
            #expect(error?.code == .invalidURL, "\(text)")
            #expect(ProxyConfiguration(url: text) == nil, "\(text)")
            #expect(!RequestPolicy.isOrigin(text), "\(text)")
            let here = WebSocketAddress(host: "127.0.0.1", port: 80, isSecure: false, target: "/db")
            let redirect = #expect(throws: LoveseatError.self, "\(text)") { try here.redirected(to: text) }
            #expect(redirect?.code == .invalidRedirect, "\(text)")
        }
        #expect(URL(string: "wss://a.example/db")?.validPort == 443)
        #expect(URL(string: "http://[::1]/db")?.validPort == 80)
    }
}
