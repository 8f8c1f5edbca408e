/// The types of DNS records that discovery uses.
package enum DNSType {
    package static let a: UInt16 = 1
    package static let ptr: UInt16 = 12
    package static let txt: UInt16 = 16
    package static let aaaa: UInt16 = 28
    package static let srv: UInt16 = 33
    package static let nsec: UInt16 = 47
    package static let any: UInt16 = 255
}

/// The content of a DNS record of class IN.
package enum DNSData: Hashable, Sendable {
    /// Four bytes.
    case a([UInt8])
    /// Sixteen bytes.
    case aaaa([UInt8])
    case ptr(DomainName)
    case srv(priority: UInt16, weight: UInt16, port: UInt16, target: DomainName)
    /// The strings with their lengths, as they are sent.
    case txt([UInt8])
    /// The types that the record's name has, all below 256.
    case nsec([UInt16])
    case other(type: UInt16, [UInt8])

    package var type: UInt16 {
        switch self {
        case .a: DNSType.a
        case .aaaa: DNSType.aaaa
        case .ptr: DNSType.ptr
        case .srv: DNSType.srv
        case .txt: DNSType.txt
        case .nsec: DNSType.nsec
        case .other(let type, _): type
        }
    }

    /// The bytes without compression, by which simultaneous probes are compared (RFC 6762, 8.2). Empty for NSEC.
    var comparable: [UInt8] {
        switch self {
        case .a(let bytes), .aaaa(let bytes), .txt(let bytes), .other(_, let bytes): bytes
        case .ptr(let name): name.uncompressed
        case .srv(let priority, let weight, let port, let target):
            [priority, weight, port].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } + target.uncompressed
        case .nsec: []
        }
    }
}

extension DomainName {
    var uncompressed: [UInt8] { labels.flatMap { [UInt8($0.count)] + $0 } + [0] }
}

/// A DNS record of class IN.
package struct DNSRecord: Hashable, Sendable {
    package var name: DomainName
    package var data: DNSData
    /// In seconds. 0 says that the record is no longer valid.
    package var ttl: UInt32
    /// The cache-flush bit: the sender has all records of this name and type.
    package var isUnique: Bool

    package init(_ name: DomainName, _ data: DNSData, ttl: UInt32, isUnique: Bool) {
        self.name = name
        self.data = data
        self.ttl = ttl
        self.isUnique = isUnique
    }

    /// The identity of a record, whatever its time to live.
    struct Key: Hashable, Sendable {
        let name: DomainName
        let data: DNSData
    }

    var key: Key { Key(name: name, data: data) }
}

/// A question of class IN or any class.
package struct DNSQuestion: Hashable, Sendable {
    package var name: DomainName
    package var type: UInt16
    /// The QU bit: the answer may be sent to the asking host alone.
    package var wantsUnicast: Bool

    package init(_ name: DomainName, _ type: UInt16, wantsUnicast: Bool = false) {
        self.name = name
        self.type = type
        self.wantsUnicast = wantsUnicast
    }

    func matches(_ record: DNSRecord) -> Bool {
        name == record.name && (type == DNSType.any || type == record.data.type)
    }
}
