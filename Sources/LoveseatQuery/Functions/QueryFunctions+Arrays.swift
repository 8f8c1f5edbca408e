import LoveseatAssertions

extension QueryFunctions {
    func collective(_ id: QueryFunctionID, _ arguments: [QueryValue]) -> QueryValue {
        switch id {
        case .arrayOf: return Self.array(of: arguments)
        case .object: return Self.object(of: arguments)
        case .arrayContains:
            guard arguments.count == 2 else { return .missing }
            return Self.contains(arguments[0], arguments[1])
        default: break
        }
        let value = arguments.first ?? .missing
        guard case .array(let text) = value else {
            switch id {
            case .arrayLength: return .integer(0)
            case .arrayCount:
                // A second argument says that the first is not a path, where only arrays have a count.
                guard arguments.count == 1 else { return .integer(0) }
                guard case .object(let text) = value else { return .missing }
                return text.withUnsafeBufferPointer { .integer(Int64(JSONWalker($0).count(of: 0))) }
            case .arraySum, .arrayAverage: return .double(0)
            default: return .null
            }
        }
        return text.withUnsafeBufferPointer { Self.folded(id, JSONWalker($0)) }
    }

    private static func folded(_ id: QueryFunctionID, _ walker: JSONWalker) -> QueryValue {
        var items = walker.children(of: 0)
        var count: Int64 = 0
        var present: Int64 = 0
        var sum = 0.0
        var least: Double?
        var greatest: Double?
        while let item = items.next() {
            count += 1
            let kind = walker.kind(at: item.value)
            if kind != .null {
                present += 1
                if id == .arrayIfNull { return walker.value(at: item.value) }
            }
            guard kind == .number || kind == .bool, let number = walker.value(at: item.value).number else {
                continue
            }
            sum += number
            if kind == .number {
                least = min(least ?? number, number)
                greatest = max(greatest ?? number, number)
            }
        }
        switch id {
        case .arrayLength: return .integer(count)
        case .arrayCount: return .integer(present)
        case .arraySum: return .double(sum)
        case .arrayAverage: return .double(count == 0 ? 0 : sum / Double(count))
        case .arrayMin: return least.map(QueryValue.double) ?? .null
        case .arrayMax: return greatest.map(QueryValue.double) ?? .null
        case .arrayIfNull: return .null
        default:
            impossible("\(id) does not go through an array")
            return .null
        }
    }

    /// Makes an array; MISSING is left out.
    package static func array(of items: some Sequence<QueryValue>) -> QueryValue {
        var bytes: [UInt8] = [UInt8(ascii: "[")]
        for item in items where !item.isMissing {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            item.appendJSON(to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
        return .array(bytes)
    }

    /// Makes an object of alternating keys and values; a key whose value is MISSING is left out.
    package static func object(of pairs: [QueryValue]) -> QueryValue {
        var members: [(key: String, value: QueryValue)] = []
        for index in stride(from: 0, to: pairs.count - 1, by: 2) where !pairs[index + 1].isMissing {
            members.append((pairs[index].string ?? "", pairs[index + 1]))
        }
        members.sort { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for member in members {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            QueryValue.string(member.key).appendJSON(to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            member.value.appendJSON(to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return .object(bytes)
    }

    /// Whether a scalar is among the items of an array.
    package static func contains(_ array: QueryValue, _ value: QueryValue) -> QueryValue {
        if array.isMissing { return .missing }
        guard case .array(let text) = array else { return .null }
        return text.withUnsafeBufferPointer { contains(JSONWalker($0), at: 0, value) }
    }

    /// Whether a scalar is among the values of the array or object that begins here.
    package static func contains(_ walker: JSONWalker, at container: Int, _ value: QueryValue) -> QueryValue {
        if value.isMissing || value.isNull { return value }
        var items = walker.children(of: container)
        switch value {
        case .string(let text):
            var text = text
            return text.withUTF8 { wanted in
                while let item = items.next() {
                    guard walker.kind(at: item.value) == .string else { continue }
                    if let plain = walker.plainString(at: item.value) {
                        if plain.elementsEqual(wanted) { return .bool(true) }
                    } else if walker.string(at: item.value).utf8.elementsEqual(wanted) {
                        return .bool(true)
                    }
                }
                return .bool(false)
            }
        case .array, .object: return .bool(false)
        case .missing, .null, .bool, .integer, .unsigned, .double:
            while let item = items.next() {
                let kind = walker.kind(at: item.value)
                guard kind == .number || kind == .bool else { continue }
                if QueryValue.compare(walker.value(at: item.value), value) == 0 { return .bool(true) }
            }
            return .bool(false)
        }
    }
}
