/// The compact index that one pass over the text creates.
///
/// One 64-bit word a value, in the order of the text, keys included; containers take two:
/// ```
///  63   60 59                 32 31                     0
/// ┌───────┬─────────────────────┬────────────────────────┐
/// │ kind  │ length (28 bits)    │ offset in the text     │
/// └───────┴─────────────────────┴────────────────────────┘
/// ```
/// The offset of a string is that of its first byte inside the quotes. The length counts the bytes of a string or
/// number, and the words of a container, these two included. The second word of a container holds the number of
/// its members (keys not counted) above the offset just past its closing bracket.
package enum JSONTape {
    package static let maximumTextBytes = (1 << 28) - 1

    package enum Kind: UInt8, Sendable {
        case null = 1
        case `true`, `false`
        /// A number without fraction or exponent.
        case integer
        /// Any other number.
        case decimal
        /// A string without escapes.
        case plainString
        /// A string with escapes, or with U+007F, which the canonical form escapes.
        case escapedString
        case array
        case object
    }

    @inline(__always)
    package static func word(_ kind: Kind, offset: Int, length: Int) -> UInt64 {
        UInt64(kind.rawValue) << 60 | UInt64(truncatingIfNeeded: length) << 32
            | UInt64(truncatingIfNeeded: offset)
    }

    @inline(__always)
    package static func kind(_ word: UInt64) -> Kind {
        // Words are only written by the scanner, whose kinds are these.
        Kind(rawValue: UInt8(truncatingIfNeeded: word >> 60)) ?? .null
    }

    @inline(__always)
    package static func length(_ word: UInt64) -> Int { Int(truncatingIfNeeded: word >> 32) & 0x0FFF_FFFF }

    @inline(__always)
    package static func offset(_ word: UInt64) -> Int { Int(truncatingIfNeeded: word & 0xFFFF_FFFF) }

    /// How many words the value at this word takes.
    @inline(__always)
    package static func span(_ word: UInt64) -> Int {
        word >> 60 >= UInt64(Kind.array.rawValue) ? length(word) : 1
    }
}
