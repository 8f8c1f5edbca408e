import LoveseatModel

/// A sync function in the JavaScript of a gateway's configuration, as far as recorded configurations use the language:
/// `if`, `var`, `throw`, `return`, calls, members, literals, `?:` and the usual operators.
package struct SyncScript: Sendable {
    private let parameters: [String]
    private let body: [Statement]

    /// Reads the text of a function; nil if it uses more of the language.
    package init?(_ text: String) {
        guard var parser = SyncScriptParser(text), let function = parser.function() else { return nil }
        (parameters, body) = function
    }

    /// The function, ready to be called.
    package var syncFunction: SyncFunction {
        { [self] call in
            var scope: [String: Value] = [:]
            let old = call.oldDocument.map { Value.json(.object($0)) } ?? .json(.null)
            for (name, value) in zip(parameters, [.json(.object(call.document)), old]) { scope[name] = value }
            _ = try Self.run(body, &scope, &call)
        }
    }

    indirect enum Statement: Sendable {
        case expression(Expression)
        case variable(String, Expression?)
        case condition(Expression, [Statement], [Statement])
        case raise(Expression)
        case leave
    }

    indirect enum Expression: Sendable {
        case literal(Value)
        case name(String)
        case array([Expression])
        case object([(String, Expression)])
        case member(Expression, Expression)
        case call(Expression, [Expression])
        case not(Expression)
        case binary(String, Expression, Expression)
        case choice(Expression, Expression, Expression)
    }

    enum Value: Hashable, Sendable {
        case undefined
        case json(JSONValue)

        var json: JSONValue? { if case .json(let value) = self { value } else { nil } }

        var isTrue: Bool {
            switch self {
            case .undefined, .json(.null), .json(.bool(false)), .json(.string("")): false
            case .json(.number(let number)): number.double != 0
            default: true
            }
        }
    }

    // MARK: Running

    /// Returns whether the function ended.
    private static func run(_ body: [Statement], _ scope: inout [String: Value], _ call: inout SyncCall)
        throws
        -> Bool
    {
        for statement in body {
            switch statement {
            case .expression(let expression): _ = try value(expression, scope, &call)
            case .variable(let name, let expression):
                scope[name] = try expression.map { try value($0, scope, &call) } ?? .undefined
            case .condition(let test, let first, let second):
                let isTrue = try value(test, scope, &call).isTrue
                if try run(isTrue ? first : second, &scope, &call) { return true }
            case .raise(let expression):
                let thrown = try value(expression, scope, &call)
                guard let text = thrown.json?["forbidden"]?.string else { throw SyncRefusal.exception }
                throw SyncRefusal.forbidden(text)
            case .leave: return true
            }
        }
        return false
    }

    private static func value(_ expression: Expression, _ scope: [String: Value], _ call: inout SyncCall)
        throws -> Value
    {
        switch expression {
        case .literal(let value): return value
        case .name(let name):
            guard let value = scope[name] else { throw SyncRefusal.exception }
            return value
        case .array(let items):
            return .json(.array(try items.map { try value($0, scope, &call).json ?? .null }))
        case .object(let members):
            var object: JSONObject = [:]
            for (name, member) in members { object[name] = try value(member, scope, &call).json }
            return .json(.object(object))
        case .member(let base, let key):
            let (base, key) = (try value(base, scope, &call), try value(key, scope, &call))
            return try member(key, of: base)
        case .call(let function, let arguments):
            let values = try arguments.map { try value($0, scope, &call) }
            return try perform(function, values, scope, &call)
        case .not(let operand): return .json(.bool(!(try value(operand, scope, &call).isTrue)))
        case .binary(let name, let left, let right):
            let first = try value(left, scope, &call)
            if name == "&&" { return first.isTrue ? try value(right, scope, &call) : first }
            if name == "||" { return first.isTrue ? first : try value(right, scope, &call) }
            return try apply(name, first, try value(right, scope, &call))
        case .choice(let test, let first, let second):
            return try value(try value(test, scope, &call).isTrue ? first : second, scope, &call)
        }
    }

    private static func member(_ key: Value, of base: Value) throws -> Value {
        guard let json = base.json, json != .null else { throw SyncRefusal.exception }
        if let index = key.json?.int, let items = json.array {
            return items.indices.contains(index) ? .json(items[index]) : .undefined
        }
        guard let name = key.json?.string else { return .undefined }
        if name == "length", let count = json.array?.count ?? json.string?.utf16.count {
            return .json(JSONValue(count))
        }
        return json[name].map { .json($0) } ?? .undefined
    }

    private static func perform(
        _ function: Expression,
        _ values: [Value],
        _ scope: [String: Value],
        _ call: inout SyncCall
    ) throws -> Value {
        let arguments = values.map(\.json) + [nil, nil]
        if case .member(let base, .literal(.json(.string("indexOf")))) = function {
            let base = try value(base, scope, &call)
            guard let items = base.json?.array else { throw SyncRefusal.exception }
            return .json(JSONValue(items.firstIndex { $0 == arguments[0] } ?? -1))
        }
        guard case .name(let name) = function else { throw SyncRefusal.exception }
        switch name {
        case "channel": for value in values { call.channel(value.json) }
        case "access": call.access(arguments[0], arguments[1])
        case "role": call.role(arguments[0], arguments[1])
        case "requireUser": try call.requireUser(arguments[0])
        case "requireRole": try call.requireRole(arguments[0])
        case "requireAccess": try call.requireAccess(arguments[0])
        case "requireAdmin": try call.requireAdmin()
        default: throw SyncRefusal.exception
        }
        return .undefined
    }

    private static func apply(_ name: String, _ left: Value, _ right: Value) throws -> Value {
        func isNothing(_ value: Value) -> Bool { value == .undefined || value == .json(.null) }
        let isSame = left == right || (name.count == 2 && isNothing(left) && isNothing(right))
        switch name {
        case "==", "===": return .json(.bool(isSame))
        case "!=", "!==": return .json(.bool(!isSame))
        case "+":
            if let first = left.json?.double, let second = right.json?.double {
                return .json(JSONValue(first + second))
            }
            return .json(.string(text(left) + text(right)))
        default:
            guard let first = left.json?.double, let second = right.json?.double else {
                return .json(.bool(false))
            }
            switch name {
            case "<": return .json(.bool(first < second))
            case ">": return .json(.bool(first > second))
            case "<=": return .json(.bool(first <= second))
            case ">=": return .json(.bool(first >= second))
            case "-": return .json(JSONValue(first - second))
            default: throw SyncRefusal.exception
            }
        }
    }

    private static func text(_ value: Value) -> String {
        guard let json = value.json else { return "undefined" }
        return json.string ?? json.description
    }
}
