import Foundation
import LoveseatModel
import LoveseatQuery
import LoveseatTesting
import Testing

/// Random expressions over random odd values: translated and run by SQLite, and evaluated by the plain interpreter.
///
/// 2,000 cases run by default. `LOVESEAT_DIFFERENTIAL_CASES=100000` runs more, and `LOVESEAT_DIFFERENTIAL_SEED` begins
/// with another batch; the message of a failure names the seed that repeats it.
struct DifferentialTests {
    private static let casesInBatch = 20

    private static func setting(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    /// What a run compared, and what it could not compare.
    private struct Tally {
        var values = 0
        var open = 0
        var indexed = 0
        var differences: [String] = []
    }

    @Test func `queries have the answers of a plain interpreter of the specification`() throws {
        let cases = Int(Self.setting("LOVESEAT_DIFFERENTIAL_CASES") ?? 2000)
        let first = Self.setting("LOVESEAT_DIFFERENTIAL_SEED") ?? 1
        var tally = Tally()
        for batch in 0..<UInt64((cases + Self.casesInBatch - 1) / Self.casesInBatch) {
            let seed = first + batch
            do { try Self.run(seed, &tally) } catch { tally.differences.append("seed \(seed): \(error)") }
            if tally.differences.count >= 20 { break }
        }
        for difference in tally.differences {
            Issue.record(
                "\(difference)\nrepeat: LOVESEAT_DIFFERENTIAL_CASES=\(Self.casesInBatch) LOVESEAT_DIFFERENTIAL_SEED=N"
            )
        }
        // Most answers are specified: a test that compares nothing has gone wrong.
        #expect(tally.values > tally.open * 4)
        #expect(cases < 1000 || tally.indexed > cases / 50)
        if cases > 2000 {
            print(
                "compared \(tally.values) values in \(cases) cases; \(tally.open) were left open, \(tally.indexed) queries used an index"
            )
        }
    }

    private static func run(_ seed: UInt64, _ tally: inout Tally) throws {
        var generator = SpecGenerator(seed: seed)
        let documents = (0..<8).map { _ in generator.document() }
        let collection = try #require(CollectionName(name: "odd"))
        let database = try GoldenDatabase(
            timeZone: "UTC",
            documents: [
                collection: documents.enumerated().map {
                    .init(id: "d\($0)", body: JSONText(canonical: $1.json ?? [:]))
                }
            ]
        )
        for number in 0..<casesInBatch {
            var round = DifferentialRound(database: database, documents: documents, generator: generator)
            do {
                switch number % 10 {
                case 0, 1: try round.filter()
                case 2: try round.sort()
                case 3: try round.aggregate()
                case 4: try round.unnest()
                case 5: try round.fail()
                case 6: try round.group()
                case 7: try round.distinct()
                default: try round.select()
                }
            } catch let failure as GoldenDatabase.Failure {
                round.differences.append("\(round.query): failed at \(failure.stage): \(failure.message)")
            }
            generator = round.generator
            tally.values += round.values
            tally.open += round.open
            tally.indexed += round.indexed
            tally.differences += round.differences.prefix(1).map { "seed \(seed), case \(number): \($0)" }
        }
    }
}
