/// A message of multicast DNS.
package struct DNSMessage: Hashable, Sendable {
    /// Why bytes are not a message.
    package enum Malformed: Error, Hashable {
        case tooLong, truncated, badName, badRecord
    }

    /// The longest message that is accepted, in bytes.
    package static let maximumSize = 9_000
    private static let maximumJumps = 10

    package var id: UInt16 = 0
    package var isResponse = false
    /// The TC bit: more known answers follow.
    package var isTruncated = false
    package var questions: [DNSQuestion] = []
    package var answers: [DNSRecord] = []
    package var authorities: [DNSRecord] = []
    package var additionals: [DNSRecord] = []

    package init() {}

    /// Decodes a message. Questions and records of other classes are left out.
    ///
    /// - Throws: ``Malformed``.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumSize else { throw .tooLong }
        var reader = Reader(bytes: bytes)
        id = try reader.word()
        let flags = try reader.word()
        isResponse = flags & 0x8000 != 0
        isTruncated = flags & 0x0200 != 0
        // Other operations and failures are ignored (RFC 6762, 18.3 and 18.11).
        let isIgnored = flags & 0x780F != 0
        let counts = (try reader.word(), try reader.word(), try reader.word(), try reader.word())
        if isIgnored { return }
        for _ in 0..<counts.0 {
            let name = try reader.name()
            let (type, kind) = (try reader.word(), try reader.word())
            guard kind & 0x7FFF == 1 || kind & 0x7FFF == 255 else { continue }
            questions.append(DNSQuestion(name, type, wantsUnicast: kind & 0x8000 != 0))
        }
        answers = try reader.records(counts.1)
        authorities = try reader.records(counts.2)
        additionals = try reader.records(counts.3)
    }

    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        mutating func byte() throws(Malformed) -> UInt8 {
            guard position < bytes.count else { throw .truncated }
            defer { position += 1 }
            return bytes[position]
        }

        mutating func word() throws(Malformed) -> UInt16 { UInt16(try byte()) << 8 | UInt16(try byte()) }

        mutating func read(_ count: Int) throws(Malformed) -> [UInt8] {
            guard count <= bytes.count - position else { throw .truncated }
            defer { position += count }
            return Array(bytes[position..<position + count])
        }

        /// Pointers lead backwards only, so that a name ends.
        mutating func name() throws(Malformed) -> DomainName {
            var labels: [[UInt8]] = []
            var size = 1
            var end: Int?
            var jumps = 0
            var limit = position
            while true {
                let length = try byte()
                switch length >> 6 {
                case 0 where length == 0:
                    if let end { position = end }
                    guard let name = DomainName(labels: labels) else { throw .badName }
                    return name
                case 0:
                    size += Int(length) + 1
                    guard size <= 255 else { throw .badName }
                    labels.append(try read(Int(length)))
                case 3:
                    let target = Int(length & 0x3F) << 8 | Int(try byte())
                    end = end ?? position
                    jumps += 1
                    guard target < limit, jumps <= DNSMessage.maximumJumps else { throw .badName }
                    (position, limit) = (target, target)
                default: throw .badName
                }
            }
        }

        mutating func records(_ count: UInt16) throws(Malformed) -> [DNSRecord] {
            var records: [DNSRecord] = []
            for _ in 0..<count {
                let name = try name()
                let (type, kind) = (try word(), try word())
                let ttl = UInt32(try word()) << 16 | UInt32(try word())
                let length = Int(try word())
                let end = position + length
                guard end <= bytes.count else { throw .truncated }
                guard kind & 0x7FFF == 1 else {
                    position = end
                    continue
                }
                let data = try data(type, length)
                guard position == end else { throw .badRecord }
                records.append(DNSRecord(name, data, ttl: ttl, isUnique: kind & 0x8000 != 0))
            }
            return records
        }

        private mutating func data(_ type: UInt16, _ length: Int) throws(Malformed) -> DNSData {
            switch type {
            case DNSType.a where length == 4: return .a(try read(4))
            case DNSType.aaaa where length == 16: return .aaaa(try read(16))
            case DNSType.a, DNSType.aaaa: throw .badRecord
            case DNSType.ptr: return .ptr(try name())
            case DNSType.txt: return .txt(try read(length))
            case DNSType.srv:
                let (priority, weight, port) = (try word(), try word(), try word())
                return .srv(priority: priority, weight: weight, port: port, target: try name())
            default: return .other(type: type, try read(length))
            }
        }
    }
}
