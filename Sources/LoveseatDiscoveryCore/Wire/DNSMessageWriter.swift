/// Encodes messages, with names compressed.
struct DNSMessageWriter {
    private(set) var bytes: [UInt8]
    /// The positions of names, by the lower-case form of their labels.
    private var offsets: [[UInt8]: Int] = [:]
    private var counts: [UInt16] = [0, 0, 0, 0]

    /// The sections of a message, in their order.
    enum Section: Int { case questions, answers, authorities, additionals }

    init(id: UInt16 = 0, isResponse: Bool) {
        bytes = [UInt8](repeating: 0, count: 12)
        (bytes[0], bytes[1]) = (UInt8(id >> 8), UInt8(id & 0xFF))
        if isResponse { bytes[2] = 0x84 }
    }

    var isEmpty: Bool { counts.allSatisfy { $0 == 0 } }

    mutating func setTruncated() { bytes[2] |= 0x02 }

    /// Returns false, and appends nothing, if the message would be longer than a number of bytes.
    mutating func append(_ question: DNSQuestion, limit: Int) -> Bool {
        let before = self
        count(.questions)
        append(question.name)
        append(question.type)
        append(question.wantsUnicast ? 0x8001 : 1)
        guard bytes.count <= limit else {
            self = before
            return false
        }
        return true
    }

    /// Returns false, and appends nothing, if the message would be longer than a number of bytes.
    mutating func append(_ record: DNSRecord, to section: Section, limit: Int) -> Bool {
        let before = self
        count(section)
        append(record.name)
        append(record.data.type)
        append(record.isUnique ? 0x8001 : 1)
        append(UInt16(record.ttl >> 16))
        append(UInt16(record.ttl & 0xFFFF))
        let start = bytes.count
        append(0)
        append(record.data, of: record.name)
        let length = bytes.count - start - 2
        guard bytes.count <= limit, length <= 0xFFFF else {
            self = before
            return false
        }
        (bytes[start], bytes[start + 1]) = (UInt8(length >> 8), UInt8(length & 0xFF))
        return true
    }

    private mutating func append(_ data: DNSData, of name: DomainName) {
        switch data {
        case .a(let content), .aaaa(let content), .txt(let content), .other(_, let content): bytes += content
        case .ptr(let name): append(name)
        case .srv(let priority, let weight, let port, let target):
            for value in [priority, weight, port] { append(value) }
            append(target)
        case .nsec(let types):
            bytes += name.uncompressed
            var bitmap = [UInt8](repeating: 0, count: Int((types.max() ?? 0) & 0xFF) / 8 + 1)
            for type in types where type < 256 { bitmap[Int(type) / 8] |= 0x80 >> (UInt8(type) & 7) }
            bytes += [0, UInt8(bitmap.count)] + bitmap
        }
    }

    private mutating func count(_ section: Section) {
        counts[section.rawValue] += 1
        let value = counts[section.rawValue]
        (bytes[4 + section.rawValue * 2], bytes[5 + section.rawValue * 2]) = (
            UInt8(value >> 8), UInt8(value & 0xFF)
        )
    }

    private mutating func append(_ value: UInt16) { bytes += [UInt8(value >> 8), UInt8(value & 0xFF)] }

    private mutating func append(_ name: DomainName) {
        for index in name.labels.indices {
            let key = DomainName.key(of: name.labels[index...])
            if let offset = offsets[key] { return append(0xC000 | UInt16(offset)) }
            if bytes.count < 0x4000 { offsets[key] = bytes.count }
            bytes.append(UInt8(name.labels[index].count))
            bytes += name.labels[index]
        }
        bytes.append(0)
    }
}

extension DNSMessage {
    /// The message in as many datagrams as it needs, each of at most `limit` bytes. Questions and additional records that do not fit are
    /// left out, and so is a record that is longer than a datagram.
    package func encoded(limit: Int) -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        var writer = DNSMessageWriter(id: id, isResponse: isResponse)
        for question in questions { _ = writer.append(question, limit: limit) }
        for record in answers where !writer.append(record, to: .answers, limit: limit) {
            if !writer.isEmpty {
                if !isResponse { writer.setTruncated() }
                datagrams.append(writer.bytes)
            }
            writer = DNSMessageWriter(id: id, isResponse: isResponse)
            _ = writer.append(record, to: .answers, limit: limit)
        }
        for record in authorities { _ = writer.append(record, to: .authorities, limit: limit) }
        for record in additionals { _ = writer.append(record, to: .additionals, limit: limit) }
        if !writer.isEmpty { datagrams.append(writer.bytes) }
        return datagrams
    }

    /// The message in one datagram of at most `limit` bytes, for a receiver that expects no other. Questions and records that do not fit
    /// are left out.
    func encodedAlone(limit: Int) -> [UInt8] {
        var writer = DNSMessageWriter(id: id, isResponse: isResponse)
        for question in questions { _ = writer.append(question, limit: limit) }
        for record in answers { _ = writer.append(record, to: .answers, limit: limit) }
        for record in additionals { _ = writer.append(record, to: .additionals, limit: limit) }
        return writer.bytes
    }
}
