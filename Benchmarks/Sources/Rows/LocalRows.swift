import Foundation
import Loveseat

/// The rows that need one database and no peer. Both sides of a ratio take turns, five times, and medians are compared.
public enum LocalRows {
    private static let rounds = 5

    public static func json() -> Row {
        let texts = (0..<2_000).map { Array(sampleText($0).utf8) }
        let bytes = Double(texts.reduce(0) { $0 + $1.count })
        var ours: [Double] = []
        var theirs: [Double] = []
        for _ in 0..<rounds {
            ours.append(
                seconds {
                    for text in texts {
                        guard (try? JSONElement(parsing: text)) != nil else { fatalError("the sample is no JSON") }
                    }
                }
            )
            let data = texts.map { Data($0) }
            theirs.append(
                seconds {
                    for text in data { _ = try? JSONSerialization.jsonObject(with: text) }
                }
            )
        }
        let mine = bytes / ours.median / 1e6
        return .ratio("JSON validate+index", mine, of: bytes / theirs.median / 1e6, unit: "MB/s", floor: 10)
    }

    public static func bulkInsert(_ count: Int) throws -> Row {
        var ours: [Double] = []
        var theirs: [Double] = []
        for _ in 0..<3 {
            let texts = (0..<count).map { sampleText($0) }
            let scratch = try Scratch()
            let database = try scratch.database("ours")
            let collection = try database.defaultCollection()
            ours.append(
                try seconds {
                    try database.write { transaction in
                        for (number, text) in texts.enumerated() {
                            try transaction.save(try Document(id: "doc\(number)", json: text), in: collection)
                        }
                    }
                }
            )
            try database.close()
            let raw = RawSQLite(path: "\(scratch.path)/raw.sqlite")
            let bodies = texts.map { Array($0.utf8) }
            theirs.append(
                seconds {
                    raw.run("BEGIN")
                    for (number, body) in bodies.enumerated() { raw.insert("doc\(number)", number, body) }
                    raw.run("COMMIT")
                }
            )
        }
        let rate = Double(count)
        return .ratio("bulk insert", rate / ours.median, of: rate / theirs.median, unit: "documents/s", floor: 0.4)
    }

    public static func getAndSave(_ count: Int) throws -> [Row] {
        let scratch = try Scratch()
        let database = try scratch.database("ours")
        let collection = try database.defaultCollection()
        let raw = RawSQLite(path: "\(scratch.path)/raw.sqlite")
        raw.run("BEGIN")
        try database.write { transaction in
            for number in 0..<count {
                try transaction.save(try Document(id: "doc\(number)", json: sampleText(number)), in: collection)
                raw.insert("doc\(number)", number, Array(sampleText(number).utf8))
            }
        }
        raw.run("COMMIT")

        let ids = (0..<20_000).map { "doc\(($0 &* 7_919) % count)" }
        var gets: (ours: [Double], theirs: [Double]) = ([], [])
        var saves: (ours: [Double], theirs: [Double]) = ([], [])
        var sequence = count
        for round in 0..<rounds {
            gets.ours.append(
                try seconds {
                    var sum = 0
                    for id in ids { sum += try collection.document(id: id)?.element["likes"]?.int ?? 0 }
                    guard sum > 0 else { fatalError("nothing was read") }
                }
            )
            // Raw SQLite gives the row; finding a property in it is what a user of it has to do too.
            gets.theirs.append(
                seconds {
                    var sum = 0
                    for id in ids { sum += (try? JSONElement(parsing: raw.body(id)))?["likes"]?.int ?? 0 }
                    guard sum > 0 else { fatalError("nothing was read") }
                }
            )
            let some = ids.prefix(5_000)
            saves.ours.append(
                try seconds {
                    for id in some {
                        try collection.save(try Document(id: id, json: sampleText(round)))
                    }
                }
            )
            saves.theirs.append(
                seconds {
                    for id in some {
                        raw.run("BEGIN IMMEDIATE")
                        sequence += 1
                        raw.update(id, sequence, Array(sampleText(round).utf8))
                        raw.run("COMMIT")
                    }
                }
            )
        }
        try database.close()
        let (got, saved) = (Double(ids.count), 5_000.0)
        return [
            .ratio(
                "get by ID, one property read",
                got / gets.ours.median,
                of: got / gets.theirs.median,
                unit: "/s",
                floor: 0.4
            ),
            .ratio(
                "one save per transaction",
                saved / saves.ours.median,
                of: saved / saves.theirs.median,
                unit: "/s",
                floor: 0.5
            ),
        ]
    }
}
