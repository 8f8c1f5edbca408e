import LoveseatAssertions

extension QueryFunctions {
    func mathematical(_ id: QueryFunctionID, _ arguments: [QueryValue]) throws(QueryRunError) -> QueryValue {
        switch id {
        case .e: return .double(2.718281828459045)
        case .pi: return .double(.pi)
        case .power, .atan2:
            let (one, other) = (try required(arguments, 0, id), try required(arguments, 1, id))
            return double(id == .power ? environment.power(one, other) : environment.atan2(one, other))
        case .sign:
            let value = try required(arguments, 0, id)
            return .integer(value > 0 ? 1 : value < 0 ? -1 : 0)
        case .round, .roundEven, .trunc: return try rounded(id, arguments)
        case .div, .idiv: return divided(id, arguments)
        default:
            guard let value = arguments.first else { return .missing }
            if value.isMissing || value.isNull { return value }
            guard let number = value.number else { return .null }
            let result = computed(id, number)
            return result.isFinite ? .double(result) : .null
        }
    }

    /// SQLite has no NaN: it is MISSING.
    private func double(_ value: Double) -> QueryValue { value.isNaN ? .missing : .double(value) }

    private func required(_ arguments: [QueryValue], _ index: Int, _ id: QueryFunctionID)
        throws(QueryRunError)
        -> Double
    {
        guard index < arguments.count, let number = arguments[index].number else {
            let kind = index < arguments.count ? Self.typeName(arguments[index]) : "missing"
            throw QueryRunError(
                "\(id.rawValue.uppercased())() takes numbers, not \(kind): test with ISNUMBER() before"
            )
        }
        return number
    }

    private func computed(_ id: QueryFunctionID, _ number: Double) -> Double {
        switch id {
        case .abs: return abs(number)
        case .ceil: return number.rounded(.up)
        case .floor: return number.rounded(.down)
        case .sqrt: return number.squareRoot()
        case .degrees: return number * 180 / .pi
        case .radians: return number * .pi / 180
        case .acos: return environment.transcendental(.acos, number)
        case .asin: return environment.transcendental(.asin, number)
        case .atan: return environment.transcendental(.atan, number)
        case .cos: return environment.transcendental(.cos, number)
        case .exp: return environment.transcendental(.exp, number)
        case .ln: return environment.transcendental(.ln, number)
        case .log: return environment.transcendental(.log, number)
        case .sin: return environment.transcendental(.sin, number)
        case .tan: return environment.transcendental(.tan, number)
        default:
            impossible("\(id) is not a function of one number")
            return .nan
        }
    }

    private func rounded(_ id: QueryFunctionID, _ arguments: [QueryValue]) throws(QueryRunError) -> QueryValue
    {
        if let absent = Self.absent(arguments) { return absent }
        let number = try required(arguments, 0, id)
        let rule: FloatingPointRoundingRule =
            switch id {
            case .round: .toNearestOrAwayFromZero
            case .roundEven: .toNearestOrEven
            default: .towardZero
            }
        guard arguments.count > 1 else { return double(number.rounded(rule)) }
        let scale = environment.power(10, try required(arguments, 1, id).rounded(.towardZero))
        return double((number * scale).rounded(rule) / scale)
    }

    private func divided(_ id: QueryFunctionID, _ arguments: [QueryValue]) -> QueryValue {
        if let absent = Self.absent(arguments) { return absent }
        guard arguments.count == 2, let one = arguments[0].number, let other = arguments[1].number else {
            return .null
        }
        if id == .div { return other == 0 ? .null : double(one / other) }
        let (left, right) = (Self.whole(one), Self.whole(other))
        guard right != 0 else { return .null }
        let (quotient, overflows) = left.dividedReportingOverflow(by: right)
        return overflows ? .double(-Double(left)) : .integer(quotient)
    }

    /// A double without its fraction. As in the real engine, a number that an Int64 cannot hold becomes its lowest value.
    private static func whole(_ value: Double) -> Int64 {
        value >= -0x1p63 && value < 0x1p63 ? Int64(value) : .min
    }

    /// A number without its fraction, clamped.
    static func cut(_ value: QueryValue) -> Int64 {
        switch value {
        case .bool(let value): value ? 1 : 0
        case .integer(let value): value
        case .unsigned: .max
        case .double(let value):
            value.isNaN ? 0 : value >= 0x1p63 ? .max : value < -0x1p63 ? .min : Int64(value)
        case .missing, .null, .string, .array, .object: 0
        }
    }
}
