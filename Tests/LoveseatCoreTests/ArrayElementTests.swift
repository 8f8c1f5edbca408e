import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// How a typed change finds the stored elements of an array again, and other values that have no name.
@Suite(.timeLimit(.minutes(1)))
struct ArrayElementTests {
    private let scratch: Scratch
    private let database: Database
    private let orders: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("shop")
        orders = try database.defaultCollection()
    }

    /// Reads the elements that it knows, as apps do that expect others of newer versions.
    private struct Drawing: Codable, Identifiable {
        struct Known: Codable { var kind: String, size: Int }
        struct Other: Decodable { var kind: String }
        var id: String
        var shapes: [Known]
        enum CodingKeys: CodingKey { case id, shapes }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(String.self, forKey: .id)
            shapes = []
            var list = try container.nestedUnkeyedContainer(forKey: .shapes)
            while !list.isAtEnd {
                if let known = try? list.decode(Known.self) {
                    shapes.append(known)
                } else {
                    _ = try list.decode(Other.self)
                }
            }
        }
    }

    @Test func `elements that a type leaves out when it reads an array stay in it`() throws {
        let shapes: JSONValue = [
            ["kind": "arc", "angle": 1], ["kind": "dot", "size": 1, "color": "red"],
            ["kind": "text", "words": "a"],
            ["kind": "dot", "size": 2, "color": "blue"], ["kind": "text", "words": "b"],
        ]
        try orders.save(Document(id: "d", ["shapes": shapes]))
        try orders.update(id: "d", as: Drawing.self) { $0.shapes[1].size = 5 }
        var expected = shapes.array ?? []
        expected[3]["size"] = 5
        #expect(try orders.document(id: "d")?["shapes"] == .array(expected))
        try orders.update(id: "d", as: Drawing.self) { $0.shapes.remove(at: 0) }
        expected.remove(at: 1)
        #expect(try orders.document(id: "d")?["shapes"] == .array(expected))
    }

    private struct Cart: Codable, Identifiable {
        struct Item: Codable { var name: String }
        var id: String
        var items: [Item?]
    }

    /// What happens to the items a, b and c, and which number each has afterwards; 0 for a new one.
    private static let changes: [(String, @Sendable (inout [Cart.Item?]) -> Void, [Int?])] = [
        (
            "edit and add",
            {
                $0[2]?.name = "x"; $0.append(Cart.Item(name: "y"))
            }, [1, 2, 3, 0]
        ),
        (
            "edit all and add",
            {
                for index in 0..<3 { $0[index]?.name += "x" }; $0.append(Cart.Item(name: "y"))
            }, [1, 2, 3, 0]
        ),
        (
            "edit and add before",
            {
                $0[2]?.name = "x"; $0.insert(Cart.Item(name: "y"), at: 0)
            }, [0, 1, 2, 3]
        ),
        (
            "remove and edit elsewhere",
            {
                $0.remove(at: 0); $0[1]?.name = "x"
            }, [2, 3]
        ),
        (
            "add one, remove one",
            {
                $0.append(Cart.Item(name: "y")); $0.remove(at: 0)
            }, [2, 3, 0]
        ),
        (
            "nil",
            {
                $0[1] = nil; $0.append(nil)
            }, [1, nil, 3, nil]
        ),
        ("reverse", { $0.reverse() }, [3, 2, 1]),
        ("remove all", { $0 = [] }, []),
    ]

    @Test(arguments: changes.indices) func `elements without names are matched as documented`(_ index: Int)
        throws
    {
        let (what, change, numbers) = Self.changes[index]
        let items = zip(["a", "b", "c"], 1...).map {
            JSONValue.object(["name": .string($0), "number": JSONValue($1)])
        }
        try orders.save(Document(id: "c", ["items": .array(items)]))
        try orders.update(id: "c", as: Cart.self) { change(&$0.items) }
        let stored = try #require(try orders.document(id: "c")?["items"]?.array)
        let found = stored.map { $0.isNull ? nil : $0["number"]?.int ?? 0 }
        #expect(found == numbers, "\(what)")
    }

    @Test func `a large set is changed in time that grows with it`() throws {
        struct Bag: Codable, Identifiable {
            struct Thing: Codable, Hashable { var name: String }
            var id: String
            var things: Set<Thing>
            var words: Set<String>
        }
        let things = (0..<20_000).map {
            JSONValue.object(["name": .string("thing \($0)"), "unknown": JSONValue($0)])
        }
        let words = (0..<20_000).map { JSONValue.string("word \($0)") }
        try orders.save(
            Document(id: "b", ["things": .array(Array(things.prefix(5_000))), "words": .array(words)])
        )
        try orders.update(id: "b", as: Bag.self) {
            $0.words.insert("new")
            $0.things.insert(Bag.Thing(name: "new"))
        }
        let stored = try #require(try orders.document(id: "b"))
        #expect(stored["words"]?.array?.count == 20_001)
        #expect(
            Swift.Set(stored["things"]?.array ?? []) == Swift.Set(things.prefix(5_000) + [["name": "new"]])
        )
    }

    private struct Photo: Codable, Identifiable {
        struct Page: Codable { var image: BlobReference }
        var id: String
        var page: Page
    }

    @Test func `a blob is replaced as a whole, and what is beside it stays`() throws {
        let (old, new) = (
            try database.saveBlob([1], contentType: "image/png"),
            try database.saveBlob([2], contentType: "image/png")
        )
        var stub = old.json
        stub["revpos"] = 3
        try orders.save(Document(id: "p", ["page": ["image": stub, "caption": "x"]]))
        try orders.update(id: "p", as: Photo.self) { $0.page.image = old }
        #expect(try orders.document(id: "p")?["page"] == ["image": stub, "caption": "x"])
        try orders.update(id: "p", as: Photo.self) { $0.page.image = new }
        #expect(try orders.document(id: "p")?["page"] == ["image": new.json, "caption": "x"])
    }
}
