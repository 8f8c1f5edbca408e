import LoveseatCore
import LoveseatModel
import LoveseatTesting
import Testing

/// Indexes within transactions.
struct TransactionIndexTests: TripsSuite {
    let trips: TripsDatabase

    init() throws { trips = try TripsDatabase() }

    @Test func `a transaction that fails leaves no index`() throws {
        struct Failure: Error {}
        #expect(throws: Failure.self) {
            try database.write { transaction in
                try transaction.createIndex(
                    ValueIndexConfiguration(["city"]),
                    withName: "city",
                    in: sights
                )
                #expect(try transaction.indexes(of: sights) == ["city"])
                throw Failure()
            }
        }
        #expect(try sights.indexes().isEmpty)
    }

    @Test func `a transaction creates and deletes indexes`() throws {
        try sights.createIndex(ValueIndexConfiguration(["name"]), withName: "name")
        try database.write { transaction in
            try transaction.createIndex(ValueIndexConfiguration(["city"]), withName: "city", in: sights)
            try transaction.deleteIndex(forName: "name", in: sights)
            try transaction.deleteIndex(forName: "none", in: sights)
        }
        #expect(try sights.indexes() == ["city"])
    }

    @Test func `an index without expressions is refused`() throws {
        expectError(.invalidParameter) {
            try database.write {
                try $0.createIndex(ValueIndexConfiguration([]), withName: "a", in: sights)
            }
        }
    }
}
