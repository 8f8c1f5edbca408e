import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Rows of a query that wait for their consumer in a file.
struct RowCodingTests {
    @Test func `rows are read as they were written, and a file that is cut or damaged gives no partial rows`()
        throws
    {
        let scratch = try Scratch()
        let database = try scratch.database("trips")
        let collection = try database.defaultCollection()
        for number in 0..<5 {
            try collection.save(
                Document(
                    id: "d\(number)",
                    ["n": JSONValue(number), "f": 1.5, "t": "é", "a": [1, "x"], "z": .null, "b": true]
                )
            )
        }
        let text = "SELECT meta().id, n, f, t, a, z, b, nothing FROM _ ORDER BY n"
        let rows = try database.createQuery(text).execute()
        try #require(rows.count == 5)
        let titles = QueryTitles(rows[0].columns)
        let bytes = RowCoding.encode(rows)
        #expect(try RowCoding.decode(bytes, titles).map(\.json) == rows.map(\.json))
        for count in 0..<bytes.count {
            expectError(.ioError) { try RowCoding.decode(Array(bytes.prefix(count)), titles) }
        }
        expectError(.ioError) { try RowCoding.decode(bytes + [0], titles) }
        #expect(try RowCoding.decode(RowCoding.encode([]), titles).isEmpty)
        for seed in PropertySeeds.of("ROWS", 500) {
            var generator = SeededGenerator(seed: seed)
            var changed = bytes
            changed[generator.int(0...bytes.count - 1)] ^= UInt8(1 << generator.int(0...7))
            // Values may differ. Every row has all of its columns, or none is returned.
            guard let found = try? RowCoding.decode(changed, titles) else { continue }
            #expect(found.allSatisfy { $0.count == rows[0].count }, "seed \(seed)")
        }
    }
}
