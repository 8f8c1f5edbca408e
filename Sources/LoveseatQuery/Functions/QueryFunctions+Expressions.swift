import LoveseatText

extension QueryFunctions {
    static func matched(_ id: QueryFunctionID, _ arguments: [QueryValue]) throws(QueryRunError) -> QueryValue
    {
        if let absent = absent(arguments) { return absent }
        guard arguments.count >= 2, let text = arguments[0].string, let pattern = arguments[1].string else {
            return .null
        }
        do throws(RegularExpressionError) {
            let expression = try RegularExpression(pattern, .ecmaScript)
            switch id {
            case .regexpLike: return .bool(try expression.matches(text))
            case .regexpPosition:
                let found = try expression.firstMatch(in: Array(text.unicodeScalars))
                return .integer(Int64(found?[0]?.lowerBound ?? -1))
            default: return try replaced(text, expression, arguments.dropFirst(2))
            }
        } catch {
            throw QueryRunError(error.message)
        }
    }

    /// Replaces matches: `arguments` are the replacement and, if any, the maximum number.
    private static func replaced(
        _ text: String,
        _ expression: RegularExpression,
        _ arguments: ArraySlice<QueryValue>
    )
        throws(RegularExpressionError) -> QueryValue
    {
        guard let template = arguments.first?.string else { return .null }
        var left = Int.max
        if let count = arguments.dropFirst().first {
            guard count.number != nil else { return .null }
            left = Int(clamping: cut(count))
        }
        let (text, replacement) = (Array(text.unicodeScalars), Array(template.unicodeScalars))
        var result = String.UnicodeScalarView()
        var (position, copied) = (0, 0)
        while left > 0, position <= text.count,
            let match = try expression.firstMatch(in: text, from: position, groups: expression.groups),
            let whole = match[0]
        {
            left -= 1
            result.append(contentsOf: text[copied..<whole.lowerBound])
            expand(replacement, text, match, whole, expression.groups, into: &result)
            copied = whole.upperBound
            position = whole.upperBound
            if whole.isEmpty {
                if position < text.count { result.append(text[position]) }
                copied = min(text.count, position + 1)
                position += 1
            }
        }
        if copied < text.count { result.append(contentsOf: text[copied...]) }
        return .string(String(result))
    }

    /// Writes a replacement with `$1`, `$&` and the like.
    private static func expand(
        _ replacement: [Unicode.Scalar],
        _ text: [Unicode.Scalar],
        _ match: RegularExpression.Match,
        _ whole: Range<Int>,
        _ groups: Int,
        into result: inout String.UnicodeScalarView
    ) {
        var index = 0
        while index < replacement.count {
            let scalar = replacement[index]
            index += 1
            guard scalar == "$", index < replacement.count else {
                result.append(scalar)
                continue
            }
            let next = replacement[index]
            switch next {
            case "$":
                result.append("$")
                index += 1
            case "&":
                result.append(contentsOf: text[whole])
                index += 1
            case "`":
                result.append(contentsOf: text[..<whole.lowerBound])
                index += 1
            case "'":
                result.append(contentsOf: text[whole.upperBound...])
                index += 1
            case "0"..."9":
                var group = Int(next.value - 0x30)
                index += 1
                if index < replacement.count, ("0"..."9").contains(replacement[index]),
                    group * 10 + Int(replacement[index].value - 0x30) < groups
                {
                    group = group * 10 + Int(replacement[index].value - 0x30)
                    index += 1
                }
                if let range = match[group] { result.append(contentsOf: text[range]) }
            default: result.append(scalar)
            }
        }
    }
}
