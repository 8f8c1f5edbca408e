/// Compares text by the Unicode algorithm: letters first, then accents, then case.
///
/// The order of letters inside a script is that of their code points, after the marks were taken off, with the
/// exceptions of Latin; scripts, digits, punctuation and symbols are in the order of the Unicode collation algorithm's
/// groups. Languages move letters (``CollationTailoring``).
package struct UnicodeCollator: Sendable {
    package let collation: TextCollation
    private let tailoring: CollationTailoring

    package init(_ collation: TextCollation) {
        self.collation = collation
        tailoring = CollationTailoring(locale: collation.locale)
    }

    /// One letter with its marks.
    struct Element: Equatable {
        var primary: UInt32
        var marks: [UInt32] = []
        var tertiary: UInt8 = 0
    }

    /// Less than 0, 0 or more, as the first text is before, equal to or after the second.
    package func compare(_ one: String, _ other: String) -> Int {
        if one.utf8.elementsEqual(other.utf8) { return 0 }
        let (left, right) = (elements(one), elements(other))
        for (a, b) in zip(left, right) where a.primary != b.primary { return a.primary < b.primary ? -1 : 1 }
        if left.count != right.count { return left.count < right.count ? -1 : 1 }
        if !collation.ignoresAccents {
            for (a, b) in zip(left, right) where a.marks != b.marks {
                return a.marks.lexicographicallyPrecedes(b.marks) ? -1 : 1
            }
        }
        if !collation.ignoresCase {
            for (a, b) in zip(left, right) where a.tertiary != b.tertiary {
                return a.tertiary < b.tertiary ? -1 : 1
            }
        }
        return 0
    }

    /// Whether a text contains another one.
    package func contains(_ text: String, _ part: String) -> Bool {
        let (all, wanted) = (comparable(text), comparable(part))
        guard !wanted.isEmpty, wanted.count <= all.count else { return false }
        return (0...(all.count - wanted.count)).contains { start in
            wanted.indices.allSatisfy { all[start + $0] == wanted[$0] }
        }
    }

    private func comparable(_ text: String) -> [Element] {
        elements(text).map { element in
            var element = element
            if collation.ignoresAccents { element.marks = [] }
            if collation.ignoresCase { element.tertiary = 0 }
            return element
        }
    }

    /// The letters of a text.
    func elements(_ text: String) -> [Element] {
        var elements: [Element] = []
        elements.reserveCapacity(text.utf8.count)
        var ascii = true
        for byte in text.utf8 where byte >= 0x80 {
            ascii = false
            break
        }
        if ascii, tailoring.isEmpty {
            for byte in text.utf8 { elements.append(CollationWeights.ascii[Int(byte)]) }
            elements.removeAll { $0.primary == 0 }
            return elements
        }
        var scalars = Self.decomposed(text)[...]
        while let scalar = scalars.popFirst() {
            if let (element, length) = tailoring.match(scalar, scalars) {
                scalars.removeFirst(length)
                elements.append(element)
            } else if scalar.properties.canonicalCombiningClass != .notReordered
                || scalar.properties.generalCategory == .nonspacingMark
            {
                guard !elements.isEmpty else { continue }
                elements[elements.count - 1].marks.append(scalar.value)
            } else {
                CollationWeights.append(scalar, to: &elements)
            }
        }
        return elements
    }

    /// The canonical decomposition, with marks in canonical order.
    static func decomposed(_ text: String) -> [Unicode.Scalar] {
        var scalars: [Unicode.Scalar] = []
        scalars.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if scalar.value < 0xC0 {
                scalars.append(scalar)
            } else if (0xAC00...0xD7A3).contains(scalar.value) {
                let index = scalar.value - 0xAC00
                for value in [0x1100 + index / 588, 0x1161 + index % 588 / 28, 0x11A7 + index % 28]
                where value != 0x11A7 {
                    if let part = Unicode.Scalar(value) { scalars.append(part) }
                }
            } else if let parts = CanonicalDecompositions.table[scalar] {
                scalars.append(contentsOf: parts)
            } else {
                scalars.append(scalar)
            }
        }
        // Marks are few: insertion keeps equal classes in their order.
        for index in scalars.indices.dropFirst() {
            let order = scalars[index].properties.canonicalCombiningClass
            guard order != .notReordered else { continue }
            var place = index
            while place > 0, scalars[place - 1].properties.canonicalCombiningClass > order {
                scalars.swapAt(place, place - 1)
                place -= 1
            }
        }
        return scalars
    }
}

/// The places of letters, digits and signs.
enum CollationWeights {
    typealias Element = UnicodeCollator.Element

    private static let signs = "\t\n\r `^_-,;:!?.'\"()[]{}@*/\\&#%+<=>|~$"
    static let firstDigit: UInt32 = 0x0100_0000
    static let firstLetter: UInt32 = 0x0200_0000

    static let ascii: [Element] = (0..<128).map { byte in
        let scalar = Unicode.Scalar(UInt8(byte))
        if let place = signs.unicodeScalars.firstIndex(of: scalar) {
            let distance = signs.unicodeScalars.distance(from: signs.unicodeScalars.startIndex, to: place)
            return Element(primary: UInt32(distance) + 1)
        }
        switch byte {
        case 0x30...0x39: return Element(primary: firstDigit + UInt32(byte - 0x30) << 4)
        case 0x41...0x5A: return Element(primary: letter(UInt32(byte) + 0x20), tertiary: 1)
        case 0x61...0x7A: return Element(primary: letter(UInt32(byte)))
        // Control characters do not count.
        default: return Element(primary: 0)
        }
    }

    /// The place of a small letter; the next free ones are for letters that follow it.
    static func letter(_ value: UInt32) -> UInt32 { firstLetter + value << 5 }

    /// Latin letters that no decomposition splits: the letters that they count as, or follow.
    private static let latin: [UInt32: (letters: String, isAfter: Bool)] = [
        0xDF: ("ss", false), 0x1E9E: ("SS", false), 0xE6: ("ae", false), 0xC6: ("AE", false),
        0x153: ("oe", false),
        0x152: ("OE", false), 0xF8: ("o", false), 0xD8: ("O", false), 0x142: ("l", false),
        0x141: ("L", false),
        0x111: ("d", true), 0x110: ("D", true), 0xF0: ("d", true), 0xD0: ("D", true), 0x127: ("h", true),
        0x126: ("H", true), 0x131: ("i", true), 0x133: ("ij", false), 0x132: ("IJ", false),
        0x138: ("q", true),
        0x14B: ("n", true), 0x14A: ("N", true), 0x167: ("t", true), 0x166: ("T", true), 0x259: ("e", true),
        0x18F: ("E", true), 0xFE: ("z", true), 0xDE: ("Z", true), 0x17F: ("s", false), 0xFB01: ("fi", false),
        0xFB02: ("fl", false), 0xFB00: ("ff", false), 0xFB03: ("ffi", false), 0xFB04: ("ffl", false),
        0xAA: ("a", false), 0xBA: ("o", false),
    ]

    /// The mark of a letter that counts as another.
    private static let stroke: UInt32 = 0x338

    static func append(_ scalar: Unicode.Scalar, to elements: inout [Element]) {
        if scalar.value < 128 {
            let element = ascii[Int(scalar.value)]
            if element.primary != 0 { elements.append(element) }
            return
        }
        if let (letters, isAfter) = latin[scalar.value] {
            for (index, byte) in letters.utf8.enumerated() {
                var element = ascii[Int(byte)]
                if isAfter {
                    element.primary += 1 + (scalar.value == 0xF0 || scalar.value == 0xD0 ? 1 : 0)
                } else if letters.utf8.count == 1 {
                    element.marks = [stroke]
                } else if index == 0 {
                    // Ligatures differ as case does, letters such as ß as accents do.
                    if scalar.value >= 0xFB00 { element.tertiary |= 2 } else { element.marks = [1] }
                }
                elements.append(element)
            }
            return
        }
        let properties = scalar.properties
        switch properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .letterNumber,
            .spacingMark, .enclosingMark:
            let small = properties.lowercaseMapping.unicodeScalars.first ?? scalar
            let isCapital = small != scalar
            elements.append(
                Element(
                    primary: firstLetter + script(small.value) << 21 + (small.value & 0x1_FFFF) << 4,
                    tertiary: isCapital ? 1 : 0
                )
            )
        case .decimalNumber:
            let value = UInt32(properties.numericValue ?? 0)
            elements.append(Element(primary: firstDigit + value << 4, tertiary: 1))
        case .control, .format, .unassigned: break
        case .spaceSeparator: elements.append(Element(primary: 4, tertiary: 1))
        case .otherNumber:
            elements.append(Element(primary: firstDigit + 0x100 + scalar.value))
        default:
            elements.append(Element(primary: 0x100 + scalar.value))
        }
    }

    /// Scripts in the order of the Unicode collation algorithm; Latin is first, with room for its own letters.
    private static func script(_ value: UInt32) -> UInt32 {
        switch value {
        case 0x80..<0x370, 0x1D00..<0x1F00, 0x2C60..<0x2C80, 0xA720..<0xA800: 1
        case 0x370..<0x400, 0x1F00..<0x2000: 2
        case 0x400..<0x530, 0x1C80..<0x1C90, 0x2DE0..<0x2E00, 0xA640..<0xA6A0: 3
        case 0x10A0..<0x1100, 0x1C90..<0x1CC0, 0x2D00..<0x2D30: 4
        case 0x530..<0x590: 5
        case 0x590..<0x600, 0xFB1D..<0xFB50: 6
        case 0x600..<0x700, 0x750..<0x780, 0x8A0..<0x900: 7
        case 0x700..<0x900: 8
        case 0x1200..<0x1400: 9
        case 0x900..<0x10A0: 10
        case 0x1100..<0x1200, 0x3130..<0x3190: 12
        case 0x3040..<0x3100, 0x31F0..<0x3200: 13
        case 0x3100..<0x3130: 14
        case 0x3400..<0xA000, 0x2_0000..<0x4_0000: 15
        default: 11
        }
    }
}
