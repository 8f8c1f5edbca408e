import LoveseatModel

/// A date as it is written in text: its fields, and its zone if there is one.
struct QueryDate: Sendable {
    var year = 2000
    var month = 1
    var day = 1
    /// Milliseconds since midnight.
    var time: Int64 = 0
    /// Minutes ahead of UTC; nil if no zone is written.
    var offset: Int?
    var hasDate = false
    var hasTime = false
    /// Between date and time.
    var separator: UInt8 = UInt8(ascii: "T")

    static let day: Int64 = 86_400_000

    /// Reads a date, a time, or both; nil if it is neither.
    init?(_ text: String) {
        var reader = Reader(bytes: Array(text.utf8))
        if reader.isDate {
            // A year before 0 is read too, although nothing else about it is specified.
            let era = reader.consume("-") ? -1 : 1
            guard let year = reader.digits(4).map({ $0 * era }), reader.consume("-"),
                let month = reader.digits(2), reader.consume("-"),
                let day = reader.digits(2), (1...12).contains(month),
                (1...GregorianCalendar.days(year, month)).contains(day)
            else { return nil }
            (self.year, self.month, self.day) = (year, month, day)
            hasDate = true
            let separator = reader.next
            if reader.consume("T") {
                guard time(&reader) else { return nil }
                self.separator = UInt8(ascii: "T")
            } else if separator == UInt8(ascii: " ") {
                reader.skipBlanks()
                if reader.next.map({ $0 &- 0x30 <= 9 }) == true {
                    guard time(&reader) else { return nil }
                    self.separator = UInt8(ascii: " ")
                }
            }
        } else {
            guard time(&reader) else { return nil }
        }
        reader.skipBlanks()
        guard reader.next == nil else { return nil }
    }

    private mutating func time(_ reader: inout Reader) -> Bool {
        guard let hour = reader.digits(2), hour <= 24, reader.consume(":"), let minute = reader.digits(2),
            minute < 60
        else {
            return false
        }
        var milliseconds = Int64(hour * 60 + minute) * 60_000
        if reader.consume(":") {
            guard let second = reader.digits(2), second < 60 else { return false }
            milliseconds += Int64(second) * 1000
            if reader.consume(".") {
                guard let fraction = reader.fraction() else { return false }
                milliseconds += Int64((fraction * 1000).rounded())
            }
        }
        time = milliseconds
        hasTime = true
        let mark = reader.position
        reader.skipBlanks()
        if reader.consume("Z") || reader.consume("z") {
            offset = 0
        } else if let sign = reader.sign() {
            guard let hours = reader.digits(2), hours <= 14 else { return false }
            _ = reader.consume(":")
            guard let minutes = reader.digits(2), minutes < 60 else { return false }
            offset = sign * (hours * 60 + minutes)
        } else {
            reader.position = mark
        }
        return true
    }

    private struct Reader {
        let bytes: [UInt8]
        var position = 0

        var next: UInt8? { position < bytes.count ? bytes[position] : nil }
        var isDate: Bool {
            let year = bytes.first == UInt8(ascii: "-") ? 5 : 4
            return bytes.count > year && bytes[year] == UInt8(ascii: "-")
        }

        mutating func consume(_ character: Unicode.Scalar) -> Bool {
            guard next == UInt8(ascii: character) else { return false }
            position += 1
            return true
        }

        mutating func sign() -> Int? { consume("+") ? 1 : consume("-") ? -1 : nil }

        mutating func skipBlanks() { while next == UInt8(ascii: " ") { position += 1 } }

        /// Exactly so many digits.
        mutating func digits(_ count: Int) -> Int? {
            guard position + count <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[position..<position + count] {
                guard byte &- 0x30 <= 9 else { return nil }
                value = value * 10 + Int(byte &- 0x30)
            }
            position += count
            return value
        }

        mutating func fraction() -> Double? {
            let start = position
            var (value, scale) = (0.0, 1.0)
            while let byte = next, byte &- 0x30 <= 9 {
                value = value * 10 + Double(byte &- 0x30)
                scale *= 10
                position += 1
                // More digits do not change milliseconds, and must not overflow.
                if position - start > 17 {
                    while let byte = next, byte &- 0x30 <= 9 { position += 1 }
                }
            }
            return position > start ? value / scale : nil
        }
    }

    /// Milliseconds since 1970 of the fields, as if they were UTC.
    var fields: Int64 { GregorianCalendar.dayNumber(year, month, day) * Self.day + time }

    /// Milliseconds since 1970. Without a zone the date is in local time.
    func milliseconds(_ environment: QueryEnvironment) -> Int64 {
        if let offset { return fields - Int64(offset) * 60_000 }
        let seconds = fields.quotientAndRemainder(dividingBy: 1000).quotient
        let before = environment.localOffset(seconds - 86_400)
        let after = environment.localOffset(seconds + 86_400)
        // An hour that the clock repeats or leaves out is taken by the later offset, as the real engine does.
        let isEarlier =
            environment.localOffset(seconds - after) != after
            && environment.localOffset(seconds - before) == before
        return fields - (isEarlier ? before : after) * 1000
    }

    /// The parts of a written date: date, time, zone.
    struct Format {
        var hasDate = true
        var hasTime = true
        var hasZone = true
        var separator = UInt8(ascii: "T")

        init() {}

        init?(_ example: QueryValue?) {
            guard let text = example?.string, let date = QueryDate(text) else { return nil }
            hasDate = date.hasDate
            hasTime = date.hasTime
            hasZone = date.offset != nil
            separator = date.separator
        }
    }

    /// Writes a time, in a zone so many minutes ahead of UTC.
    static func text(_ milliseconds: Int64, offset: Int, _ format: Format) -> String {
        let (local, overflow) = milliseconds.addingReportingOverflow(Int64(offset) * 60_000)
        guard !overflow else { return "" }
        var dayNumber = local / day
        var rest = local % day
        if rest < 0 {
            rest += day
            dayNumber -= 1
        }
        func two(_ value: some BinaryInteger) -> String { (value < 10 ? "0" : "") + String(value) }
        var result = ""
        if format.hasDate {
            let date = GregorianCalendar.date(ofDay: dayNumber)
            let year = String(abs(date.year))
            result +=
                (date.year < 0 ? "-" : "") + String(repeating: "0", count: max(0, 4 - year.utf8.count)) + year
            result += "-" + two(date.month) + "-" + two(date.day)
        }
        guard format.hasTime else { return result }
        if format.hasDate { result += String(Character(Unicode.Scalar(format.separator))) }
        result += two(rest / 3_600_000) + ":" + two(rest / 60_000 % 60) + ":" + two(rest / 1000 % 60)
        let fraction = rest % 1000
        if fraction != 0 { result += "." + String(String(1000 + fraction).dropFirst()) }
        guard format.hasZone else { return result }
        if offset == 0 { return result + "Z" }
        return result + (offset < 0 ? "-" : "+") + two(abs(offset) / 60) + two(abs(offset) % 60)
    }
}
