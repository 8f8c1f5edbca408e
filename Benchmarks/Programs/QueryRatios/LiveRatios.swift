import Foundation
import Loveseat

/// Live queries: how soon they tell, and what a hundred of them cost those that write.
struct LiveRatios {
    let folder: String
    private let texts: [String]
    private let changed: [String]
    private let rounds: Int

    init(folder: String, texts: [String], rounds: Int) {
        self.folder = folder
        self.texts = texts
        self.rounds = rounds
        changed = texts.map { $0.replacing("\"score\":", with: "\"score\":1") }
    }

    func measure() async throws {
        let database = try Database(name: "live", config: DatabaseConfiguration(directory: folder))
        let collection = try database.defaultCollection()
        try await database.write { transaction in
            for (number, text) in texts.enumerated() {
                try transaction.save(try Document(id: Places.id(number), json: text), in: collection)
            }
        }
        try await collection.createIndex(ValueIndexConfiguration(["age"]), withName: "age")
        try await delay(collection)
        try await load(collection, limit: 10_000)
        try await load(collection, limit: nil)
        try await database.close()
    }

    /// From a save after a quiet second to the result that has it.
    private func delay(_ collection: Collection) async throws {
        let query = try collection.database.createQuery("SELECT META().id FROM _ WHERE age = 1000")
        var changes = try query.changes().makeAsyncIterator()
        _ = await changes.next()
        var times: [Double] = []
        for round in 0..<(rounds * 2) {
            try await Task.sleep(for: .milliseconds(400))
            let clock = ContinuousClock()
            let start = clock.now
            try collection.save(try Document(id: "live\(round)", json: #"{"age":1000}"#))
            guard let change = await changes.next(), change.results?.count == round + 1 else {
                throw Difference(work: "live query", counts: (0, round + 1))
            }
            let duration = clock.now - start
            times.append(Double(duration.components.attoseconds) / 1e18 + Double(duration.components.seconds))
        }
        print("| save to live event | \(times.median.asTime) | | | 5 ms | 1 ms | |")
    }

    /// Saves in transactions of a hundred, with and without a hundred queries that watch the collection.
    private func load(_ collection: Collection, limit: Int?) async throws {
        var (alone, watched): ([Double], [Double]) = ([], [])
        for _ in 0..<rounds {
            alone.append(try await rate(collection, limit))
            var watchers: [Task<Int, any Error>] = []
            for age in 0..<100 {
                let query = try collection.database.createQuery(
                    "SELECT META().id, score FROM _ WHERE age = \(age)"
                )
                let changes = try query.changes()
                watchers.append(
                    Task {
                        var count = 0
                        for await _ in changes { count += 1 }
                        return count
                    }
                )
            }
            watched.append(try await rate(collection, limit))
            var events = 0
            for watcher in watchers {
                watcher.cancel()
                events += try await watcher.value
            }
            guard events >= 200 else {
                throw Difference(work: "events of 100 live queries", counts: (events, 200))
            }
        }
        let ratio = watched.median / alone.median
        let rates = [watched, alone].map { "\(Int($0.median))/s" }.joined(separator: " | ")
        let pace = limit.map { "at most \($0)/s" } ?? "as fast as it goes"
        print(
            "| saves beside 100 live queries against alone, \(pace) | \(rates) | \(String(format: "%.2f", ratio)) | ≥ 0.8 | | |"
        )
    }

    /// Saves for three seconds, `limit` documents a second at most.
    private func rate(_ collection: Collection, _ limit: Int?) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        var saved = 0
        while clock.now - start < .seconds(3) {
            let first = saved
            try await collection.database.write { transaction in
                for number in first..<(first + 100) {
                    let place = number % texts.count
                    // Each time round the scores are others, and so are the results.
                    let text = number / texts.count % 2 == 0 ? changed[place] : texts[place]
                    try transaction.save(try Document(id: Places.id(place), json: text), in: collection)
                }
            }
            saved += 100
            if let limit { try await clock.sleep(until: start + .microseconds(1_000_000 * saved / limit)) }
        }
        return Double(saved) / 3
    }
}
