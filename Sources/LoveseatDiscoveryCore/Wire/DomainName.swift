/// A DNS name: labels of at most 63 bytes, 255 bytes together. Names are compared without regard to the case of ASCII letters.
package struct DomainName: Hashable, Sendable {
    package let labels: [[UInt8]]
    /// The lower-case form by which names are compared.
    let key: [UInt8]

    /// Returns nil for an empty or overlong label, or an overlong name.
    package init?(labels: [[UInt8]]) {
        guard labels.allSatisfy({ (1...63).contains($0.count) }),
            labels.reduce(1, { $0 + $1.count + 1 }) <= 255
        else { return nil }
        self.init(valid: labels)
    }

    /// The root, which no service has.
    init(root: Void) { self.init(valid: []) }

    private init(valid labels: [[UInt8]]) {
        self.labels = labels
        key = Self.key(of: labels[...])
    }

    /// A name of labels without dots in them, such as `_http._tcp.local`.
    package init?(_ text: String) {
        self.init(labels: text.split(separator: ".").map { Array($0.utf8) })
    }

    package static func == (left: DomainName, right: DomainName) -> Bool { left.key == right.key }
    package func hash(into hasher: inout Hasher) { hasher.combine(key) }

    /// The name without its first labels.
    func dropFirst(_ count: Int = 1) -> DomainName { DomainName(valid: Array(labels.dropFirst(count))) }

    /// The name with a label before it.
    func prepending(_ label: [UInt8]) -> DomainName? { DomainName(labels: [label] + labels) }

    static func key(of labels: ArraySlice<[UInt8]>) -> [UInt8] {
        var key: [UInt8] = []
        for label in labels {
            key.append(UInt8(label.count))
            for byte in label { key.append((0x41...0x5A).contains(byte) ? byte | 0x20 : byte) }
        }
        return key
    }
}

extension DomainName: CustomStringConvertible {
    /// The labels with dots between them, for logs: dots inside of labels are not escaped.
    package var description: String {
        labels.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ".")
    }
}
