/// The platform's functions that query functions use, since a pure target cannot reach them.
package struct QueryEnvironment: Sendable {
    /// Functions of one number that the C library computes.
    package enum Transcendental: Sendable { case acos, asin, atan, cos, exp, ln, log, sin, tan }

    /// Computes a function of one number.
    package var transcendental: @Sendable (Transcendental, Double) -> Double
    package var power: @Sendable (Double, Double) -> Double
    /// The angle of (x, y), given as y and x.
    package var atan2: @Sendable (Double, Double) -> Double
    /// How far local time is ahead of UTC, in seconds, at a time in seconds since 1970.
    package var localOffset: @Sendable (Int64) -> Int64

    package init(
        transcendental: @escaping @Sendable (Transcendental, Double) -> Double,
        power: @escaping @Sendable (Double, Double) -> Double,
        atan2: @escaping @Sendable (Double, Double) -> Double,
        localOffset: @escaping @Sendable (Int64) -> Int64
    ) {
        self.transcendental = transcendental
        self.power = power
        self.atan2 = atan2
        self.localOffset = localOffset
    }
}

/// Why a query fails while it runs: an argument that a function refuses, which SQLite reports with its code 1.
package struct QueryRunError: Error, Hashable, Sendable {
    package var message: String
    package init(_ message: String) { self.message = message }
}
