/// Times as documents contain them: `2026-03-01T09:30:00.250Z`, in the Gregorian calendar for all years, from 0000 to 9999.
package struct ISO8601Time: Hashable, Sendable {
    /// Whole seconds since 1970 in UTC, rounded down.
    package var seconds: Int64
    /// The fraction of a second, in units of which there are ``fractionsPerSecond``.
    package var fraction: Int64
    package var fractionsPerSecond: Int64

    private static let secondsPerDay: Int64 = 86_400
    /// The seconds of the years that four digits can name.
    package static let range =
        GregorianCalendar.dayNumber(0, 1, 1) * secondsPerDay..<GregorianCalendar.dayNumber(10_000, 1, 1)
        * secondsPerDay

    /// Creates a time from milliseconds since 1970; nil if four digits cannot name its year.
    package init?(milliseconds: Int64) {
        seconds = milliseconds / 1_000
        fraction = milliseconds % 1_000
        fractionsPerSecond = 1_000
        if fraction < 0 {
            seconds -= 1
            fraction += 1_000
        }
        guard Self.range.contains(seconds) else { return nil }
    }

    /// Reads a date and a time of the day, with or without a fraction, and `Z` or an offset from UTC. Of a fraction, nine digits count.
    ///
    /// Nil for anything else, and for a date that the calendar does not have.
    package init?(_ text: String) {
        var text = text
        let read = text.withUTF8 { Self.read($0) }
        guard let read, Self.range.contains(read.seconds) else { return nil }
        self = read
    }

    private init(seconds: Int64, fraction: Int64, fractionsPerSecond: Int64) {
        self.seconds = seconds
        self.fraction = fraction
        self.fractionsPerSecond = fractionsPerSecond
    }

    private static func read(_ text: UnsafeBufferPointer<UInt8>) -> Self? {
        var reader = Reader(text: text)
        guard let year = reader.digits(4), reader.skip("-"), let month = reader.digits(2), reader.skip("-"),
            let day = reader.digits(2), reader.skip("T") || reader.skip("t"), let hour = reader.digits(2),
            reader.skip(":"), let minute = reader.digits(2), reader.skip(":"), let second = reader.digits(2),
            (1...12).contains(month), (1...GregorianCalendar.days(Int(year), Int(month))).contains(Int(day)),
            minute < 60, second <= 60,
            // ISO 8601 writes the end of a day as 24:00:00.
            hour < 24 || (hour, minute, second) == (24, 0, 0)
        else { return nil }
        guard let (fraction, scale) = reader.fraction(), let offset = reader.offset(), reader.isAtEnd else {
            return nil
        }
        let days = GregorianCalendar.dayNumber(Int(year), Int(month), Int(day))
        let ofDay = hour * 3_600 + minute * 60 + second - offset
        return Self(seconds: days * secondsPerDay + ofDay, fraction: fraction, fractionsPerSecond: scale)
    }

    /// The text in UTC, with milliseconds.
    package var text: String {
        let days = (seconds - (seconds < 0 ? Self.secondsPerDay - 1 : 0)) / Self.secondsPerDay
        let ofDay = seconds - days * Self.secondsPerDay
        let date = GregorianCalendar.date(ofDay: days)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24)
        func append(_ number: Int64, _ digits: Int, _ end: Unicode.Scalar) {
            var (power, rest) = (1 as Int64, number)
            for _ in 1..<digits { power *= 10 }
            while power > 0 {
                bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / power))
                rest %= power
                power /= 10
            }
            bytes.append(UInt8(ascii: end))
        }
        append(Int64(date.year), 4, "-")
        append(Int64(date.month), 2, "-")
        append(Int64(date.day), 2, "T")
        append(ofDay / 3_600, 2, ":")
        append(ofDay / 60 % 60, 2, ":")
        append(ofDay % 60, 2, ".")
        append(fraction * 1_000 / fractionsPerSecond, 3, "Z")
        return String(decoding: bytes, as: UTF8.self)
    }
}

private struct Reader {
    let text: UnsafeBufferPointer<UInt8>
    var position = 0

    init(text: UnsafeBufferPointer<UInt8>) { self.text = text }

    var isAtEnd: Bool { position == text.count }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard position < text.count, text[position] == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func digit() -> Int64? {
        guard position < text.count, text[position] &- 0x30 <= 9 else { return nil }
        position += 1
        return Int64(text[position - 1] - 0x30)
    }

    mutating func digits(_ count: Int) -> Int64? {
        var number: Int64 = 0
        for _ in 0..<count {
            guard let digit = digit() else { return nil }
            number = number * 10 + digit
        }
        return number
    }

    mutating func fraction() -> (fraction: Int64, scale: Int64)? {
        guard skip(".") || skip(",") else { return (0, 1) }
        var (fraction, scale) = (0 as Int64, 1 as Int64)
        guard let first = digit() else { return nil }
        (fraction, scale) = (first, 10)
        while let digit = digit() {
            if scale < 1_000_000_000 { (fraction, scale) = (fraction * 10 + digit, scale * 10) }
        }
        return (fraction, scale)
    }

    /// The seconds that the time is ahead of UTC.
    mutating func offset() -> Int64? {
        if skip("Z") || skip("z") { return 0 }
        let isBehind = skip("-")
        guard isBehind || skip("+"), let hours = digits(2), hours < 24 else { return nil }
        var seconds = hours * 3_600
        for unit in [60, 1] as [Int64] where !isAtEnd {
            _ = skip(":")
            guard let number = digits(2), number < 60 else { return nil }
            seconds += number * unit
        }
        return isBehind ? -seconds : seconds
    }
}
