/// The scalar functions, by the name of their implementation.
package enum QueryFunctionID: String, CaseIterable, Sendable {
    case abs, acos, asin, atan, atan2, ceil, cos, degrees, div, e, exp, floor, idiv, ln, log, pi, power,
        radians
    case round, roundEven = "round_even", sign, sin, sqrt, tan, trunc
    case concat, contains, length, lower, upper, trim, ltrim, rtrim
    case regexpLike = "regexp_like", regexpPosition = "regexp_position", regexpReplace = "regexp_replace"
    case arrayAverage = "array_avg", arrayContains = "array_contains", arrayCount = "array_count"
    case arrayIfNull = "array_ifnull", arrayLength = "array_length", arrayMax = "array_max"
    case arrayMin = "array_min", arrayOf = "array_of", arraySum = "array_sum"
    case ifMissing = "ifmissing", ifNull = "ifnull", ifMissingOrNull = "ifmissingornull"
    case missingIf = "missingif", nullIf = "nullif"
    case isArray = "isarray", isAtom = "isatom", isBoolean = "isboolean", isNumber = "isnumber"
    case isObject = "isobject", isString = "isstring", type
    case toArray = "toarray", toAtom = "toatom", toBoolean = "toboolean", toNumber = "tonumber"
    case toObject = "toobject", toString = "tostring"
    case strToMillis = "str_to_millis", strToUTC = "str_to_utc", strToTZ = "str_to_tz"
    case millisToUTC = "millis_to_utc", millisToTZ = "millis_to_tz", millisToStr = "millis_to_str"
    case dateAddStr = "date_add_str", dateAddMillis = "date_add_millis"
    case dateDiffStr = "date_diff_str", dateDiffMillis = "date_diff_millis"
    // Not in the language: functions for the translation.
    case object, like

    /// The name in SQL.
    package var sqlName: String { "ls_" + rawValue }

    /// Whether the result may depend on the machine's time zone.
    var mayDependOnTimeZone: Bool {
        switch self {
        case .strToMillis, .strToUTC, .strToTZ, .millisToStr: true
        default: false
        }
    }

    /// Whether the result is a boolean, MISSING or null.
    var isLogical: Bool {
        switch self {
        case .contains, .regexpLike, .arrayContains, .isArray, .isAtom, .isBoolean, .isNumber, .isObject,
            .isString,
            .toBoolean, .like:
            true
        default: false
        }
    }
}

/// The names of the language's functions, and the number of their arguments.
enum QueryFunctionTable {
    enum Target {
        case scalar(QueryFunctionID)
        case aggregate(String)
        case greatest, least
    }

    struct Signature {
        let arguments: ClosedRange<Int>
        let target: Target
    }

    /// The maximum number of arguments that SQLite takes.
    static let maximumArguments = 100

    static func isFunction(_ name: String) -> Bool {
        signatures[name] != nil || ["META", "MATCH", "RANK"].contains(name)
    }

    static let signatures: [String: Signature] = {
        var table: [String: Signature] = [:]
        func add(_ ids: [QueryFunctionID], _ arguments: ClosedRange<Int>) {
            for id in ids {
                table[id.rawValue.uppercased()] = Signature(arguments: arguments, target: .scalar(id))
            }
        }
        add(
            [
                .abs, .acos, .asin, .atan, .ceil, .cos, .degrees, .exp, .floor, .ln, .log, .radians, .sign,
                .sin, .sqrt,
                .tan, .length, .lower, .upper, .arrayAverage, .arrayCount, .arrayIfNull, .arrayLength,
                .arrayMax,
                .arrayMin, .arraySum, .isArray, .isAtom, .isBoolean, .isNumber, .isObject, .isString, .type,
                .toArray,
                .toAtom, .toBoolean, .toNumber, .toObject, .toString, .strToMillis,
            ],
            1...1
        )
        add([.e, .pi], 0...0)
        add([.atan2, .div, .idiv, .power, .contains, .regexpLike, .regexpPosition, .arrayContains], 2...2)
        add([.missingIf, .nullIf], 2...2)
        add(
            [.round, .roundEven, .trunc, .trim, .ltrim, .rtrim, .strToUTC, .millisToUTC, .millisToStr],
            1...2
        )
        add([.regexpReplace], 3...4)
        add([.concat, .ifMissing, .ifNull, .ifMissingOrNull], 2...maximumArguments)
        add([.arrayOf], 0...maximumArguments)
        add([.strToTZ, .millisToTZ], 2...3)
        add([.dateAddStr], 3...4)
        add([.dateAddMillis, .dateDiffStr, .dateDiffMillis], 3...3)
        for (name, other) in [
            ("IS_ARRAY", "ISARRAY"), ("IS_ATOM", "ISATOM"), ("IS_BOOLEAN", "ISBOOLEAN"),
            ("IS_NUMBER", "ISNUMBER"),
            ("IS_OBJECT", "ISOBJECT"), ("IS_STRING", "ISSTRING"), ("TYPENAME", "TYPE"),
            ("TO_ARRAY", "TOARRAY"),
            ("TO_ATOM", "TOATOM"), ("TO_BOOLEAN", "TOBOOLEAN"), ("TO_NUMBER", "TONUMBER"),
            ("TO_OBJECT", "TOOBJECT"),
            ("TO_STRING", "TOSTRING"), ("REGEXP_CONTAINS", "REGEXP_LIKE"),
        ] {
            table[name] = table[other]
        }
        table["GREATEST"] = Signature(arguments: 2...maximumArguments, target: .greatest)
        table["LEAST"] = Signature(arguments: 2...maximumArguments, target: .least)
        table["COUNT"] = Signature(arguments: 0...1, target: .aggregate("count"))
        for (name, target) in [
            ("SUM", "sum"), ("AVG", "avg"), ("MIN", "min"), ("MAX", "max"), ("ARRAY_AGG", "ls_array_agg"),
        ] {
            table[name] = Signature(arguments: 1...1, target: .aggregate(target))
        }
        return table
    }()
}
