import Foundation
import Loveseat

/// What `turns.py` runs beside each build of `loveseat`, for what no command measures: gets and single saves through the public API
/// on the documents that it imported. It uses only calls that old builds have, too, so that it can be copied into one.
@main
enum ApiSpeed {
    static func main() throws {
        guard CommandLine.arguments.count == 4, let count = Int(CommandLine.arguments[3]), count > 0 else {
            print("usage: ApiSpeed FOLDER DATABASE DOCUMENTS")
            exit(64)
        }
        let configuration = DatabaseConfiguration(directory: CommandLine.arguments[1])
        let database = try Database(name: CommandLine.arguments[2], config: configuration)
        let collection = try database.defaultCollection()
        let ids = (0..<min(count, 50_000)).map { number in
            let digits = String((number &* 7_919) % count)
            return "doc" + String(repeating: "0", count: max(0, 6 - digits.count)) + digits
        }
        var found = 0
        try report("get and one property read, /s", ids.count) {
            for id in ids where try collection.document(id: id)?.element["number"]?.int != nil { found += 1 }
        }
        guard found == ids.count else {
            print("\(found) of \(ids.count) documents have a number")
            exit(1)
        }
        let words = String(repeating: "The tower was built for a world fair. ", count: 16)
        let some = ids.prefix(10_000)
        let texts = some.indices.map { #"{"name":"Tower \#($0)","number":\#($0),"text":"\#(words)"}"# }
        try report("one save a transaction, /s", some.count) {
            for (id, text) in zip(some, texts) { try collection.save(try Document(id: id, json: text)) }
        }
        try database.close()
    }

    private static func report(_ work: String, _ count: Int, _ body: () throws -> Void) rethrows {
        let clock = ContinuousClock()
        let start = clock.now
        try body()
        let taken = (clock.now - start).components
        let seconds = Double(taken.seconds) + Double(taken.attoseconds) / 1e18
        print("\(work): \(Double(count) / seconds)")
    }
}
