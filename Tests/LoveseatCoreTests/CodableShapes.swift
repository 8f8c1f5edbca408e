import Foundation
import LoveseatTesting

/// A type of which values are made by chance, to be encoded and decoded.
protocol Shape: Codable, Hashable, Sendable {
    static func random(_ dice: inout SeededGenerator) -> Self
}

// MARK: Scalars

extension Bool: Shape { static func random(_ dice: inout SeededGenerator) -> Bool { .random(using: &dice) } }

extension FixedWidthInteger {
    fileprivate static func number(_ dice: inout SeededGenerator) -> Self {
        let edges: [Self] = [.min, .max, 0, 1, 100]
        return Bool.random(using: &dice)
            ? edges[Int.random(in: 0..<5, using: &dice)] : .random(in: .min ... .max, using: &dice)
    }
}
extension Int: Shape { static func random(_ dice: inout SeededGenerator) -> Int { number(&dice) } }
extension Int8: Shape { static func random(_ dice: inout SeededGenerator) -> Int8 { number(&dice) } }
extension Int16: Shape { static func random(_ dice: inout SeededGenerator) -> Int16 { number(&dice) } }
extension Int32: Shape { static func random(_ dice: inout SeededGenerator) -> Int32 { number(&dice) } }
extension Int64: Shape { static func random(_ dice: inout SeededGenerator) -> Int64 { number(&dice) } }
extension UInt: Shape { static func random(_ dice: inout SeededGenerator) -> UInt { number(&dice) } }
extension UInt8: Shape { static func random(_ dice: inout SeededGenerator) -> UInt8 { number(&dice) } }
extension UInt16: Shape { static func random(_ dice: inout SeededGenerator) -> UInt16 { number(&dice) } }
extension UInt32: Shape { static func random(_ dice: inout SeededGenerator) -> UInt32 { number(&dice) } }
extension UInt64: Shape { static func random(_ dice: inout SeededGenerator) -> UInt64 { number(&dice) } }
extension Int128: Shape { static func random(_ dice: inout SeededGenerator) -> Int128 { number(&dice) } }

extension Double: Shape {
    static func random(_ dice: inout SeededGenerator) -> Double {
        let edges = [
            0, -0.0, 0.1, 1e22, 1e-7, .greatestFiniteMagnitude, .leastNormalMagnitude, 123_456_789.123_456_78,
            3,
        ]
        let any = Double(bitPattern: .random(in: .min ... .max, using: &dice))
        return Bool.random(using: &dice) || !any.isNormal
            ? edges[.random(in: 0..<edges.count, using: &dice)] : any
    }
}
extension Float: Shape {
    static func random(_ dice: inout SeededGenerator) -> Float {
        let any = Float(bitPattern: .random(in: .min ... .max, using: &dice))
        return any.isNormal ? any : 0.1
    }
}
extension Decimal: Shape {
    static func random(_ dice: inout SeededGenerator) -> Decimal {
        let digits = Decimal(Int64.random(in: -999_999_999_999...999_999_999_999, using: &dice))
        return digits / Decimal(sign: .plus, exponent: .random(in: 0...9, using: &dice), significand: 1)
    }
}
extension String: Shape {
    static func random(_ dice: inout SeededGenerator) -> String {
        let scalars = Array("ab\"\\/\n\t\u{0}\u{1F}\u{7F}é\u{301}K\u{212A}日\u{2028}\u{1F6CB}".unicodeScalars)
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...6, using: &dice) {
            text.append(scalars[.random(in: 0..<scalars.count, using: &dice)])
        }
        return String(text)
    }
}
extension Date: Shape {
    static func random(_ dice: inout SeededGenerator) -> Date {
        Date(
            timeIntervalSinceReferenceDate: Double(
                Int.random(in: -3_000_000_000_000...3_000_000_000_000, using: &dice)
            ) / 1_000
        )
    }
}
extension URL: Shape {
    static func random(_ dice: inout SeededGenerator) -> URL {
        URL(filePath: "/\(Int.random(in: 0...9, using: &dice))/a b")
    }
}
extension UUID: Shape {
    static func random(_ dice: inout SeededGenerator) -> UUID {
        let byte = UInt8.random(in: .min ... .max, using: &dice)
        return UUID(uuid: (byte, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, byte))
    }
}

// MARK: The standard library's containers

extension Optional: Shape where Wrapped: Shape {
    static func random(_ dice: inout SeededGenerator) -> Wrapped? {
        Bool.random(using: &dice) ? .random(&dice) : nil
    }
}
extension Array: Shape where Element: Shape {
    static func random(_ dice: inout SeededGenerator) -> [Element] {
        (0..<Int.random(in: 0...3, using: &dice)).map { _ in .random(&dice) }
    }
}
extension Set: Shape where Element: Shape {
    static func random(_ dice: inout SeededGenerator) -> Set<Element> { Set([Element].random(&dice)) }
}
extension Dictionary: Shape where Key: Shape, Value: Shape {
    static func random(_ dice: inout SeededGenerator) -> [Key: Value] {
        Dictionary((0..<Int.random(in: 0...3, using: &dice)).map { _ in (.random(&dice), .random(&dice)) }) {
            $1
        }
    }
}

// MARK: Types of an app

enum Color: String, Shape, CaseIterable {
    case red, green, blue
    static func random(_ dice: inout SeededGenerator) -> Color { allCases[.random(in: 0..<3, using: &dice)] }
}
enum Level: Int, Shape {
    case low = -1, high = 7
    static func random(_ dice: inout SeededGenerator) -> Level { Bool.random(using: &dice) ? .low : .high }
}
/// A key of dictionaries that are objects.
enum Size: String, Shape, CodingKeyRepresentable {
    case small = "S", large = "L"
    static func random(_ dice: inout SeededGenerator) -> Size { Bool.random(using: &dice) ? .small : .large }
}
/// A property of a type that may be an optional: not left out when it is nil.
struct Box<T: Shape>: Shape {
    var value: T
    static func random(_ dice: inout SeededGenerator) -> Self { Self(value: .random(&dice)) }
}
struct Empty: Shape { static func random(_ dice: inout SeededGenerator) -> Empty { Empty() } }
enum Choice<T: Shape>: Shape {
    case nothing
    case one(T)
    case two(first: T, second: T?)
    case boxed(Box<T?>)
    static func random(_ dice: inout SeededGenerator) -> Self {
        switch Int.random(in: 0..<4, using: &dice) {
        case 0: .nothing
        case 1: .one(.random(&dice))
        case 2: .two(first: .random(&dice), second: .random(&dice))
        default: .boxed(.random(&dice))
        }
    }
}
indirect enum Tree<T: Shape>: Shape {
    case leaf(T)
    case node([Tree?])
    static func random(_ dice: inout SeededGenerator) -> Self {
        Int.random(in: 0..<3, using: &dice) > 0
            ? .leaf(.random(&dice)) : .node([.random(&dice), nil, .leaf(.random(&dice))])
    }
}
@propertyWrapper struct Plain<T: Shape>: Shape {
    var wrappedValue: T
    init(wrappedValue: T) { self.wrappedValue = wrappedValue }
    init(from decoder: any Decoder) throws {
        wrappedValue = try decoder.singleValueContainer().decode(T.self)
    }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(wrappedValue)
    }
    static func random(_ dice: inout SeededGenerator) -> Self { Self(wrappedValue: .random(&dice)) }
}
/// Codes optionals by hand, under other names.
struct Explicit<T: Shape>: Shape {
    var here: T?
    @Plain var wrapped: T?
    enum CodingKeys: String, CodingKey {
        case here = "is_here"
        case wrapped = "Wrapped Value"
    }
    init(here: T?, wrapped: T?) {
        self.here = here
        _wrapped = Plain(wrappedValue: wrapped)
    }
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        here = try container.decode(T?.self, forKey: .here)
        _wrapped = try container.decode(Plain<T?>.self, forKey: .wrapped)
    }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(here, forKey: .here)
        try container.encode(_wrapped, forKey: .wrapped)
    }
    static func random(_ dice: inout SeededGenerator) -> Self {
        Self(here: .random(&dice), wrapped: .random(&dice))
    }
}
/// Keeps its values in nested containers, and writes to them in turn.
struct Nested<T: Shape>: Shape {
    var first: T
    var second: T?
    var third: [T?]
    enum Keys: String, CodingKey { case inner, list, more, none }
    init(first: T, second: T?, third: [T?]) { (self.first, self.second, self.third) = (first, second, third) }
    init(from decoder: any Decoder) throws {
        let outer = try decoder.container(keyedBy: Keys.self)
        let inner = try outer.nestedContainer(keyedBy: Keys.self, forKey: .inner)
        first = try inner.decode(T.self, forKey: .inner)
        second = try outer.nestedContainer(keyedBy: Keys.self, forKey: .inner).decodeIfPresent(
            T.self,
            forKey: .more
        )
        var list = try outer.nestedUnkeyedContainer(forKey: .list)
        var deep = try list.nestedUnkeyedContainer()
        third = []
        while !deep.isAtEnd { third.append(try deep.decodeIfPresent(T.self)) }
        _ = try list.nestedContainer(keyedBy: Keys.self).decode(T.self, forKey: .inner)
        _ = try list.superDecoder().singleValueContainer().decode(T.self)
    }
    func encode(to encoder: any Encoder) throws {
        var outer = encoder.container(keyedBy: Keys.self)
        var inner = outer.nestedContainer(keyedBy: Keys.self, forKey: .inner)
        var list = outer.nestedUnkeyedContainer(forKey: .list)
        var deep = list.nestedUnkeyedContainer()
        var last = list.nestedContainer(keyedBy: Keys.self)
        try inner.encode(first, forKey: .inner)
        for value in third { try deep.encode(value) }
        var again = outer.nestedContainer(keyedBy: Keys.self, forKey: .inner)
        try again.encodeIfPresent(second, forKey: .more)
        try last.encode(first, forKey: .inner)
        try outer.encodeNil(forKey: .none)
        var single = list.superEncoder().singleValueContainer()
        try single.encode(first)
    }
    static func random(_ dice: inout SeededGenerator) -> Self {
        Self(first: .random(&dice), second: .random(&dice), third: .random(&dice))
    }
}
/// Neither a key nor a position: an array of values of different types.
struct Row<T: Shape>: Shape {
    var name: String
    var value: T?
    var rest: [T]
    init(name: String, value: T?, rest: [T]) { (self.name, self.value, self.rest) = (name, value, rest) }
    init(from decoder: any Decoder) throws {
        var row = try decoder.unkeyedContainer()
        name = try row.decode(String.self)
        value = try row.decode(T?.self)
        rest = []
        while !row.isAtEnd { rest.append(try row.decode(T.self)) }
    }
    func encode(to encoder: any Encoder) throws {
        var row = encoder.unkeyedContainer()
        try row.encode(name)
        try row.encode(value)
        try row.encode(contentsOf: rest)
    }
    static func random(_ dice: inout SeededGenerator) -> Self {
        Self(name: .random(&dice), value: .random(&dice), rest: .random(&dice))
    }
}

// MARK: Classes

class Animal: Codable, Hashable, @unchecked Sendable {
    let legs: Int?
    init(_ dice: inout SeededGenerator) { legs = .random(&dice) }
    var parts: [AnyHashable?] { [legs] }
    static func == (one: Animal, other: Animal) -> Bool {
        type(of: one) == type(of: other) && one.parts == other.parts
    }
    func hash(into hasher: inout Hasher) { hasher.combine(legs) }
}
/// A subclass whose superclass is nested.
final class Dog<T: Shape>: Animal, Shape, @unchecked Sendable {
    let toy: T?
    enum Keys: String, CodingKey { case toy, parent }
    override init(_ dice: inout SeededGenerator) {
        toy = .random(&dice)
        super.init(&dice)
    }
    override var parts: [AnyHashable?] { super.parts + [toy] }
    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        toy = try container.decodeIfPresent(T.self, forKey: .toy)
        try super.init(from: container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        let parent = container.superEncoder()
        try container.encodeIfPresent(toy, forKey: .toy)
        try super.encode(to: parent)
    }
    static func random(_ dice: inout SeededGenerator) -> Self { Self(&dice) }
}
/// A subclass that shares the container of its superclass.
final class Cat<T: Shape>: Animal, Shape, @unchecked Sendable {
    let mood: T?
    enum Keys: String, CodingKey { case mood }
    override init(_ dice: inout SeededGenerator) {
        mood = .random(&dice)
        super.init(&dice)
    }
    override var parts: [AnyHashable?] { super.parts + [mood] }
    required init(from decoder: any Decoder) throws {
        mood = try decoder.container(keyedBy: Keys.self).decodeIfPresent(T.self, forKey: .mood)
        try super.init(from: decoder)
    }
    override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: Keys.self)
        try container.encodeIfPresent(mood, forKey: .mood)
    }
    static func random(_ dice: inout SeededGenerator) -> Self { Self(&dice) }
}

// MARK: Documents

/// A document with a type in every place.
struct Sample<T: Shape>: Codable, Identifiable, Equatable, Sendable {
    var id: String
    var note = ""
    var value: T
    var maybe: T?
    var list: [T]
    var gaps: [T?]
    var named: [String: T]
    var namedGaps: [String: T?]
    var grid: [[T?]?]
    var byNumber: [Int: T?]
    var byColor: [Color: T?]
    var bySize: [Size: [T?]]
    var byID: [UUID: T]
    var set: Set<T>
    var box: Box<T?>
    var boxes: [Box<[T?]>?]
    var empty = [Empty()]
    var levels: [Level?]
    var choice: Choice<T?>
    var choices: [String: Choice<T>?]
    var tree: Tree<T>
    var explicit: Explicit<T>
    var nested: Nested<T?>
    var row: Row<T>
    var dogs: [Dog<T>?]
    var cat: Cat<T>

    init(id: String, _ dice: inout SeededGenerator) {
        self.id = id
        value = .random(&dice)
        maybe = .random(&dice)
        list = .random(&dice)
        gaps = .random(&dice)
        named = .random(&dice)
        namedGaps = .random(&dice)
        grid = .random(&dice)
        byNumber = .random(&dice)
        byColor = .random(&dice)
        bySize = .random(&dice)
        byID = .random(&dice)
        set = .random(&dice)
        box = .random(&dice)
        boxes = .random(&dice)
        levels = .random(&dice)
        choice = .random(&dice)
        choices = .random(&dice)
        tree = .random(&dice)
        explicit = .random(&dice)
        nested = .random(&dice)
        row = .random(&dice)
        dogs = .random(&dice)
        cat = .random(&dice)
    }
}
