import Foundation
import Loveseat

/// How much of the speed of a bulk insert is left with a value index.
struct InsertRatio {
    let folder: String
    let texts: [String]
    let rounds: Int

    func measure() throws {
        var (plain, indexed): ([Double], [Double]) = ([], [])
        for round in 0..<rounds {
            plain.append(try seconds("plain\(round)", indexed: false))
            indexed.append(try seconds("indexed\(round)", indexed: true))
        }
        let ratio = plain.median / indexed.median
        let rates = [indexed, plain].map { "\(Int(Double(texts.count) / $0.median))/s" }.joined(
            separator: " | "
        )
        print(
            "| bulk insert with a value index, of the rate without | \(rates) | \(String(format: "%.2f", ratio)) | ≥ 0.7 | ≥ 0.85 | |"
        )
    }

    private func seconds(_ name: String, indexed: Bool) throws -> Double {
        let database = try Database(name: name, config: DatabaseConfiguration(directory: folder))
        let collection = try database.defaultCollection()
        if indexed { try collection.createIndex(ValueIndexConfiguration(["name"]), withName: "name") }
        let time = try processorTime {
            try database.write { transaction in
                for (number, text) in texts.enumerated() {
                    try transaction.save(try Document(id: Places.id(number), json: text), in: collection)
                }
            }
        }
        try database.delete()
        return time
    }
}
