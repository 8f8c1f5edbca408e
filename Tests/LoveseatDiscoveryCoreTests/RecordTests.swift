import LoveseatDiscoveryCore
import LoveseatModel
import Testing

@Suite("TXT records and names of services")
struct ServiceTextTests {
    static let typical =
        (try? ServiceText([
            .init(key: "txtvers", value: Array("1".utf8)), .init(key: "path", value: Array("trips".utf8)),
            .init(key: "tls", value: Array("1".utf8)),
            .init(key: "fp", value: Array("00112233445566778899aabbccddeeff".utf8)),
            .init(key: "id", value: Array("00112233445566778899aabbccddeeff".utf8)),
            .init(key: "v", value: Array("b2,b3".utf8)),
        ]))?.bytes ?? []

    @Test("A key without a value, an empty value and a binary value are three different things")
    func values() throws {
        let text = try ServiceText([
            .init(key: "a", value: nil), .init(key: "b", value: []), .init(key: "c", value: [0, 0xFF, 0x3D]),
        ])
        #expect(text.bytes == [1, 0x61, 2, 0x62, 0x3D, 5, 0x63, 0x3D, 0, 0xFF, 0x3D])
        #expect(ServiceText(bytes: text.bytes) == text)
        #expect(text["b"] == "")
        #expect(text.entry("a") == .init(key: "a", value: nil))
        #expect(text["c"] == nil)
    }

    @Test("Keys are compared without regard to case, and the first counts")
    func duplicates() {
        let text = ServiceText(bytes: [4, 0x70, 0x3D, 0x31, 0x32, 3, 0x50, 0x3D, 0x33, 2, 0x3D, 0x34])
        #expect(text["P"] == "12")
        #expect(text.entries.count == 1)
    }

    @Test("An empty record is one zero byte")
    func empty() throws {
        #expect(try ServiceText().bytes == [0])
        #expect(ServiceText(bytes: [0]).entries.isEmpty)
        #expect(ServiceText(bytes: []).entries.isEmpty)
    }

    @Test("Entries beyond 255 bytes and records beyond 1,300 are refused")
    func limits() throws {
        let long = [UInt8](repeating: 0x78, count: 253)
        #expect(try ServiceText([.init(key: "a", value: long)]).bytes.count == 256)
        let refused: [[ServiceText.Entry]] =
            [[.init(key: "ab", value: long)], (0..<6).map { .init(key: "\($0)", value: long) }]
            + ["", "a=b", "ä", "\n"].map { [.init(key: $0, value: nil)] }
        for entries in refused {
            let error = #expect(throws: LoveseatError.self) { try ServiceText(entries) }
            #expect(error?.code == .invalidParameter)
        }
    }

    @Test("Types follow RFC 6335 to be registered, and are read more widely")
    func types() {
        for name in ["_http._tcp", "_my-app._tcp", "_a1._tcp.", "_loveseat._tcp.local."] {
            #expect(ServiceType(name)?.isRegistrable == true, "\(name)")
        }
        for name in ["_cblistservicesync._tcp", "_a--b._tcp", "_-a._tcp", "_a-._tcp", "_12._tcp"] {
            #expect(ServiceType(name)?.isRegistrable == false, "\(name)")
        }
        for name in ["http._tcp", "_http._udp", "_http", "_._tcp", "", "a._http._tcp", "_a b._tcp"] {
            #expect(ServiceType(name) == nil, "\(name)")
        }
        #expect(ServiceType("_couchbaseP2P._tcp") == ServiceType("_COUCHBASEp2p._TCP"))
    }

    @Test("Instance names are cut at characters, and numbered after collisions")
    func instanceNames() {
        let long = String(repeating: "a", count: 60) + "👩‍👩‍👧‍👦"
        #expect(InstanceName.cut(long) == String(repeating: "a", count: 60))
        #expect(InstanceName.cut("Ana's desk. ✓") == "Ana's desk. ✓")
        #expect(InstanceName.alternative(to: "trips") == "trips #2")
        #expect(InstanceName.alternative(to: "trips #9") == "trips #10")
        #expect(InstanceName.alternative(to: "a #b") == "a #b #2")
        let full = String(repeating: "é", count: 31)
        #expect(InstanceName.alternative(to: full).utf8.count <= 63)
        #expect(InstanceName.alternative(to: full).hasSuffix("é #2"))
        #expect(InstanceName.isValid("a.b c"))
        #expect(!InstanceName.isValid(""))
        #expect(!InstanceName.isValid("a\u{7}"))
        #expect(!InstanceName.isValid(String(repeating: "a", count: 64)))
    }
}

@Suite("DNS messages")
struct MessageTests {
    static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.filter { !$0.isWhitespace }
        return stride(from: 0, to: digits.count, by: 2).compactMap { offset in
            let start = digits.index(digits.startIndex, offsetBy: offset)
            return UInt8(digits[start...].prefix(2), radix: 16)
        }
    }

    /// An announcement that Avahi accepts.
    static let announcement = bytes(
        """
        0000 8400 0000 0004 0000 0000
        0e5f636f756368626173656c697465045f746370056c6f63616c00 000c 0001 00001194 0020
        04707572650e5f636f756368626173656c697465045f746370056c6f63616c00
        04707572650e5f636f756368626173656c697465045f746370056c6f63616c00 0021 8001 00000078 0014 0000 0000 04d2
        06707572652d62056c6f63616c00
        04707572650e5f636f756368626173656c697465045f746370056c6f63616c00 0010 8001 00001194 0014
        0c706174683d2f70686f746f73 0669643d616263
        06707572652d62056c6f63616c00 0001 8001 00000078 0004 a9fe4d02
        """
    )

    @Test("A plain message is read, and the same comes back from its compressed form")
    func roundTrip() throws {
        let message = try DNSMessage(Self.announcement)
        #expect(message.isResponse)
        #expect(message.answers.map(\.data.type) == [DNSType.ptr, DNSType.srv, DNSType.txt, DNSType.a])
        #expect(message.answers.map(\.isUnique) == [false, true, true, true])
        #expect(message.answers[1].name.description == "pure._couchbaselite._tcp.local")
        let encoded = message.encoded(limit: 1_440)
        #expect(encoded.count == 1)
        #expect(encoded[0].count < Self.announcement.count)
        #expect(try DNSMessage(encoded[0]) == message)
    }

    @Test("Names that lead to themselves or forwards, and overlong ones, are refused")
    func loops() {
        let head = Self.bytes("0000 0000 0001 0000 0000 0000")
        for name in ["c00c", "c00e 0000", "0161 c00c", "4161 00", "8000", "c0ff", "ff"] {
            #expect(throws: DNSMessage.Malformed.self) {
                try DNSMessage(head + Self.bytes(name) + [0, 12, 0, 1])
            }
        }
        let label = [63] + [UInt8](repeating: 0x61, count: 63)
        let long = Array(repeatElement(label, count: 5).joined()) + [0, 0, 12, 0, 1]
        #expect(throws: DNSMessage.Malformed.badName) { try DNSMessage(head + long) }
        // Eleven jumps.
        var chain = head
        chain[5] = 12
        chain += [1, 0x61, 0, 0, 12, 0, 1]
        for index in 0..<11 {
            let target = index == 0 ? 12 : 19 + (index - 1) * 6
            chain += [0xC0, UInt8(target), 0, 12, 0, 1]
        }
        #expect(throws: DNSMessage.Malformed.badName) { try DNSMessage(chain) }
    }

    @Test("Every truncation of a message is refused or read, without a trap")
    func truncated() {
        for count in 0..<Self.announcement.count {
            #expect(throws: DNSMessage.Malformed.self) {
                try DNSMessage(Array(Self.announcement.prefix(count)))
            }
        }
        #expect(throws: DNSMessage.Malformed.tooLong) { try DNSMessage([UInt8](repeating: 0, count: 9_001)) }
    }

    @Test("Changed bytes are refused or read, without a trap, and a node survives them")
    func mutations() {
        var random = SimulatedNetwork.SplitMix(state: 11)
        let network = SimulatedNetwork(seed: 11)
        network.addHost()
        _ = network.with(0) { $0.browse(.loveseat, at: $1) }
        _ = network.publish("trips", at: 0)
        network.run(for: 5_000)
        let samples = [Self.announcement] + network.datagrams.map(\.bytes)
        for _ in 0..<20_000 {
            var bytes = samples[Int(random.next() % UInt64(samples.count))]
            for _ in 0...(random.next() % 6) {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            network.inject(bytes, from: [169, 254, 9, 9])
            network.run(for: 5)
        }
        network.run(for: 30_000)
        #expect(network.published(by: 0).count == 1)
    }

    @Test("A long list of known answers is sent in several datagrams, with the TC bit in all but the last")
    func knownAnswers() throws {
        var message = DNSMessage()
        let type = try #require(ServiceType.loveseat.domainName)
        message.questions = [DNSQuestion(type, DNSType.ptr)]
        for number in 0..<200 {
            let name = try #require(DomainName(labels: [Array("peer number \(number)".utf8)] + type.labels))
            message.answers.append(DNSRecord(type, .ptr(name), ttl: 4_000, isUnique: false))
        }
        let datagrams = try message.encoded(limit: 1_440).map { try DNSMessage($0) }
        #expect(datagrams.count > 1)
        #expect(datagrams.map(\.isTruncated) == datagrams.indices.map { $0 < datagrams.count - 1 })
        #expect(datagrams.map(\.questions.count) == datagrams.indices.map { $0 == 0 ? 1 : 0 })
        #expect(datagrams.reduce(0) { $0 + $1.answers.count } == 200)
    }
}
