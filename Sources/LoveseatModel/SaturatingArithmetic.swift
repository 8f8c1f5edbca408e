/// Arithmetic on numbers from a peer or a user, which may have any value.
extension FixedWidthInteger {
    /// The sum, or the nearest number that the type has.
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other < 0 ? .min : .max
    }

    /// The difference, or the nearest number that the type has.
    package func subtractingSaturated(_ other: Self) -> Self {
        let (difference, overflows) = subtractingReportingOverflow(other)
        guard overflows else { return difference }
        return Self.isSigned && other < 0 ? .max : .min
    }

    /// The product, or the nearest number that the type has.
    package func multipliedSaturated(by other: Self) -> Self {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        guard overflows else { return product }
        return (self < 0) == (other < 0) ? .max : .min
    }
}
