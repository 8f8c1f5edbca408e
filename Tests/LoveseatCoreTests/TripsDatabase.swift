import LoveseatCore
import LoveseatTesting

/// A database of sights.
struct TripsDatabase {
    let scratch: Scratch
    let database: Database
    let sights: LoveseatCore.Collection

    init() throws {
        scratch = try Scratch()
        database = try scratch.database("trips")
        sights = try database.createCollection(name: "sights")
    }
}

struct Sight: Codable, Identifiable, Equatable {
    var id: String
    var likes: Int
}

/// A suite whose tests begin with an empty collection of sights.
protocol TripsSuite {
    var trips: TripsDatabase { get }
}

extension TripsSuite {
    var scratch: Scratch { trips.scratch }
    var database: Database { trips.database }
    var sights: LoveseatCore.Collection { trips.sights }
}
