import LoveseatCore
import LoveseatTesting

/// Two databases of one process that replicate their default collections.
struct DatabasePair {
    let scratch: Scratch
    let near: Database
    let far: Database
    let here: Collection
    let there: Collection

    init() throws {
        scratch = try Scratch()
        near = try scratch.database("near")
        far = try scratch.database("far")
        here = try near.defaultCollection()
        there = try far.defaultCollection()
    }
}

/// A suite whose tests begin with two empty databases.
protocol PairSuite {
    var pair: DatabasePair { get }
}

extension PairSuite {
    var scratch: Scratch { pair.scratch }
    var near: Database { pair.near }
    var far: Database { pair.far }
    var here: Collection { pair.here }
    var there: Collection { pair.there }

    /// A replicator of the near collection with the far one.
    func replicator(
        _ type: ReplicatorType = .pushAndPull,
        _ change: (inout CollectionConfiguration) -> Void = { _ in }
    ) -> Replicator {
        var entry = CollectionConfiguration(collection: here)
        change(&entry)
        var configuration = ReplicatorConfiguration(
            collections: [entry],
            target: DatabaseEndpoint(database: far)
        )
        configuration.replicatorType = type
        return Replicator(configuration)
    }
}
