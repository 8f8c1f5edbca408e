/// Some Unicode scalars.
struct ScalarSet: Sendable {
    var ranges: [ClosedRange<UInt32>] = []
    var isNegated = false
    /// Whether upper and lower case are the same.
    var ignoresCase = false

    static let digit = ScalarSet(ranges: [0x30...0x39])
    static let word = ScalarSet(ranges: [0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
    static let space = ScalarSet(ranges: [0x09...0x0D, 0x20...0x20])
    static let any = ScalarSet(ranges: [0...0x10_FFFF])

    /// POSIX's classes of characters, by their names.
    static let classes: [String: ScalarSet] = [
        "alpha": ScalarSet(ranges: [0x41...0x5A, 0x61...0x7A]), "digit": .digit, "space": .space,
        "alnum": ScalarSet(ranges: [0x30...0x39, 0x41...0x5A, 0x61...0x7A]),
        "upper": ScalarSet(ranges: [0x41...0x5A]), "lower": ScalarSet(ranges: [0x61...0x7A]),
        "blank": ScalarSet(ranges: [0x09...0x09, 0x20...0x20]),
        "punct": ScalarSet(ranges: [0x21...0x2F, 0x3A...0x40, 0x5B...0x60, 0x7B...0x7E]),
        "xdigit": ScalarSet(ranges: [0x30...0x39, 0x41...0x46, 0x61...0x66]),
        "cntrl": ScalarSet(ranges: [0x00...0x1F, 0x7F...0x7F]),
        "print": ScalarSet(ranges: [0x20...0x7E]), "graph": ScalarSet(ranges: [0x21...0x7E]),
    ]

    static func one(_ scalar: Unicode.Scalar) -> ScalarSet {
        ScalarSet(ranges: [scalar.value...scalar.value])
    }

    var negated: ScalarSet {
        var set = self
        set.isNegated.toggle()
        return set
    }

    /// The scalar, if it is the only one and case counts.
    var single: Unicode.Scalar? {
        guard !isNegated, !ignoresCase, ranges.count == 1, ranges[0].count == 1 else { return nil }
        return Unicode.Scalar(ranges[0].lowerBound)
    }

    /// Adds the scalars of another set, which may be a negated one.
    mutating func formUnion(_ other: ScalarSet) {
        guard other.isNegated else {
            ranges += other.ranges
            return
        }
        var low: UInt32 = 0
        for range in other.ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if range.lowerBound > low { ranges.append(low...(range.lowerBound - 1)) }
            low = range.upperBound + 1
        }
        if low <= 0x10_FFFF { ranges.append(low...0x10_FFFF) }
    }

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        var isIn = has(scalar)
        if ignoresCase, !isIn {
            let properties = scalar.properties
            isIn = [properties.lowercaseMapping, properties.uppercaseMapping].contains { mapped in
                let scalars = mapped.unicodeScalars
                return scalars.count == 1 && scalars.first.map(has) ?? false
            }
        }
        return isIn != isNegated
    }

    private func has(_ scalar: Unicode.Scalar) -> Bool { ranges.contains { $0.contains(scalar.value) } }
}
