import ArgumentParser
import Foundation
import Loveseat

/// Queries against raw SQLite: processor time of this process, both sides in turns, medians.
@main
struct QueryRatios: AsyncParsableCommand {
    @Option(help: "How many documents.")
    var documents = 100_000

    @Option(help: "How often each row is measured.")
    var rounds = 5

    @Option(help: "The page cache of both sides, in megabytes.")
    var cache = 64

    func run() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "loveseat-queries-\(UUID().uuidString)"
        ).path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let places = Places()
        let texts = (0..<documents).map { places.json($0, of: documents) }
        let database = try Database(
            name: "places",
            config: DatabaseConfiguration(directory: folder, cacheSize: cache << 20)
        )
        let raw = try RawTable(path: "\(folder)/raw.sqlite", megabytes: cache)
        let table = Table(database: database, raw: raw, rounds: rounds)

        try table.fill(texts)
        print("| work | Loveseat | raw SQLite | ratio | floor | aim | |")
        print("|---|---|---|---|---|---|---|")
        for question in Question.withoutIndexes { try table.ask(question) }
        try table.makeIndexes()
        for question in Question.withIndexes(documents) { try table.ask(question) }
        try table.compile()
        try await database.close()
        try InsertRatio(folder: folder, texts: Array(texts.prefix(20_000)), rounds: rounds).measure()
        try await LiveRatios(folder: folder, texts: Array(texts.prefix(10_000)), rounds: rounds).measure()
    }
}

/// Seconds that this process has used of the processors, in all threads.
func processorTime() -> Double {
    var usage = rusage()
    getrusage(.init(RUSAGE_SELF.rawValue), &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

func processorTime(of work: () throws -> Void) rethrows -> Double {
    let start = processorTime()
    try work()
    return processorTime() - start
}

extension [Double] {
    var median: Double { isEmpty ? .nan : sorted()[count / 2] }
}

extension Double {
    /// A time with three digits and its unit.
    var asTime: String {
        if self >= 1 { return String(format: "%.2f s", self) }
        if self >= 0.001 { return String(format: "%.3g ms", self * 1e3) }
        return String(format: "%.3g µs", self * 1e6)
    }
}

func printRow(_ work: String, _ ours: Double, _ theirs: Double, floor: Double, aim: Double) {
    let ratio = ours / theirs
    let met = ratio <= aim ? "aim" : ratio <= floor ? "floor" : "**neither**"
    print(
        "| \(work) | \(ours.asTime) | \(theirs.asTime) | \(String(format: "%.2f", ratio)) | \(floor) | \(aim) | \(met) |"
    )
}
