import Foundation
import GRDB
import LoveseatQuery
import LoveseatStorage
import LoveseatText
import Testing

/// The tokenizer `loveseat`, `ls_rank` and `ls_match`, on a connection of SQLite alone.
struct FullTextExtensionTests {
    private let queue: DatabaseQueue

    init() throws {
        queue = try DatabaseQueue()
        try queue.write { db in
            let connection = try #require(db.sqliteConnection)
            #expect(QuerySQLFunctions.register(on: connection) == 0)
        }
    }

    private func index(_ options: String, _ rows: [(String, String)]) throws {
        try queue.write { db in
            try db.execute(
                sql: "CREATE VIRTUAL TABLE f USING fts5(c0, c1, tokenize = 'loveseat\(options)')"
            )
            for (one, other) in rows {
                try db.execute(sql: "INSERT INTO f (c0, c1) VALUES (?, ?)", arguments: [one, other])
            }
        }
    }

    private func found(_ query: String) throws -> [Int] {
        try queue.read {
            try Int.fetchAll(
                $0,
                sql: "SELECT rowid FROM f WHERE f MATCH ? ORDER BY rowid",
                arguments: [query]
            )
        }
    }

    private func match(_ text: (any DatabaseValueConvertible)?, _ options: String) throws -> String? {
        try queue.read {
            try String.fetchOne($0, sql: "SELECT ls_match(?, ?)", arguments: [text, options])
        }
    }

    @Test func `words are found by their stems, except by the beginning of one`() throws {
        try index(" stem en", [("running dogs", ""), ("he runs", "dogs"), ("ruin", "cat")])
        #expect(try found("run") == [1, 2])
        #expect(try found("runs AND dog") == [1, 2])
        #expect(try found("ru*") == [1, 2, 3])
        // A prefix is not stemmed: no stem begins like this.
        #expect(try found("running*").isEmpty)
        #expect(try found("c1 : dog") == [2])
    }

    @Test func `the options of the tokenizer reach it`() throws {
        try index(" words ''the of'' accents 0", [("The café of Ana", "")])
        #expect(try found("cafe") == [1])
        // The index has no stop word.
        #expect(try found("\"cafe ana\"") == [1])
        #expect(try found("cafe AND ana") == [1])
    }

    @Test func `without options words are kept with their accents`() throws {
        try index("", [("café", ""), ("cafe", "")])
        #expect(try found("cafe") == [2])
        #expect(try found("café") == [1])
    }

    @Test func `what is found is where it is in the text`() throws {
        try index(" accents 0", [("Ein Café, bitte", "")])
        let marked = try queue.read {
            try String.fetchOne($0, sql: "SELECT highlight(f, 0, '<', '>') FROM f WHERE f MATCH 'cafe'")
        }
        #expect(marked == "Ein <Café>, bitte")
    }

    @Test func `the rank is the sum of a row's part of each word in each column`() throws {
        try index("", [("a a b", "a"), ("a", "b"), ("b", "b"), ("c", "c")])
        let ranks = try queue.read { db in
            try Double.fetchAll(db, sql: "SELECT ls_rank(f) FROM f WHERE f MATCH 'a OR b' ORDER BY rowid")
        }
        // "a" is 3 times in the first column and once in the second; "b" twice in each.
        let (half, third) = (1.0 / 2, 1.0 / 3)
        #expect(ranks == [2.0 / 3 + 1 + half, third + half, half + half])
        // The totals of one query are not those of the next.
        let again = try queue.read { db in
            try Double.fetchAll(db, sql: "SELECT ls_rank(f) FROM f WHERE f MATCH 'c' ORDER BY rowid")
        }
        #expect(again == [2])
    }

    @Test func `a search becomes one of FTS5, with the columns by their places`() throws {
        let options = #"[["title","text"]]"#
        #expect(try match(nil, options) == FullTextQuery.nothing)
        #expect(try match(Data(), options) == FullTextQuery.nothing)
        #expect(try match("", options) == FullTextQuery.nothing)
        for text in ["cat", "cat OR dog", "text:cat", "\"two words\"", "ca*"] {
            let expected = try FullTextQuery.translate(
                text,
                columns: ["title", "text"],
                tokenizer: FullTextTokenizer(options: [])
            )
            #expect(try match(text, options) == expected)
        }
        #expect(try match("text:cat", options)?.contains("c1") == true)
        // Numbers are words.
        #expect(try match(5, options) == match("5", options))
        #expect(try match(1.5, options) == match("1.5", options))
    }

    @Test func `the tokenizer of the index is that of the search`() throws {
        #expect(
            try match("running", #"[["t"],"stem","en"]"#)
                == FullTextQuery.translate(
                    "running",
                    columns: ["t"],
                    tokenizer: FullTextTokenizer(options: ["stem", "en"])
                )
        )
        let stop = #"[["t"],"words","the of"]"#
        #expect(try match("the", stop) == FullTextQuery.nothing)
        #expect(try match("the cat", stop) == match("cat", stop))
    }

    @Test func `a malformed search and damaged options are errors that say so`() {
        for (text, options, message) in [
            ("\"open", #"[["t"]]"#, "malformed MATCH expression"), ("cat", "[", "make it again"),
        ] {
            let error = #expect(throws: DatabaseError.self) { try match(text, options) }
            #expect(error?.message?.contains(message) == true)
        }
    }
}
