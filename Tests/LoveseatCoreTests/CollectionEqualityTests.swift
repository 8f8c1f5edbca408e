import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Collections as keys, also after their database was closed.
struct CollectionEqualityTests {
    @Test func `whether two collections are equal does not depend on whether their database is open`()
        async throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("trips")
        let second = try scratch.database("trips")
        let other = try scratch.database("other")
        let notes = try database.createCollection(name: "notes", scope: "travel")
        let more = try database.createCollection(name: "more", scope: "travel")
        var config = scratch.config
        config.readOnly = true
        let reader = try Database(name: "trips", config: config)
        var all = [notes, more, try database.defaultCollection(), try other.defaultCollection()]
        all.append(try other.createCollection(name: "notes", scope: "travel"))
        for same in [database, second, reader] {
            all.append(try #require(try same.collection(name: "notes", scope: "travel")))
        }
        try database.createCollection(name: "gone")
        all.append(try #require(try database.collection(name: "gone")))
        try database.deleteCollection(name: "gone")
        all.append(try database.createCollection(name: "gone"))

        func equalities() -> [[Bool]] { all.map { one in all.map { $0 == one } } }
        let before = equalities()
        for index in all.indices { #expect(before[index][index]) }
        #expect(before[0].filter { $0 }.count == 4)
        #expect(!before[8][9])
        var rows = [LoveseatCore.Collection: Int]()
        for (index, collection) in all.enumerated() where rows[collection] == nil { rows[collection] = index }
        let kept = rows
        for closed in [second, database, reader, other] {
            try await closed.close()
            #expect(equalities() == before)
            #expect(rows == kept)
            for (index, collection) in all.enumerated() {
                #expect(rows[collection] == before[index].firstIndex(of: true))
            }
        }
        rows[notes] = 9
        #expect(rows.count == kept.count)
        // A folder that is opened again is another one.
        let again = try #require(try scratch.database("trips").collection(name: "notes", scope: "travel"))
        #expect(again != notes)
        #expect(again == again)
    }
}
