/// What is asked of both sides, and how many times as much processor time Loveseat may need.
struct Question: Sendable {
    let work: String
    let query: String
    let sql: String
    let floor: Double
    let aim: Double
    /// How often it is asked, with another key each time: `$key` and `?1`.
    var times = 1
    var key: @Sendable (Int) -> String = { _ in "" }
    /// Whether the first column of each row is read.
    var readsColumn = true

    static let withoutIndexes = [
        Question(
            work: "unindexed filter, 1 % of the rows",
            query: "SELECT META().id FROM _ WHERE age = 42",
            sql: "SELECT doc_id FROM docs WHERE walk(body, 'age') = 42 AND flags & 1 = 0",
            floor: 1.5,
            aim: 1
        ),
        Question(
            work: "filter on a nested property",
            query: "SELECT META().id FROM _ WHERE address.zip = '12345'",
            sql: "SELECT doc_id FROM docs WHERE walk(body, 'address.zip') = '12345' AND flags & 1 = 0",
            floor: 1.5,
            aim: 1
        ),
        Question(
            work: "three properties of all rows",
            query: "SELECT name, age, city FROM _",
            sql:
                "SELECT walk(body, 'name'), walk(body, 'age'), walk(body, 'city') FROM docs WHERE flags & 1 = 0",
            floor: 2,
            aim: 1.2
        ),
        Question(
            work: "`SELECT *` of all rows, bodies not looked into",
            query: "SELECT * FROM _",
            sql: "SELECT body FROM docs WHERE flags & 1 = 0",
            floor: 2,
            aim: 1.3,
            readsColumn: false
        ),
        Question(
            work: "GROUP BY with COUNT and AVG",
            query: "SELECT city, COUNT(*), AVG(score) FROM _ GROUP BY city",
            sql: """
                SELECT walk(body, 'city'), COUNT(*), AVG(walk(body, 'score')) FROM docs WHERE flags & 1 = 0
                GROUP BY walk(body, 'city')
                """,
            floor: 1.3,
            aim: 1
        ),
        Question(
            work: "`ANY … = x`",
            query: "SELECT META().id FROM _ WHERE ANY t IN tags SATISFIES t = 'tag007' END",
            sql: """
                SELECT doc_id FROM docs WHERE flags & 1 = 0
                AND EXISTS (SELECT 1 FROM json_each(walk(body, 'tags')) WHERE value = 'tag007')
                """,
            floor: 0.8,
            aim: 0.5
        ),
    ]

    static func withIndexes(_ count: Int) -> [Question] {
        [
            Question(
                work: "indexed point, one row read",
                query: "SELECT META().id, age FROM _ WHERE name = $key",
                sql:
                    "SELECT doc_id, walk(body, 'age') FROM docs WHERE walk(body, 'name') = ?1 AND flags & 1 = 0",
                floor: 3.5,
                aim: 2,
                times: 1_000,
                key: { "name " + Places.id(($0 &* 7_919) % count).dropFirst(3) }
            ),
            Question(
                work: "indexed range of 10 %, IDs only",
                query: "SELECT META().id FROM _ WHERE score BETWEEN 100 AND 199",
                sql:
                    "SELECT doc_id FROM docs WHERE walk(body, 'score') BETWEEN 100 AND 199 AND flags & 1 = 0",
                floor: 1.5,
                aim: 1.1
            ),
            Question(
                work: "ORDER BY with an index, LIMIT 20",
                query: "SELECT META().id FROM _ ORDER BY score LIMIT 20",
                sql: "SELECT doc_id FROM docs WHERE flags & 1 = 0 ORDER BY walk(body, 'score') LIMIT 20",
                floor: 3,
                aim: 1.5,
                times: 1_000
            ),
            Question(
                work: "join on the ID",
                query: "SELECT META(a).id, b.name FROM _ a JOIN _ b ON META(b).id = a.ref WHERE a.age = 42",
                sql: """
                    SELECT a.doc_id, walk(b.body, 'name') FROM docs a JOIN docs b ON b.doc_id = walk(a.body, 'ref')
                    WHERE walk(a.body, 'age') = 42 AND a.flags & 1 = 0 AND b.flags & 1 = 0
                    """,
                floor: 1.5,
                aim: 1.1
            ),
            Question(
                work: "array index",
                query: "SELECT META(d).id FROM _ d UNNEST d.tags t WHERE t = 'tag007'",
                sql: """
                    SELECT docs.doc_id FROM tags JOIN docs ON docs.row = tags.row
                    WHERE tags.value = 'tag007' AND docs.flags & 1 = 0
                    """,
                floor: 1.5,
                aim: 1.1
            ),
            Question(
                work: "full text, one word",
                query: "SELECT META().id FROM _ WHERE MATCH(words, 'kesiri')",
                sql: """
                    SELECT docs.doc_id FROM words JOIN docs ON docs.row = words.rowid
                    WHERE words MATCH 'kesiri' AND docs.flags & 1 = 0
                    """,
                floor: 2,
                aim: 1.3
            ),
        ]
    }
}
