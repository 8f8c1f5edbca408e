import ArgumentParser
import Foundation

/// Calls of `CouchbaseLiteSwift` against the same calls of `Loveseat`: processor time of this process, both sides in turns, medians.
@main
struct FacadeRatios: ParsableCommand {
    /// What `CouchbaseLiteSwift` may take at most.
    private static let limit = 1.3

    @Option(help: "How many documents a piece of work is about.")
    var documents = 2_000

    @Option(help: "How often each piece of work is measured.")
    var rounds = 7

    @Option(help: "Measure only the calls whose description contains this text.")
    var only = ""

    func run() throws {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "loveseat-facade-\(UUID().uuidString)"
        )
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let sights = (0..<documents).map { Sight(number: $0) }
        let native = try NativeSide(folder: folder.path, sights).work
        let facade = try FacadeSide(folder: folder.path, sights).work
        print("| call | CouchbaseLiteSwift | Loveseat | ratio | at most \(Self.limit) |")
        print("|---|---|---|---|---|")
        for work in Work.allCases where only.isEmpty || work.rawValue.contains(only) {
            guard let ours = facade[work], let theirs = native[work] else {
                throw ValidationError("a side does not do \(work)")
            }
            try measure(work, ours, theirs)
        }
    }

    /// Measures both sides in turns, after a round that warms up.
    private func measure(_ work: Work, _ ours: () throws -> Void, _ theirs: () throws -> Void) throws {
        var times: (ours: [Double], theirs: [Double]) = ([], [])
        for round in 0...rounds {
            let (one, other) = (try processorTime(of: ours), try processorTime(of: theirs))
            if round == 0 { continue }
            times.ours.append(one)
            times.theirs.append(other)
        }
        let (one, other) = (median(times.ours), median(times.theirs))
        let ratio = one / other
        let each = { (seconds: Double) in
            String(format: "%.3g µs", seconds * 1e6 / Double(documents * work.repetitions))
        }
        let met = ratio <= Self.limit ? "yes" : "**no**"
        print(
            "| \(work.rawValue) | \(each(one)) | \(each(other)) | \(String(format: "%.2f", ratio)) | \(met) |"
        )
    }

    private func median(_ times: [Double]) -> Double { times.sorted()[times.count / 2] }
}

/// What is measured, once or several times for each document.
enum Work: String, CaseIterable {
    case save = "save of a new document"
    case update = "read, setValue of one property, save"
    case get = "get"
    case getAndRead = "get and one string"
    case getString = "string of a document that was read"
    case getAll = "six properties of a document that was read"
    case setValue = "a document of six setValue"
    case toJSON = "get and JSON text"
    case query = "query, two columns of a row"
    case inBatch = "save in a transaction of all"
    case blob = "save with a blob of 4 kB, and its content"
    case delete = "delete"

    /// How often it is done for each document.
    var repetitions: Int {
        switch self {
        case .getString, .getAll: 20
        default: 1
        }
    }
}

/// The content of a document.
struct Sight {
    let id: String
    let name: String
    let city: String
    let likes: Int
    let rating: Double
    let isOpen: Bool
    let text: String
    let photo: Data

    init(number: Int) {
        id = "sight\(number)"
        name = "Tower \(number)"
        city = "City \(number % 20)"
        likes = number
        rating = Double(number % 10) + 0.5
        isOpen = number % 2 == 0
        text = String(repeating: "The tower was built for a world fair. ", count: 12)
        // No two contents are the same.
        photo = Data(id.utf8) + Data(repeating: UInt8(truncatingIfNeeded: number), count: 4_096)
    }
}

/// Something is missing that was stored.
struct Missing: Error { let what: String }

/// Seconds that this process has used of the processors, in all threads.
private func processorTime() -> Double {
    var usage = rusage()
    #if canImport(Darwin)
    getrusage(RUSAGE_SELF, &usage)
    #else
    getrusage(.init(RUSAGE_SELF.rawValue), &usage)
    #endif
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

private func processorTime(of work: () throws -> Void) rethrows -> Double {
    let start = processorTime()
    try work()
    return processorTime() - start
}
