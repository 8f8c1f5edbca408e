import Foundation
import LoveseatCore
import LoveseatModel
import LoveseatStorage
import LoveseatTesting
import Testing

/// What `export` writes, `import` reads: of databases that were made at random through every API and wire.
struct TransferTests {
    private let folder: CommandLineFolder

    init() throws { folder = try CommandLineFolder() }

    /// Exports a database, imports that, and exports the copy.
    private func roundTrip(_ name: String, _ copy: String, _ options: [String]) throws {
        let first = try folder.run(["export", name] + options)
        #expect(first.status == 0, "\(first.errors)")
        try folder.write(first.output, to: "\(copy).jsonl")
        let imported = try folder.run("import", copy, "\(copy).jsonl")
        #expect(imported.status == 0, "\(imported.errors)")
        let again = try folder.run(["export", copy] + options)
        #expect(again.output == first.output)
        #expect(try folder.run("check", copy).status == 0)
        // Once more changes nothing.
        let repeated = try folder.run("import", copy, "\(copy).jsonl", "--json")
        #expect(repeated.status == 0, "\(repeated.errors)")
        let counts = try JSONValue(parsing: repeated.output)
        #expect(counts["documents"] == counts["unchanged"] ?? 0)
        #expect(try folder.run(["export", copy] + options).output == first.output)
    }

    @Test(arguments: PropertySeeds.of("TRANSFER", 12))
    func `a random database is exported, imported and exported to the same bytes, with and without revisions`(
        _ seed: UInt64
    ) throws {
        var maker = RandomDatabase(seed: seed)
        try maker.make(in: folder.path)
        try roundTrip("db", "plain", [])
        try roundTrip("db", "whole", ["--revisions"])
        // The conflicts and indexes are there as well.
        #expect(try folder.run("conflicts", "whole").output == folder.run("conflicts", "db").output)
        for collection in ["_default", "travel.trips"] {
            let list = try folder.run("index", "list", "db", "-c", collection).output
            #expect(try folder.run("index", "list", "plain", "-c", collection).output == list)
        }
    }

    @Test func `a copy with its revisions goes on syncing with the original's peers without conflicts`()
        throws
    {
        for id in ["a", "b", "c", "gone"] { try folder.run("put", "db", id, #"{"n":1}"#) }
        try folder.run("create", "peer")
        #expect(try folder.run("push", "db", "--local-db", "peer").status == 0)
        try folder.run("put", "db", "a", #"{"n":2}"#)
        try folder.run("rm", "db", "gone")
        try folder.run("put", "peer", "b", #"{"n":3}"#)
        #expect(try folder.run("sync", "db", "--local-db", "peer").status == 0)
        let export = try folder.run("export", "db", "--revisions")
        try folder.write(export.output, to: "all.jsonl")
        #expect(try folder.run("import", "copy", "all.jsonl").status == 0)
        let idle = try folder.run("sync", "copy", "--local-db", "peer", "--json").output
        #expect(idle.contains("\"pushed\":0,"), "\(idle)")
        #expect(idle.contains("\"pulled\":0,"), "\(idle)")
        try folder.run("put", "copy", "a", #"{"n":4}"#)
        try folder.run("put", "peer", "c", #"{"n":5}"#)
        let synced = try folder.run("sync", "copy", "--local-db", "peer", "--json")
        #expect(synced.status == 0, "\(synced.errors)")
        #expect(synced.output.contains("\"pulled\":1,"), "\(synced.output)")
        for name in ["copy", "peer"] {
            #expect(try folder.run("conflicts", name).lines.isEmpty)
            #expect(try folder.run("get", name, "a", "--raw").lines == [#"{"n":4}"#])
            #expect(try folder.run("get", name, "c", "--raw").lines == [#"{"n":5}"#])
            #expect(try folder.run("get", name, "gone").status == 66)
        }
        #expect(try folder.run("export", "copy").output == folder.run("export", "peer").output)
    }

    @Test func `names that look alike stay two in exports and imports`() throws {
        let spellings = [
            "caf\u{E9}", "cafe\u{301}", "\u{4B}", "\u{212A}", "\u{1E9B}\u{323}", "\u{1E9B}\u{323}\u{323}",
        ]
        let database = try Database(name: "db", config: DatabaseConfiguration(directory: folder.path))
        let collection = try database.defaultCollection()
        let revision = try #require(RevisionID("1-aa"))
        var (body, table): (JSONObject, JSONObject) = ([:], [:])
        for (number, name) in spellings.enumerated() {
            body[name] = JSONValue(number)
            let blob = try database.saveBlob(Array("content \(number)".utf8), contentType: "text/plain")
            table[name] = [
                "content_type": "text/plain", "digest": .string(blob.digest.text),
                "length": JSONValue(Int(blob.length ?? 0)), "revpos": 1, "stub": true,
            ]
        }
        body["_attachments"] = .object(table)
        let text = JSONText(canonical: .object(body))
        for (number, id) in spellings.enumerated() {
            try collection.save(Document(id: "app " + id, ["n": JSONValue(number)]))
            _ = try collection.openStore().write {
                try $0.insertBranch([revision], of: id, in: collection.handle, body: text, isDeleted: false)
            }
        }
        try database.close()
        try roundTrip("db", "plain", [])
        try roundTrip("db", "whole", ["--revisions"])
        // Lines that somebody else wrote.
        let lines = spellings.enumerated().map { #"{"_id":"\#($1)","\#($1)":\#($0),"\#(spellings[0])x":1}"# }
        try folder.write(lines.joined(separator: "\n"), to: "lines.jsonl")
        #expect(try folder.run("import", "lines", "lines.jsonl").status == 0)
        for name in ["plain", "whole", "lines"] {
            for (number, id) in spellings.enumerated() {
                let json = try JSONValue(parsing: folder.run("get", name, id, "--raw").output)
                #expect(json.object?[id]?.int == number, "\(name): \(number)")
            }
        }
        for name in ["plain", "whole"] {
            let copy = try Database(name: name, config: DatabaseConfiguration(directory: folder.path))
            let copied = try copy.defaultCollection()
            #expect(copied.count == UInt64(2 * spellings.count))
            for id in spellings {
                let found = try copied.openStore().readRows { try $0.record(id, in: copied.handle) }
                #expect(found?.body.saysTheSame(as: text) == true, "\(name)")
            }
            try copy.close()
        }
    }

    @Test func `what a plain export leaves out is said, and damaged revisions are refused`() throws {
        try folder.run("put", "db", "a", #"{"n":1}"#)
        try folder.run("put", "db", "b", #"{"n":1}"#)
        try folder.run("rm", "db", "b")
        let plain = try folder.run("export", "db")
        #expect(plain.errors.contains("1 deleted document"))
        #expect(plain.errors.contains("--revisions"))
        let whole = try folder.run("export", "db", "--revisions")
        #expect(whole.errors.isEmpty)
        #expect(whole.lines.count == 2)
        try folder.write(
            whole.output.replacingOccurrences(of: #""tree":"A"#, with: #""tree":"BB"#),
            to: "damaged"
        )
        let refused = try folder.run("import", "copy", "damaged")
        #expect(refused.status == 65, "\(refused.errors)")
        // The same revision with other content is not taken.
        let other = whole.output.replacingOccurrences(of: #""n":1"#, with: #""n":2"#)
        try folder.write(other, to: "other")
        #expect(try folder.run("import", "db", "other").status != 0)
        #expect(try folder.run("get", "db", "a", "--raw").lines == [#"{"n":1}"#])
    }
}

/// Makes databases with whatever one can hold.
private struct RandomDatabase {
    private var random: SeededGenerator
    private var number = 0

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func make(in directory: String) throws {
        let database = try Database(name: "db", config: DatabaseConfiguration(directory: directory))
        let names = ["_default._default", "travel.trips", "other", "empty.one"]
        for path in names {
            let name = try #require(CollectionName(path: path))
            let collection = try database.createCollection(name: name.name, scope: name.scope)
            guard path != "empty.one" || Bool.random(using: &random) else { continue }
            for _ in 0..<Int.random(in: 0..<25, using: &random) { try act(collection) }
            if Bool.random(using: &random) { try index(collection) }
        }
        try database.close()
    }

    private mutating func pick<T>(_ values: [T]) -> T {
        values[Int.random(in: 0..<values.count, using: &random)]
    }

    private mutating func act(_ collection: LoveseatCore.Collection) throws {
        number += 1
        switch Int.random(in: 0..<10, using: &random) {
        case 0...2: try collection.save(Document(id: appID(), try properties(in: collection.database)))
        case 3:
            let id = appID()
            try collection.save(Document(id: id, try properties(in: collection.database)))
            try collection.save(Document(id: id, ["again": JSONValue(number)]))
            if Bool.random(using: &random) { try collection.delete(id: id) }
        case 4:
            let id = appID()
            try collection.save(Document(id: id, ["expires": true]))
            try collection.setDocumentExpiration(
                id: id,
                expiration: Date(timeIntervalSince1970: 4_000_000_000 + Double(number) / 1_000)
            )
        case 5: try collection.saveConflict("conflict \(number)")
        case 6, 7: try branch(collection)
        default: try receive(collection)
        }
    }

    private mutating func appID() -> String {
        pick([
            "doc \(number)", "é\(number)", "e\u{301}\(number)", "\u{202E}\(number)", "\"\\\(number)",
            "\(number)/日本",
        ])
    }

    /// An ID that only peers may give.
    private mutating func peerID() -> String {
        pick([
            appID(), "_design/app\(number)", "_odd\(number)", "a\u{0}b\(number)", "a\u{7F}\n\(number)",
            String(repeating: "y", count: 250) + "\(number)",
        ])
    }

    private mutating func value(_ depth: Int = 0) -> JSONValue {
        switch Int.random(in: 0..<(depth < 3 ? 9 : 7), using: &random) {
        case 0: nil
        case 1: .bool(Bool.random(using: &random))
        case 2: JSONValue(Int.random(in: .min ... .max, using: &random))
        case 3:
            (try? JSONValue(parsing: pick(["1.50", "-0.0", "1E5", "123456789012345678901234567890", "0.1"])))
                ?? nil
        case 4: .string(pick(["", "\u{0}\u{1F}\u{7F}", "\u{2028}é", "\"\\/", "😀"]))
        case 5: JSONValue(Double.random(in: -1e9...1e9, using: &random))
        case 6: .string("\(number)")
        case 7: .array([value(depth + 1), value(depth + 1)])
        default: ["k": value(depth + 1), "é": value(depth + 1), "e\u{301}": value(depth + 1)]
        }
    }

    private mutating func properties(in database: Database) throws -> JSONObject {
        var object: JSONObject = ["n": JSONValue(number), "value": value(), "\u{0}": value()]
        guard Int.random(in: 0..<3, using: &random) == 0 else { return object }
        object["blob"] = try database.saveBlob(content(), contentType: "image/png").json
        object["list"] = [try database.saveBlob(content()).json]
        return object
    }

    private mutating func content() -> [UInt8] {
        [UInt8](repeating: UInt8(Int.random(in: 0..<5, using: &random)), count: pick([0, 1, 1_000, 300_000]))
    }

    /// What clients of CouchDB's wire do: branches, attachments of any name, names that begin with _.
    private mutating func branch(_ collection: LoveseatCore.Collection) throws {
        let id = peerID()
        let blob = try collection.database.saveBlob(content())
        let attachment: JSONValue = [
            "content_type": "a/b", "digest": .string(blob.digest.text),
            "length": JSONValue(Int(blob.length ?? 0)),
            "revpos": 1, "stub": true,
        ]
        let bodies: [JSONValue] = [
            [
                "n": JSONValue(number),
                "_attachments": .object([pick(["a b/c", "é", "_x", "\"", "\u{7F}"]): attachment]),
            ],
            ["_replication_id": "x", "_replication_stats": ["n": 1], "v": value()], [:],
        ]
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let line = Int.random(in: 0..<3, using: &random)
            let texts = ["1-root\(number)", "2-x\(line)", "3-leaf\(line)"]
            let history = texts.prefix(Int.random(in: 1...3, using: &random)).compactMap { RevisionID($0) }
            let (body, isDeleted) = (pick(bodies), Int.random(in: 0..<4, using: &random) == 0)
            do {
                _ = try collection.openStore().write { transaction in
                    try transaction.insertBranch(
                        history.reversed(),
                        of: id,
                        in: collection.handle,
                        body: isDeleted ? .emptyObject : JSONText(canonical: body),
                        isDeleted: isDeleted
                    )
                }
            } catch is OtherContent {
                // The same revision came before with another content.
            }
        }
    }

    /// What peers of Couchbase's protocol send: text that is not canonical, and numbers that `save` refuses.
    private mutating func receive(_ collection: LoveseatCore.Collection) throws {
        let text = pick([
            "{ \"z\" : 1.50,\n \"a\":[ ] }", "{\"big\":1e400,\"b\":-0}", "{\"\\u0061\":\"\\u00e9\"}", "{}",
            "{\"a\":1}",
        ])
        let id = peerID()
        for generation in 1...UInt32.random(in: 1...2, using: &random) {
            var incoming = IncomingRecord(
                documentID: id,
                history: (1...generation).reversed().map {
                    RevisionID(generation: $0, digest: [UInt8($0), 7])
                },
                isDeleted: generation == 2 && Bool.random(using: &random),
                body: try JSONText(text),
                sender: pick([.loveseat, .client, .hub])
            )
            incoming.remote = try collection.openStore().write {
                try $0.checkpointTables.remoteNumber("ws://peer/db")
            }
            let record = incoming
            _ = try collection.openStore().write { try $0.insert(record, in: collection.handle) }
        }
    }

    private mutating func index(_ collection: LoveseatCore.Collection) throws {
        try collection.createIndex(
            ValueIndexConfiguration(["n", "LOWER(city)"], where: "n > 1"),
            withName: "by n é"
        )
        try collection.createIndex(
            FullTextIndexConfiguration(["value"], ignoreAccents: true, language: "en"),
            withName: "words"
        )
        try collection.createIndex(
            ArrayIndexConfiguration(path: "list", expressions: ["n"]),
            withName: "list"
        )
    }
}
