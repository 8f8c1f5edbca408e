import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// What was saved is what is read, as with Foundation's coders. `LOVESEAT_CODABLE_CASES`: how many documents of each type.
@Suite(.timeLimit(.minutes(5)))
struct FoundationCodingTests {
    private let scratch: Scratch
    private let database: Database
    private let collection: LoveseatCore.Collection
    private let cases =
        ProcessInfo.processInfo.environment["LOVESEAT_CODABLE_CASES"].flatMap { Int($0) } ?? 20

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("db")
        collection = try database.defaultCollection()
    }

    /// Foundation's coders with the settings that documents have.
    private static func text(_ date: Date) -> String {
        let milliseconds = (date.timeIntervalSinceReferenceDate * 1_000).rounded()
        return Date(timeIntervalSinceReferenceDate: (milliseconds + 0.5) / 1_000)
            .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    private static let encoder = {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(text(date))
        }
        return encoder
    }()

    private static let decoder = {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let text = try decoder.singleValueContainer().decode(String.self)
            let date = try Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text)
            return Date(
                timeIntervalSinceReferenceDate: (date.timeIntervalSinceReferenceDate * 1_000).rounded()
                    / 1_000
            )
        }
        return decoder
    }()

    private static let types: [any Shape.Type] = [
        Bool.self, Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self,
        UInt16.self, UInt32.self,
        UInt64.self, Int128.self, Double.self, Float.self, Decimal.self, String.self, Date.self, URL.self,
        UUID.self,
        Color.self, Level.self, Empty.self, Int?.self, String??.self, [Int?].self, [String: Date?].self,
        [Color: Double?].self,
        [[Decimal?]?].self, Box<Int?>.self, Box<Box<Date?>?>.self, Set<UUID?>.self, Choice<URL?>.self,
        Nested<Float?>.self,
        Explicit<[Bool?]>.self, Row<Level?>.self, Dog<String?>.self, Cat<[Int8?]>.self, Tree<UInt64?>.self,
    ]

    @Test(arguments: types.indices)
    func `every way to read a saved value gives what Foundation's coders give`(_ index: Int) async throws {
        try await check(Self.types[index], UInt64(index))
    }

    private func check<T: Shape>(_ type: T.Type, _ seed: UInt64) async throws {
        var dice = SeededGenerator(seed: seed)
        let values = (0..<cases).map { Sample<T>(id: "d\(1_000_000 + $0)", &dice) }
        let wanted = try values.map { value in
            try Self.decoder.decode(Sample<T>.self, from: Self.encoder.encode(value))
        }
        func compare(_ read: [Sample<T>]?, _ way: String) {
            let read = read ?? []
            #expect(read.count == wanted.count, "\(way)")
            for (one, other) in zip(read, wanted) where one != other {
                Issue.record("\(T.self), \(way): \(one) is not \(other)")
                return
            }
        }
        try collection.save(values)
        compare(try await collection.documents(as: Sample<T>.self), "documents")
        compare(
            try values.map { try #require(try collection.document(id: $0.id, as: Sample<T>.self)) },
            "document"
        )
        compare(
            try await database.read { try $0.documents(in: collection, as: Sample<T>.self) },
            "transaction"
        )
        var streamed: [Sample<T>] = []
        for try await value in collection.documentStream(as: Sample<T>.self) { streamed.append(value) }
        compare(streamed, "stream")
        var observed = try collection.observe(as: Sample<T>.self).makeAsyncIterator()
        compare(try await observed.next(), "observe")
        let query = try database.createQuery("SELECT meta().id, doc FROM _ AS doc ORDER BY meta().id")
        let rows: [Sample<T>] = try await query.execute(as: Sample<T>.self, dataKey: "doc")
        compare(rows, "query")
        var live = try query.changes().makeAsyncIterator()
        compare(
            try await live.next()?.results?.map { try $0.decode(Sample<T>.self, dataKey: "doc") },
            "live query"
        )

        // The text is what Foundation's coder reads, and the other way round.
        compare(
            try values.map { value in
                var document = try #require(try collection.document(id: value.id))
                document["id"] = .string(value.id)
                return try Self.decoder.decode(Sample<T>.self, from: Data(document.json.bytes))
            },
            "Foundation's decoder"
        )
        compare(
            try values.map {
                try Document(id: $0.id, json: Array(Self.encoder.encode($0))).decode(Sample<T>.self)
            },
            "Foundation's encoder"
        )

        for value in values {
            let before = try #require(try collection.document(id: value.id))
            try collection.update(id: value.id, as: Sample<T>.self) { _ in }
            #expect(try collection.document(id: value.id)?.revisionID == before.revisionID, "\(T.self)")
            let changed = try collection.update(id: value.id, as: Sample<T>.self) { $0.note = "changed" }
            var expected = before
            expected["note"] = "changed"
            #expect(try collection.document(id: value.id)?.properties == expected.properties, "\(T.self)")
            #expect(changed.note == "changed")
        }
        var feed = try collection.observe(id: values[0].id, as: Sample<T>.self).makeAsyncIterator()
        var first = wanted[0]
        first.note = "changed"
        #expect(try await feed.next() == first)
    }

    // MARK: Text that does not fit

    private struct Holder<T: Shape>: Codable { var value: T }

    private static func randomJSON(_ dice: inout SeededGenerator, _ depth: Int = 3) -> JSONValue {
        func values() -> [JSONValue] {
            (0..<Int.random(in: 0...3, using: &dice)).map { _ in randomJSON(&dice, depth - 1) }
        }
        let names = [
            "value", "one", "_0", "two", "first", "second", "nothing", "leaf", "red", "S", "1", "super",
            "toy", "legs",
        ]
        return switch Int.random(in: 0..<(depth > 0 ? 14 : 9), using: &dice) {
        case 0: .null
        case 1: .bool(.random(using: &dice))
        case 2: JSONValue(Int.random(in: -3...300, using: &dice))
        case 3: [1.5, 3.0, -0.0, 1e300][Int.random(in: 0..<4, using: &dice)]
        case 4: .string(["x", "red", "2026-03-01T09:30:00.000Z", "1"][Int.random(in: 0..<4, using: &dice)])
        case 5: [1, nil, 2]
        case 6: ["value": nil]
        case 7: [[nil], [1]]
        case 8: ["a": 1, "b": nil]
        case 9...10: .array(values())
        default:
            .object(
                JSONObject(values().map { (names[Int.random(in: 0..<names.count, using: &dice)], $0) }) { $1 }
            )
        }
    }

    @Test func `text is refused by the same types that refuse it with Foundation's coder`() throws {
        let types: [any Shape.Type] = [
            Bool.self, Int.self, UInt8.self, Double.self, Float.self, String.self, Date.self, UUID.self,
            Decimal.self,
            Color.self, Int?.self, Date?.self, [Int?].self, [String?].self, [[Int?]?].self,
            [String: Int?].self, [Date?].self,
            [Color: Int?].self, [Size: Bool?].self, [Int: Int?].self, Set<Int?>.self, Box<Int?>.self,
            Box<Box<Bool?>?>.self,
            Choice<Int?>.self, Tree<Int?>.self, Row<Int?>.self, Explicit<Int>.self, Dog<Int?>.self,
            Cat<String>.self,
            [Box<Int?>?].self, Empty?.self,
        ]
        var dice = SeededGenerator(seed: 45)
        for _ in 0..<cases * 100 {
            let value: JSONValue = ["value": Self.randomJSON(&dice)]
            let text = JSONText(canonical: value)
            let type = types[Int.random(in: 0..<types.count, using: &dice)]
            try compare(type, text)
        }
    }

    private func compare<T: Shape>(_ type: T.Type, _ text: JSONText) throws {
        let wanted = Result { try Self.decoder.decode(Holder<T>.self, from: Data(text.bytes)).value }
        let document = try Document(id: "d", json: text.bytes)
        let read = Result { try document.decode(Holder<T>.self).value }
        switch (read, wanted) {
        case (.success(let one), .success(let other)): #expect(one == other, "\(T.self) of \(text)")
        case (.failure(let error), .failure):
            #expect((error as? LoveseatError)?.code == .decodingError, "\(T.self) of \(text): \(error)")
        default: Issue.record("\(T.self) of \(text) is \(read), and with Foundation \(wanted)")
        }
    }

    @Test func `a dictionary is read without the document's ID among its keys`() throws {
        var document = Document(id: "d", ["a": 1, "b": nil])
        try collection.save(&document)
        #expect(try collection.document(id: "d", as: [String: Int?].self) == ["a": 1, "b": nil])
        #expect(try collection.document(id: "d", as: JSONObject.self) == ["a": 1, "b": nil])
        #expect(try document.decode(JSONValue.self) == ["a": 1, "b": nil])
        let rows = try database.createQuery("SELECT a, b FROM _").execute(as: [String: Int?].self)
        #expect(rows == [["a": 1, "b": nil]])
    }

    @Test func `numbers beyond a type's range are refused`() throws {
        for text in ["1e400", "-1e400", "1e-400"] {
            let document = try Document(id: "d", json: "{\"value\":\(text)}")
            expectError(.decodingError) { try document.decode(Holder<Double>.self) }
            expectError(.decodingError) { try document.decode(Holder<Float?>.self) }
        }
        expectError(.decodingError) {
            try Document(id: "d", json: "{\"value\":1e300}").decode(Holder<Float>.self)
        }
    }
}
