import Foundation
import Loveseat

/// The rows that compare one query with one statement.
struct Table {
    let database: Database
    let raw: RawTable
    let rounds: Int

    func fill(_ texts: [String]) throws {
        let collection = try database.defaultCollection()
        try database.write { transaction in
            for (number, text) in texts.enumerated() {
                try transaction.save(try Document(id: Places.id(number), json: text), in: collection)
            }
        }
        try raw.fill(texts.count) { (Places.id($0), texts[$0]) }
    }

    func ask(_ question: Question) throws {
        let query = try database.createQuery(question.query)
        let statement = try raw.statement(question.sql)
        var (ours, theirs): ([Double], [Double]) = ([], [])
        // The first round warms up.
        for round in 0...rounds {
            var counts = (ours: 0, theirs: 0)
            let mine = try processorTime {
                for time in 0..<question.times { counts.ours += try rows(of: query, question, time) }
            }
            let raw = processorTime {
                for time in 0..<question.times {
                    if question.times > 1 { statement.bind(1, question.key(time)) }
                    counts.theirs += statement.rows()
                }
            }
            guard counts.ours == counts.theirs else { throw Difference(work: question.work, counts: counts) }
            if round > 0 {
                ours.append(mine / Double(question.times))
                theirs.append(raw / Double(question.times))
            }
        }
        printRow(question.work, ours.median, theirs.median, floor: question.floor, aim: question.aim)
    }

    private func rows(of query: Query, _ question: Question, _ time: Int) throws -> Int {
        var query = query
        if question.times > 1 {
            if question.query.contains("$key") {
                query.parameters["key"] = JSONValue.string(question.key(time))
            }
            return try query.execute().count { !question.readsColumn || $0[0] != nil }
        }
        var count = 0
        try database.read { transaction in
            try transaction.forEachRow(of: query) { row in
                count += !question.readsColumn || row[0] != nil ? 1 : 0
                return true
            }
        }
        return count
    }

    /// Makes the indexes that later rows use, and measures the first.
    func makeIndexes() throws {
        let collection = try database.defaultCollection()
        var (ours, theirs): ([Double], [Double]) = ([], [])
        for _ in 0..<rounds {
            try collection.deleteIndex(forName: "name")
            ours.append(
                try processorTime {
                    try collection.createIndex(ValueIndexConfiguration(["name"]), withName: "name")
                }
            )
            try raw.run("DROP INDEX IF EXISTS name")
            theirs.append(try processorTime { try raw.run("CREATE INDEX name ON docs (walk(body, 'name'))") })
        }
        printRow("making a value index", ours.median, theirs.median, floor: 1.5, aim: 1)
        for property in ["age", "score"] {
            try collection.createIndex(ValueIndexConfiguration([property]), withName: property)
            try raw.run("CREATE INDEX \(property) ON docs (walk(body, '\(property)'))")
        }
        try collection.createIndex(ArrayIndexConfiguration(path: "tags"), withName: "tags")
        try collection.createIndex(FullTextIndexConfiguration(["text"]), withName: "words")
        try raw.run(
            """
            CREATE TABLE tags (row INTEGER, i INTEGER, value TEXT, PRIMARY KEY (row, i)) WITHOUT ROWID;
            INSERT INTO tags SELECT row, key, value FROM docs, json_each(walk(body, 'tags'));
            CREATE INDEX by_tag ON tags (value);
            CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'unicode61');
            INSERT INTO words (rowid, text) SELECT row, walk(body, 'text') FROM docs;
            """
        )
    }

    /// Microseconds that creating a query costs, the plain one and one with everything.
    func compile() throws {
        let texts = [
            "a simple query": "SELECT META().id FROM _ WHERE age = 42",
            "one with join, GROUP BY, HAVING and ORDER BY": """
            SELECT a.city, COUNT(*) AS n FROM _ a JOIN _ b ON META(b).id = a.ref WHERE a.age > 42
            GROUP BY a.city HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 10
            """,
        ]
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
            var times: [Double] = []
            for _ in 0...rounds {
                times.append(
                    try processorTime { for _ in 0..<1_000 { _ = try database.createQuery(text) } } / 1_000
                )
            }
            print(
                "| compiling \(name) | \(times.dropFirst().map { $0 }.median.asTime) | | | 165 µs | 55 µs | |"
            )
        }
    }
}

/// Both sides have to find the same rows.
struct Difference: Error, CustomStringConvertible {
    let work: String
    let counts: (ours: Int, theirs: Int)
    var description: String { "\(work): \(counts.ours) rows, and \(counts.theirs) of raw SQLite" }
}
