import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// A typed change writes what it changes, and nothing else: apps of different age share documents.
@Suite(.timeLimit(.minutes(5)))
struct UnknownPropertyTests {
    private let scratch: Scratch
    private let database: Database
    private let orders: LoveseatCore.Collection
    private let cases =
        ProcessInfo.processInfo.environment["LOVESEAT_CODABLE_CASES"].flatMap { Int($0) } ?? 20

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("shop")
        orders = try database.defaultCollection()
    }

    /// The model as the older version of an app knows it.
    private struct Order: Codable, Identifiable, RevisionTracking {
        struct Geo: Codable { var lat: Double }
        struct Address: Codable {
            var street: String
            var geo: Geo?
        }
        struct Part: Codable { var number: Int }
        struct Item: Codable {
            var name: String
            var parts: [Part]
        }
        struct Line: Codable, Identifiable {
            var id: Int
            var text: String
        }
        struct Label: Codable, Hashable { var text: String }
        enum Form: Codable {
            case circle(radius: Int)
            case square(side: Int)
        }

        var id: String
        var revisionID: RevisionID?
        var title: String
        var ratio: Float
        var opened: Date
        var address: Address
        var items: [Item]
        var lines: [Line]
        var grid: [[Item]]
        var places: [String: Address]
        var colors: [Color: Address]
        var labels: Set<Label>
        var form: Form?
        /// Not known to the app that made the document.
        var added: String? = "default"
        var isNew = true

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(String.self, forKey: .id)
            revisionID = try container.decodeIfPresent(RevisionID.self, forKey: .revisionID)
            title = try container.decode(String.self, forKey: .title)
            ratio = try container.decode(Float.self, forKey: .ratio)
            opened = try container.decode(Date.self, forKey: .opened)
            address = try container.decode(Address.self, forKey: .address)
            items = try container.decode([Item].self, forKey: .items)
            lines = try container.decode([Line].self, forKey: .lines)
            grid = try container.decode([[Item]].self, forKey: .grid)
            places = try container.decode([String: Address].self, forKey: .places)
            colors = try container.decode([Color: Address].self, forKey: .colors)
            labels = try container.decode(Set<Label>.self, forKey: .labels)
            form = try container.decodeIfPresent(Form.self, forKey: .form)
        }
    }

    // MARK: Documents of the newer version

    private struct Maker {
        var dice: SeededGenerator
        var next = 0

        mutating func unknown(_ members: JSONObject) -> JSONValue {
            var object = members
            for name in ["zip", "quantity", "extra"] where Bool.random(using: &dice) {
                next += 1
                let values: [JSONValue] = [["deep": JSONValue(next)], nil, 1.5]
                object[name] = values[Int.random(in: 0..<3, using: &dice)]
            }
            return .object(object)
        }

        mutating func name(_ prefix: String) -> String {
            next += 1
            return "\(prefix) \(next)"
        }

        mutating func address() -> JSONValue {
            var members: JSONObject = ["street": .string(name("street"))]
            if Bool.random(using: &dice) { members["geo"] = unknown(["lat": JSONValue(next)]) }
            return unknown(members)
        }

        mutating func item() -> JSONValue {
            let parts = (0..<Int.random(in: 0...3, using: &dice)).map { _ in
                next += 1
                return unknown(["number": JSONValue(next)])
            }
            return unknown(["name": .string(name("item")), "parts": .array(parts)])
        }

        mutating func items() -> [JSONValue] { (0..<Int.random(in: 1...4, using: &dice)).map { _ in item() } }

        mutating func order() -> JSONObject {
            let lines = (0..<Int.random(in: 2...5, using: &dice)).map {
                unknown(["id": JSONValue($0), "text": .string(name("line"))])
            }
            let labels = (0..<Int.random(in: 0...4, using: &dice)).map { _ in
                unknown(["text": .string(name("label"))])
            }
            var order: JSONObject = [
                "title": "first", "ratio": 0.123_456_789_012_3, "opened": "2026-03-01T09:30:00+01:00",
                "address": address(), "items": .array(items()), "lines": .array(lines),
                "grid": [.array(items()), .array(items())], "places": ["home": address(), "work": address()],
                "colors": ["green", address(), "red", address()], "labels": .array(labels), "colour": "red",
            ]
            if Bool.random(using: &dice) { order["form"] = ["circle": unknown(["radius": 1])] }
            return order
        }
    }

    /// A change, of the model and of what should be stored after it.
    private struct Edit {
        var model: (inout Order) -> Void
        var json: (inout JSONValue) -> Void
    }

    /// One of the changes of a kind, so that changes of different kinds do not meet.
    private static func edit(_ kind: Int, _ stored: JSONValue, _ maker: inout Maker) -> Edit {
        func position(_ array: JSONValue?) -> Int {
            .random(in: 0..<max(array?.array?.count ?? 0, 1), using: &maker.dice)
        }
        let text = maker.name("new")
        switch kind {
        case 0:
            return Edit {
                $0.title = text
            } json: {
                $0["title"] = .string(text)
            }
        case 1:
            return Edit {
                $0.address.street = text
            } json: {
                $0["address"]?["street"] = .string(text)
            }
        case 2:
            return Edit {
                $0.address.geo = nil
            } json: {
                $0["address"]?["geo"] = nil
            }
        case 3: return items(stored, text, &maker)
        case 4:
            let (removed, changed) = (position(stored["lines"]), position(stored["lines"]))
            return Edit {
                $0.lines[changed].text = text
                $0.lines.remove(at: removed)
                $0.lines.reverse()
                $0.lines.insert(Order.Line(id: 99, text: "new"), at: 1)
            } json: {
                var lines = $0["lines"]?.array ?? []
                lines[changed]["text"] = .string(text)
                lines.remove(at: removed)
                lines.reverse()
                lines.insert(["id": 99, "text": "new"], at: 1)
                $0["lines"] = .array(lines)
            }
        case 5:
            let (row, column) = (position(stored["grid"]), 0)
            return Edit {
                $0.grid[row][column].name = text
            } json: {
                var grid = $0["grid"]?.array ?? []
                var items = grid[row].array ?? []
                items[column]["name"] = .string(text)
                grid[row] = .array(items)
                $0["grid"] = .array(grid)
            }
        case 6:
            return Edit {
                $0.places["home"]?.street = text
                $0.places["new"] = Order.Address(street: text)
                $0.places["work"] = nil
            } json: {
                $0["places"]?["home"]?["street"] = .string(text)
                $0["places"]?["new"] = ["street": .string(text)]
                $0["places"]?["work"] = nil
            }
        case 7:
            return Edit {
                $0.colors[.blue] = Order.Address(street: text)
                $0.colors[.red]?.street = text
                $0.colors[.green]?.street = text + "!"
            } json: {
                var colors = $0["colors"]?.array ?? []
                colors[1]["street"] = .string(text + "!")
                colors[3]["street"] = .string(text)
                $0["colors"] = .array(colors + ["blue", ["street": .string(text)]])
            }
        case 8:
            return Edit {
                $0.labels.insert(Order.Label(text: text))
            } json: {
                $0["labels"] = .array(($0["labels"]?.array ?? []) + [["text": .string(text)]])
            }
        case 9:
            return Edit {
                if $0.form != nil { $0.form = .circle(radius: 7) }
            } json: {
                if $0["form"] != nil { $0["form"]?["circle"]?["radius"] = 7 }
            }
        default:
            return Edit {
                $0.form = .square(side: 2)
                $0.added = nil
                $0.ratio = 0.5
            } json: {
                $0["form"] = ["square": ["side": 2]]
                $0["ratio"] = 0.5
            }
        }
    }

    /// Changes of elements that nothing names: in place; or one that goes, comes or moves.
    private static func items(_ stored: JSONValue, _ text: String, _ maker: inout Maker) -> Edit {
        let count = stored["items"]?.array?.count ?? 0
        let (one, other) = (
            Int.random(in: 0..<count, using: &maker.dice), Int.random(in: 0..<count, using: &maker.dice)
        )
        func change(_ json: @escaping (inout [JSONValue]) -> Void) -> (inout JSONValue) -> Void {
            return { order in
                var items = order["items"]?.array ?? []
                json(&items)
                order["items"] = .array(items)
            }
        }
        switch Int.random(in: 0..<5, using: &maker.dice) {
        case 0:
            return Edit {
                $0.items[one].name = text
                $0.items[other].name = text + "!"
            } json: {
                change {
                    $0[one]["name"] = .string(text)
                    $0[other]["name"] = .string(text + "!")
                }(&$0)
            }
        case 1:
            return Edit {
                $0.items.remove(at: one)
            } json: {
                change { $0.remove(at: one) }(&$0)
            }
        case 2:
            return Edit {
                $0.items.insert(Order.Item(name: text, parts: []), at: one)
            } json: {
                change { $0.insert(["name": .string(text), "parts": []], at: one) }(&$0)
            }
        case 3:
            return Edit {
                $0.items.swapAt(one, other)
            } json: {
                change { $0.swapAt(one, other) }(&$0)
            }
        default:
            return Edit {
                for part in $0.items[one].parts.indices { $0.items[one].parts[part].number += 1_000 }
            } json: {
                change { items in
                    items[one]["parts"] = .array(
                        (items[one]["parts"]?.array ?? []).map {
                            var part = $0
                            part["number"] = JSONValue((part["number"]?.int ?? 0) + 1_000)
                            return part
                        }
                    )
                }(&$0)
            }
        }
    }

    /// Sets and dictionaries whose keys are not strings have no order.
    private static func sorted(_ properties: JSONObject) -> JSONObject {
        var properties = properties
        properties["labels"] = .array(
            (properties["labels"]?.array ?? []).sorted { $0.description < $1.description }
        )
        let colors = properties["colors"]?.array ?? []
        let pairs = stride(from: 0, to: colors.count, by: 2).map {
            JSONValue.array([colors[$0], colors[$0 + 1]])
        }
        properties["colors"] = .array(pairs.sorted { $0.description < $1.description })
        return properties
    }

    @Test func `whatever a model changes, what it does not know stays, at every depth`() throws {
        for number in 0..<cases * 20 {
            var maker = Maker(dice: SeededGenerator(seed: UInt64(number)))
            let id = "o\(number)"
            var document = Document(id: id, maker.order())
            try orders.save(&document)
            let model = try #require(try orders.document(id: id, as: Order.self))
            let before = try #require(try orders.document(id: id))
            var expected = JSONValue.object(before.properties)
            var edits: [Edit] = []
            for kind in 0..<11 where Int.random(in: 0..<4, using: &maker.dice) == 0 {
                edits.append(Self.edit(kind, expected, &maker))
            }
            for edit in edits { edit.json(&expected) }
            func change(_ order: inout Order) { for edit in edits { edit.model(&order) } }

            switch number % 4 {
            case 0: try orders.update(id: id, as: Order.self, change)
            case 1: try database.write { _ = try $0.update(id: id, in: orders, as: Order.self, change) }
            case 2:
                var changed = model
                change(&changed)
                #expect(try orders.save(&changed, concurrencyControl: .failOnConflict))
                #expect(try changed.revisionID == orders.document(id: id)?.revisionID)
            default:
                var changed = model
                change(&changed)
                #expect(try orders.save([changed]))
            }
            let after = try #require(try orders.document(id: id))
            let wanted = Self.sorted(expected.object ?? [:])
            // What the type writes of its own accord comes with the first change.
            #expect(Self.sorted(after.properties) == wanted, "seed \(number)")
            if expected == .object(before.properties) {
                #expect(after.revisionID == before.revisionID, "seed \(number)")
            }
        }
    }

    // MARK: Nothing changed

    private struct Unordered: Codable, Identifiable {
        struct Point: Codable, Hashable {
            var x = 0
            var y = 0
        }

        var id: String
        var words: Set<String> = []
        var points: Set<Point> = []
        var sets: Set<Set<Int>> = []
        var names: [Point: [Set<String>]] = [:]
        var weights: [Double: Set<Float>] = [:]
    }

    @Test func `equal sets and dictionaries are equal revisions, however they came about`() throws {
        var dice = SeededGenerator(seed: 44)
        for number in 0..<cases {
            let values = (0..<Int.random(in: 0..<40, using: &dice)).map { _ in
                Int.random(in: 0..<1_000, using: &dice)
            }
            func model() -> Unordered {
                var model = Unordered(id: "u\(number)")
                for value in values.shuffled(using: &dice) {
                    model.words.insert("w\(value)")
                    model.points.insert(.init(x: value, y: -value))
                    model.sets.insert([value, value + 1, value + 2])
                    model.names[.init(x: value)] = [["a\(value)", "b"], ["c", "d\(value)"]]
                    model.weights[Double(value) / 4] = [Float(value), 0.5]
                }
                return model
            }
            try orders.save(model())
            let first = try orders.document(id: "u\(number)")?.json
            try orders.save(model())
            #expect(try orders.document(id: "u\(number)")?.json == first, "seed \(number)")
            let stored = try #require(try orders.document(id: "u\(number)", as: Unordered.self))
            #expect(stored.points == model().points)
            #expect(stored.names == model().names)
            #expect(stored.sets == model().sets)
            #expect(stored.weights == model().weights)
        }
    }

    private struct Note: Codable, Identifiable, RevisionTracking {
        var id: String
        var revisionID: RevisionID?
        var text: String
        var ratio: Float?
        var tags: Set<String> = []
    }

    @Test func `a change of nothing makes no revision, whoever makes it`() throws {
        var document = Document(
            id: "n",
            ["text": "a", "ratio": 0.123_456_789_012_3, "tags": ["b", "a"], "new": ["x": 1]]
        )
        try orders.save(&document)
        let revision = document.revisionID
        try orders.update(id: "n", as: Note.self) { _ in }
        try orders.update(id: "n", as: Note.self) { $0.text = "a" }
        #expect(try orders.update(id: "n") { _ in }.revisionID == revision)
        try orders.update(id: "n") { $0["text"] = "a" }
        try database.write { transaction in
            try transaction.update(id: "n", in: orders, as: Note.self) { _ in }
            try transaction.update(id: "n", in: orders) { _ in }
            var note = try #require(try transaction.document(id: "n", in: orders, as: Note.self))
            #expect(try transaction.save(&note, in: orders, concurrencyControl: .failOnConflict))
        }
        var note = try #require(try orders.document(id: "n", as: Note.self))
        #expect(try orders.save(&note))
        #expect(try orders.save(note))
        #expect(try orders.save([note, note]))
        #expect(try orders.save(&note) { _, _ in false })
        #expect(note.revisionID == revision)
        #expect(try orders.document(id: "n")?.revisionID == revision)
        note.text = "b"
        #expect(try orders.save(&note))
        #expect(note.revisionID?.generation == 2)
        let stored = try #require(try orders.document(id: "n"))
        #expect(
            stored.properties == [
                "text": "b", "ratio": 0.123_456_789_012_3, "tags": ["b", "a"], "new": ["x": 1],
            ]
        )
        expectError(.encodingError) {
            try orders.update(id: "n") { $0["text"] = JSONValue.number(.double(.nan)) }
        }
    }

    @Test func `the last of two models wins, and what neither knows stays`() throws {
        try orders.save(Document(id: "n", ["text": "a", "new": ["x": 1], "tags": []]))
        var (mine, yours) = (
            try #require(try orders.document(id: "n", as: Note.self)),
            try #require(try orders.document(id: "n", as: Note.self))
        )
        try orders.update(id: "n") { $0["new"] = ["x": 2] }
        yours.text = "yours"
        yours.ratio = 1
        #expect(try !orders.save(yours, concurrencyControl: .failOnConflict))
        #expect(try orders.save(&yours))
        mine.text = "mine"
        #expect(try orders.save([mine, mine]))
        #expect(try orders.document(id: "n")?.properties == ["text": "mine", "new": ["x": 2], "tags": []])
        mine.text = "merged"
        #expect(
            try orders.save(&mine) {
                $0.text += $1?.text ?? ""
                return true
            }
        )
        #expect(
            try orders.document(id: "n")?.properties == ["text": "mergedmine", "new": ["x": 2], "tags": []]
        )
        // A document that does not fit the model any more is replaced, and one that is gone comes back.
        try orders.save(Document(id: "n", ["text": 7, "new": 1]))
        #expect(try orders.save(&mine))
        #expect(try orders.document(id: "n")?.properties == ["text": "mergedmine", "tags": []])
        try orders.delete(id: "n")
        #expect(try orders.save(mine))
        #expect(try orders.document(id: "n", as: Note.self)?.text == "mergedmine")
    }

    @Test func `updates of models at the same time lose nothing`() async throws {
        try orders.save(Document(id: "n", ["text": "", "count": 0, "tags": []]))
        try await withThrowingTaskGroup { group in
            for writer in 0..<4 {
                group.addTask {
                    for _ in 0..<25 {
                        if writer % 2 == 0 {
                            try orders.update(id: "n") {
                                $0["count"] = JSONValue(($0["count"]?.int ?? 0) + 1)
                            }
                        } else {
                            var note = try #require(try orders.document(id: "n", as: Note.self))
                            note.text += "x"
                            try orders.save(&note)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try orders.document(id: "n")?["count"] == 50)
    }
}
