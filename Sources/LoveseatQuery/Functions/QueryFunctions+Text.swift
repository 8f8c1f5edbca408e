import LoveseatText

extension QueryFunctions {
    func textual(_ id: QueryFunctionID, _ arguments: [QueryValue]) throws(QueryRunError) -> QueryValue {
        switch id {
        case .concat: return Self.concatenated(arguments)
        case .contains: return Self.contains(arguments)
        case .like: return Self.like(arguments)
        case .trim, .ltrim, .rtrim:
            guard arguments.count == 1 else {
                throw QueryRunError(
                    "\(id.rawValue.uppercased())() takes one argument: what is stripped cannot be chosen"
                )
            }
            guard let text = arguments[0].string else { return arguments[0] }
            return .string(Self.trimmed(text, leading: id != .rtrim, trailing: id != .ltrim))
        case .regexpLike, .regexpPosition, .regexpReplace: return try Self.matched(id, arguments)
        default:
            let value = arguments.first ?? .missing
            if value.isMissing || value.isNull { return value }
            guard let text = value.string else { return .null }
            switch id {
            case .length: return .integer(Int64(text.unicodeScalars.count))
            case .lower: return .string(text.lowercasedFully)
            default: return .string(text.uppercased())
            }
        }
    }

    /// The joined texts; MISSING if one of them is.
    static func concatenated(_ arguments: [QueryValue]) -> QueryValue {
        var result = ""
        for argument in arguments {
            switch argument {
            case .missing: return .missing
            case .null: result += "null"
            case .array(let text), .object(let text): result += String(decoding: text, as: UTF8.self)
            case .bool, .integer, .unsigned, .double, .string: result += text(argument) ?? ""
            }
        }
        return .string(result)
    }

    private static func isStripped(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09...0x0D, 0x20, 0x1680, 0x180E, 0x2000...0x2006, 0x2008...0x200A, 0x2028, 0x2029, 0x205F,
            0x3000:
            true
        default: false
        }
    }

    private static func trimmed(_ text: String, leading: Bool, trailing: Bool) -> String {
        var scalars = text.unicodeScalars[...]
        if leading { scalars = scalars.drop(while: isStripped) }
        while trailing, let last = scalars.last, isStripped(last) { scalars.removeLast() }
        return String(String.UnicodeScalarView(scalars))
    }

    private static func contains(_ arguments: [QueryValue]) -> QueryValue {
        guard arguments.count >= 2 else { return .missing }
        if let absent = absent(arguments.prefix(2)) { return absent }
        guard let text = arguments[0].string, let part = arguments[1].string, !part.isEmpty else {
            return .bool(false)
        }
        if arguments.count > 2, let name = arguments[2].string, let collation = TextCollation(sqlName: name),
            collation.isUnicode
        {
            return .bool(UnicodeCollator(collation).contains(text, part))
        }
        return .bool(text.utf8.firstRange(of: part.utf8) != nil)
    }

    /// Whether a text matches a pattern of wildcards for any run and for one character, and escaped characters.
    private static func like(_ arguments: [QueryValue]) -> QueryValue {
        guard arguments.count >= 2 else { return .missing }
        for argument in arguments.prefix(2) {
            switch argument {
            case .null, .array, .object: return .integer(0)
            case .missing, .bool, .integer, .unsigned, .double, .string: break
            }
        }
        func text(_ value: QueryValue) -> String? {
            if case .bool(let value) = value { return value ? "1" : "0" }
            return self.text(value)
        }
        guard let value = text(arguments[0]), let pattern = text(arguments[1]) else { return .missing }
        let collation = arguments.count > 2 ? arguments[2].string.flatMap(TextCollation.init(sqlName:)) : nil
        // A number, as SQLite's own LIKE gives it.
        return .integer(LikePattern(pattern, collation: collation ?? TextCollation()).matches(value) ? 1 : 0)
    }
}

extension String {
    /// The text in lower case, with the sigma at the end of words.
    var lowercasedFully: String {
        guard unicodeScalars.contains("\u{3A3}") else { return lowercased() }
        var result = String.UnicodeScalarView()
        let scalars = Array(unicodeScalars)
        for (index, scalar) in scalars.enumerated() {
            guard scalar == "\u{3A3}" else {
                result.append(contentsOf: scalar.properties.lowercaseMapping.unicodeScalars)
                continue
            }
            let before = scalars[..<index].last { !$0.properties.isCaseIgnorable }
            let after = scalars[(index + 1)...].first { !$0.properties.isCaseIgnorable }
            let isFinal = before?.properties.isCased == true && after?.properties.isCased != true
            result.append(isFinal ? "\u{3C2}" : "\u{3C3}")
        }
        return String(result)
    }
}

extension Collection where Element == UInt8 {
    /// The place at which other bytes occur first.
    fileprivate func firstRange(of other: String.UTF8View) -> Index? {
        var start = startIndex
        let wanted = Array(other)
        guard let first = wanted.first else { return start }
        while start < endIndex {
            if self[start] == first, self[start...].starts(with: wanted) { return start }
            start = index(after: start)
        }
        return nil
    }
}

/// A pattern of LIKE, matched without recursion in time that the lengths of text and pattern bound.
struct LikePattern {
    private enum Part {
        case run
        case any
        case one(Unicode.Scalar)
    }

    private let parts: [Part]
    private let isImpossible: Bool
    private let collator: UnicodeCollator?

    init(_ pattern: String, collation: TextCollation) {
        var parts: [Part] = []
        var isEscaped = false
        for scalar in pattern.unicodeScalars {
            switch scalar {
            case _ where isEscaped:
                parts.append(.one(scalar))
                isEscaped = false
            case "\\": isEscaped = true
            case "%": parts.append(.run)
            case "_": parts.append(.any)
            default: parts.append(.one(scalar))
            }
        }
        self.parts = parts
        isImpossible = isEscaped
        collator = collation.isUnicode ? UnicodeCollator(collation) : nil
    }

    func matches(_ text: String) -> Bool {
        guard !isImpossible else { return false }
        let scalars = Array(text.unicodeScalars)
        var (position, part) = (0, 0)
        var retry: (position: Int, part: Int)?
        while position < scalars.count {
            if part < parts.count {
                switch parts[part] {
                case .run:
                    retry = (position, part + 1)
                    part += 1
                    continue
                case .any:
                    position += 1
                    part += 1
                    continue
                case .one(let scalar):
                    if equal(scalar, scalars[position]) {
                        position += 1
                        part += 1
                        continue
                    }
                }
            }
            guard let last = retry else { return false }
            position = last.position + 1
            part = last.part
            retry = (position, part)
        }
        return parts[part...].allSatisfy { if case .run = $0 { true } else { false } }
    }

    private func equal(_ one: Unicode.Scalar, _ other: Unicode.Scalar) -> Bool {
        if one == other { return true }
        guard let collator else { return false }
        return collator.compare(String(Character(one)), String(Character(other))) == 0
    }
}
