/// The type of a service, such as `_loveseat._tcp`.
public struct ServiceType: Hashable, Sendable, CustomStringConvertible {
    /// Loveseat's own type.
    public static let loveseat = ServiceType(valid: "_loveseat")

    /// The first part of the type, with its underscore.
    package let application: String

    private init(valid application: String) { self.application = application }

    /// Creates a type from a text such as `_myapp._tcp`; a dot or `.local.` at its end is ignored.
    ///
    /// Names may have up to 63 bytes, because some apps use longer ones than the 15 that RFC 6335 allows. Returns nil for anything that is
    /// not a type of TCP.
    public init?(_ text: String) {
        var parts = text.split(separator: ".", omittingEmptySubsequences: true).map(String.init)
        if parts.last?.lowercased() == "local" { parts.removeLast() }
        guard parts.count == 2, parts[1].lowercased() == "_tcp", parts[0].utf8.first == UInt8(ascii: "_"),
            (2...63).contains(parts[0].utf8.count),
            parts[0].utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        application = parts[0]
    }

    /// Whether the type follows RFC 6335: 1 to 15 letters, digits and single hyphens, one letter at least.
    public var isRegistrable: Bool {
        let name = application.utf8.dropFirst()
        func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
        return (1...15).contains(name.count) && name.contains(where: isLetter)
            && name.allSatisfy { isLetter($0) || $0 &- 0x30 <= 9 || $0 == UInt8(ascii: "-") }
            && name.first != UInt8(ascii: "-") && name.last != UInt8(ascii: "-")
            && !application.contains("--")
    }

    /// The type as text, such as `_loveseat._tcp`.
    public var description: String { "\(application)._tcp" }

    /// The name under which services of the type are found.
    package var domainName: DomainName? {
        DomainName(labels: [Array(application.utf8), Array("_tcp".utf8), Array("local".utf8)])
    }

    /// Types are compared without regard to case.
    public static func == (left: ServiceType, right: ServiceType) -> Bool {
        left.application.lowercased() == right.application.lowercased()
    }

    /// Hashes the lower-case type.
    public func hash(into hasher: inout Hasher) { hasher.combine(application.lowercased()) }
}

/// The name of a service on the link: an instance of a type.
package struct ServiceName: Hashable, Sendable {
    package let instance: String
    package let type: ServiceType

    package init(instance: String, type: ServiceType) {
        self.instance = instance
        self.type = type
    }

    /// Reads the name to which a PTR record leads.
    init?(_ name: DomainName) {
        guard name.labels.count == 4, name.labels[3].elementsEqual("local".utf8),
            let type = ServiceType(
                String(decoding: name.labels[1], as: UTF8.self) + "."
                    + String(decoding: name.labels[2], as: UTF8.self)
            ),
            let instance = String(validating: name.labels[0], as: UTF8.self)
        else { return nil }
        self.init(instance: instance, type: type)
    }

    package var domainName: DomainName? { type.domainName?.prepending(Array(instance.utf8)) }
}

/// The rules of instance names.
package enum InstanceName {
    package static let maximumBytes = 63

    /// Whether a name is 1 to 63 bytes without control characters.
    package static func isValid(_ name: String) -> Bool {
        (1...maximumBytes).contains(name.utf8.count)
            && name.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
    }

    /// The longest beginning of whole characters that fits into a number of bytes.
    package static func cut(_ name: String, to maximum: Int = maximumBytes) -> String {
        var (result, count) = ("", 0)
        for character in name {
            count += character.utf8.count
            guard count <= maximum else { break }
            result.append(character)
        }
        return result
    }

    /// The next name to try after a collision: `name #2`, then `name #3`.
    package static func alternative(to name: String) -> String {
        var (base, number) = (name, 2)
        if let mark = name.range(of: " #"), let count = Int(name[mark.upperBound...]), count > 1,
            count < 1_000_000_000
        {
            (base, number) = (String(name[..<mark.lowerBound]), count + 1)
        }
        let suffix = " #\(number)"
        return cut(base, to: maximumBytes - suffix.utf8.count) + suffix
    }
}

extension String {
    /// The last occurrence of a text.
    fileprivate func range(of text: String) -> Range<String.Index>? {
        var (start, found): (Index, Range<Index>?) = (startIndex, nil)
        while let match = self[start...].firstRange(of: text) {
            found = match
            start = index(after: match.lowerBound)
        }
        return found
    }
}
