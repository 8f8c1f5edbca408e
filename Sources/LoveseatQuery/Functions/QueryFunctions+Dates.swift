import LoveseatAssertions
import LoveseatModel

extension QueryFunctions {
    func dated(_ id: QueryFunctionID, _ arguments: [QueryValue]) -> QueryValue {
        func argument(_ index: Int) -> QueryValue { index < arguments.count ? arguments[index] : .missing }
        func date(_ index: Int) -> QueryDate? { argument(index).string.flatMap { QueryDate($0) } }
        func number(_ index: Int) -> Int64? {
            argument(index).number == nil ? nil : Self.cut(argument(index))
        }

        switch id {
        case .strToMillis:
            guard let date = date(0), date.hasDate else { return .null }
            return .integer(date.milliseconds(environment))
        case .strToUTC:
            guard let date = date(0) else { return .null }
            return written(date.milliseconds(environment), 0, argument(1))
        case .strToTZ:
            guard let date = date(0), let offset = number(1) else { return .null }
            return written(date.milliseconds(environment), offset, argument(2))
        case .millisToUTC:
            guard let time = number(0) else { return .null }
            return written(time, 0, argument(1))
        case .millisToTZ:
            guard let time = number(0), let offset = number(1) else { return .null }
            return written(time, offset, argument(2))
        case .millisToStr:
            guard let time = number(0) else { return .null }
            return written(time, localMinutes(time), argument(1))
        case .dateAddStr:
            guard let date = date(0), let count = number(1), let part = Part(argument(2)) else {
                return .missing
            }
            let offset = date.offset ?? 0
            guard let fields = Self.add(date.fields, count, part) else { return .missing }
            return written(fields - Int64(offset) * 60_000, Int64(offset), argument(3))
        case .dateAddMillis:
            guard let time = number(0), let count = number(1), let part = Part(argument(2)),
                let result = Self.add(time, count, part)
            else { return .missing }
            return .integer(result)
        case .dateDiffStr:
            guard let one = date(0), let other = date(1), let part = Part(argument(2)) else {
                return .missing
            }
            return .integer(
                Self.difference(
                    one.fields - Int64(one.offset ?? 0) * 60_000,
                    other.fields - Int64(other.offset ?? 0) * 60_000,
                    part
                )
            )
        case .dateDiffMillis:
            guard let one = number(0), let other = number(1), let part = Part(argument(2)) else {
                return .missing
            }
            return .integer(Self.difference(one, other, part))
        default:
            impossible("\(id) is not about dates")
            return .missing
        }
    }

    /// The furthest time that is a date, in milliseconds since 1970.
    private static let farthest: Int64 = 1_000_000_000_000_000

    private func localMinutes(_ time: Int64) -> Int64 {
        environment.localOffset(min(max(time, -Self.farthest), Self.farthest) / 1000) / 60
    }

    private func written(_ time: Int64, _ offset: Int64, _ example: QueryValue) -> QueryValue {
        guard abs(offset.clamped) <= 100_000, abs(time.clamped) <= Self.farthest else {
            return .null
        }
        return .string(QueryDate.text(time, offset: Int(offset), .init(example) ?? .init()))
    }

    enum Part: String {
        case millennium, century, decade, year, quarter, month, week, day, hour, minute, second, millisecond

        init?(_ value: QueryValue) {
            guard let word = value.string, let part = Part(rawValue: word.lowercased()) else { return nil }
            self = part
        }

        /// The number of the smaller units: months, or milliseconds.
        var months: Int64? {
            switch self {
            case .millennium: 12_000
            case .century: 1200
            case .decade: 120
            case .year: 12
            case .quarter: 3
            case .month: 1
            case .week, .day, .hour, .minute, .second, .millisecond: nil
            }
        }

        var milliseconds: Int64 {
            switch self {
            case .week: return 7 * QueryDate.day
            case .day: return QueryDate.day
            case .hour: return 3_600_000
            case .minute: return 60_000
            case .second: return 1000
            case .millisecond: return 1
            case .millennium, .century, .decade, .year, .quarter, .month:
                impossible("the length of a \(rawValue) varies")
                return 1
            }
        }
    }

    private static func split(_ time: Int64) -> (day: Int64, rest: Int64) {
        let (day, rest) = time.quotientAndRemainder(dividingBy: QueryDate.day)
        return rest < 0 ? (day - 1, rest + QueryDate.day) : (day, rest)
    }

    /// Adds parts to a time; nil for a result beyond the range of dates.
    private static func add(_ time: Int64, _ count: Int64, _ part: Part) -> Int64? {
        guard abs(time.clamped) <= farthest else { return nil }
        guard let unit = part.months else {
            let (amount, tooMuch) = count.multipliedReportingOverflow(by: part.milliseconds)
            let (sum, overflow) = time.addingReportingOverflow(amount)
            return tooMuch || overflow ? nil : sum
        }
        let (amount, tooMuch) = count.multipliedReportingOverflow(by: unit)
        guard !tooMuch, abs(amount.clamped) < 1_000_000 else { return nil }
        let (day, rest) = split(time)
        let date = GregorianCalendar.date(ofDay: day)
        let months = Int64(date.year) * 12 + Int64(date.month) - 1 + amount
        let year = months >= 0 ? months / 12 : (months - 11) / 12
        return GregorianCalendar.dayNumber(Int(year), Int(months - year * 12) + 1, date.day) * QueryDate.day
            + rest
    }

    /// How many whole parts the first time is after the second.
    private static func difference(_ one: Int64, _ other: Int64, _ part: Part) -> Int64 {
        if part == .millisecond { return one &- other }
        let (left, right) = (split(one), split(other))
        let days = left.day - right.day
        func clock(_ unit: Int64) -> Int64 {
            days * (QueryDate.day / unit) + left.rest / unit - right.rest / unit
        }
        switch part {
        case .day: return days
        case .week: return days / 7
        case .hour: return clock(3_600_000)
        case .minute: return clock(60_000)
        case .second: return clock(1000)
        case .millisecond, .month, .quarter, .year, .decade, .century, .millennium: break
        }
        let (from, to) = (GregorianCalendar.date(ofDay: right.day), GregorianCalendar.date(ofDay: left.day))
        let years = Int64(to.year - from.year)
        switch part {
        case .year: return years
        case .decade: return years / 10
        case .century: return years / 100
        case .millennium: return years / 1000
        case .quarter: return years * 4 + Int64((to.month - 1) / 3 - (from.month - 1) / 3)
        case .month: return years * 12 + Int64(to.month - from.month)
        case .millisecond, .second, .minute, .hour, .day, .week:
            impossible("a \(part) is not a number of months")
            return 0
        }
    }
}

extension Int64 {
    /// A value whose magnitude exists.
    fileprivate var clamped: Int64 { Swift.max(self, -.max) }
}
