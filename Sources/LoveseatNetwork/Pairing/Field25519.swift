/// Numbers modulo 2^255 - 19, and the one map of CPace that no library offers (RFC 9380 §6.7.1, Elligator 2).
///
/// No code branches on the values, so that the time taken does not depend on the secret.
struct Field25519 {
    /// Below 2^256, the least significant first.
    private var limbs: [UInt64]

    private static let halfOfA = Field25519(243_331)
    private static let a = Field25519(486_662)
    /// 2^255 - 21, which inverts.
    private static let inversion: [UInt64] = [0xFFFF_FFFF_FFFF_FFEB, .max, .max, 0x7FFF_FFFF_FFFF_FFFF]
    /// 2^254 - 10, which distinguishes squares (1) from others (-1).
    private static let legendre: [UInt64] = [0xFFFF_FFFF_FFFF_FFF6, .max, .max, 0x3FFF_FFFF_FFFF_FFFF]

    private init(_ small: UInt64) { limbs = [small, 0, 0, 0] }

    /// Reads 32 bytes, the least significant first, without their highest bit; nil for any other length.
    init?(bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        limbs = (0..<4).map { limb in
            (0..<8).reduce(0) { $0 | UInt64(bytes[limb * 8 + $1]) << UInt64($1 * 8) }
        }
        limbs[3] &= .max >> 1
    }

    /// The number below the modulus, in 32 bytes, the least significant first.
    var bytes: [UInt8] {
        var number = self
        let top = number.limbs[3] >> 63
        number.limbs[3] &= .max >> 1
        _ = number.add(top &* 19)
        // A number of the modulus or more reaches 2^255 with 19 added.
        var wrapped = number
        _ = wrapped.add(19)
        let mask = 0 &- (wrapped.limbs[3] >> 63)
        wrapped.limbs[3] &= .max >> 1
        return zip(number.limbs, wrapped.limbs).flatMap { small, large in
            let limb = (small & ~mask) | (large & mask)
            return (0..<8).map { UInt8(truncatingIfNeeded: limb >> UInt64($0 * 8)) }
        }
    }

    /// The point's coordinate that this number is mapped to.
    var elligator: Field25519 {
        let squared = self * self
        let v = Field25519(0) - Self.a * (Field25519(1) + squared + squared).raised(to: Self.inversion)
        let sign = (v * (v * v + Self.a * v + Field25519(1))).raised(to: Self.legendre)
        return sign * v - (Field25519(1) - sign) * Self.halfOfA
    }

    // MARK: Arithmetic

    fileprivate static func + (one: Field25519, other: Field25519) -> Field25519 {
        var sum = one
        var carry: UInt64 = 0
        for index in 0..<4 {
            let (first, overflow) = one.limbs[index].addingReportingOverflow(other.limbs[index])
            let (second, again) = first.addingReportingOverflow(carry)
            sum.limbs[index] = second
            carry = (overflow ? 1 : 0) &+ (again ? 1 : 0)
        }
        // 2^256 is 38 here.
        carry = sum.add(carry &* 38)
        _ = sum.add(carry &* 38)
        return sum
    }

    fileprivate static func - (one: Field25519, other: Field25519) -> Field25519 {
        var difference = one
        var borrow: UInt64 = 0
        for index in 0..<4 {
            let (first, overflow) = one.limbs[index].subtractingReportingOverflow(other.limbs[index])
            let (second, again) = first.subtractingReportingOverflow(borrow)
            difference.limbs[index] = second
            borrow = (overflow ? 1 : 0) &+ (again ? 1 : 0)
        }
        borrow = difference.subtract(borrow &* 38)
        _ = difference.subtract(borrow &* 38)
        return difference
    }

    fileprivate static func * (one: Field25519, other: Field25519) -> Field25519 {
        var product = [UInt64](repeating: 0, count: 8)
        for i in 0..<4 {
            var carry: UInt64 = 0
            for j in 0..<4 {
                (carry, product[i + j]) = multiply(one.limbs[i], other.limbs[j], product[i + j], carry)
            }
            product[i + 4] = carry
        }
        var result = Field25519(0)
        var carry: UInt64 = 0
        for index in 0..<4 {
            (carry, result.limbs[index]) = multiply(product[index + 4], 38, product[index], carry)
        }
        carry = result.add(carry &* 38)
        _ = result.add(carry &* 38)
        return result
    }

    /// `one * other + third + fourth`, which fits into two words.
    private static func multiply(_ one: UInt64, _ other: UInt64, _ third: UInt64, _ fourth: UInt64) -> (
        high: UInt64, low: UInt64
    ) {
        let (high, low) = one.multipliedFullWidth(by: other)
        let (first, overflow) = low.addingReportingOverflow(third)
        let (second, again) = first.addingReportingOverflow(fourth)
        return (high &+ (overflow ? 1 : 0) &+ (again ? 1 : 0), second)
    }

    /// Adds a small number, and returns the carry out of the highest limb.
    private mutating func add(_ small: UInt64) -> UInt64 {
        var carry = small
        for index in 0..<4 {
            let (sum, overflow) = limbs[index].addingReportingOverflow(carry)
            limbs[index] = sum
            carry = overflow ? 1 : 0
        }
        return carry
    }

    private mutating func subtract(_ small: UInt64) -> UInt64 {
        var borrow = small
        for index in 0..<4 {
            let (difference, overflow) = limbs[index].subtractingReportingOverflow(borrow)
            limbs[index] = difference
            borrow = overflow ? 1 : 0
        }
        return borrow
    }

    /// The exponents are public constants, so their bits may decide.
    private func raised(to exponent: [UInt64]) -> Field25519 {
        var result = Field25519(1)
        for limb in exponent.reversed() {
            for bit in (0..<64).reversed() {
                result = result * result
                if limb >> UInt64(bit) & 1 == 1 { result = result * self }
            }
        }
        return result
    }
}
