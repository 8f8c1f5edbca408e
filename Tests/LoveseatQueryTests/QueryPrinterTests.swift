import LoveseatModel
import LoveseatQuery
import LoveseatTesting
import LoveseatText
import Testing

/// Writing trees as text.
struct QueryPrinterTests {
    /// The text of the query whose only result is an expression, without what every such query has.
    private func printed(_ expression: QueryExpression) -> String {
        var query = SelectQuery(from: .init(name: "x"))
        query.results = [.init(expression)]
        return String(query.text.dropFirst("SELECT ".count).dropLast(" FROM x".count))
    }

    private func expectSame(_ expression: QueryExpression, at location: SourceLocation = #_sourceLocation) {
        let text = printed(expression)
        let parsed = try? QueryParser.parseExpression(text)
        #expect(parsed == expression, "\(text)", sourceLocation: location)
    }

    @Test func `every golden query is written as text of the same tree`() throws {
        var asked = 0
        for question in try GoldenCorpus.questions() {
            guard let text = question["query"]?.string, let tree = try? QueryParser.parse(text) else {
                continue
            }
            asked += 1
            let written = tree.text
            let parsed = try? QueryParser.parse(written)
            #expect(parsed == tree, "\(question.id): \(written)")
            #expect(parsed?.text == written)
        }
        #expect(asked >= 1_644)
    }

    @Test func `random trees are written as text of the same tree`() {
        var random = RandomQuery(generator: SeededGenerator(seed: 15))
        for _ in 0..<1_000 {
            let query = random.query(4)
            let parsed = try? QueryParser.parse(query.text)
            #expect(parsed == query, "\(query.text)")
        }
    }

    /// Names that occur as collections, arrays, aliases, and properties at once.
    @Test(.timeLimit(.minutes(1))) func `random trees are translated or refused`() throws {
        let names = ["a", "b c", "count", "x.y", "v$1", "_"]
        let catalog = QueryCatalog(
            databaseName: "a",
            collections: names.compactMap { CollectionName(name: $0) }.map { name in
                QueryCollection(
                    name: name,
                    table: name.fullName,
                    fullTextIndexes: [
                        FullTextIndexDefinition(name: "a", expressions: "a, b", table: "words")
                    ],
                    arrayIndexes: [
                        ArrayIndexDefinition(name: "ar", path: "a", table: "items"),
                        ArrayIndexDefinition(name: "br", path: "a[].a", table: "more"),
                    ]
                )
            }
        )
        var random = RandomQuery(generator: SeededGenerator(seed: 16))
        var translated = 0
        for round in 0..<6_000 {
            var query = random.query(round % 4)
            // Most random sources do not exist.
            query.source = .init(
                name: random.generator.pick(["a", "_", "count"]),
                alias: random.generator.pick([nil, "a", "x"])
            )
            for place in query.joins.indices {
                let alias = random.generator.pick([nil, "a", "b", "count"])
                if random.generator.chance(0.8) {
                    let path = (0..<random.generator.int(1...3)).map { _ in
                        PathStep.key(random.generator.pick(["a", "b", "x"]))
                    }
                    query.joins[place] = .unnest(QueryExpression(.property(path)), alias: alias)
                } else {
                    query.joins[place] = .collection(.cross, .init(name: "a", alias: alias), on: nil)
                }
            }
            if random.generator.chance(0.7) {
                (query.condition, query.having, query.limit, query.offset) = (nil, nil, nil, nil)
            }
            if random.generator.chance(0.7) { (query.grouping, query.order) = ([], []) }
            if (try? QueryCompiler.compile(query.text, catalog: catalog)) != nil { translated += 1 }
        }
        #expect(translated > 100, "\(translated)")
    }

    @Test func `an alias that is used very often is refused, and not translated for ever`() throws {
        let catalog = QueryCatalog(
            databaseName: "a",
            collections: [QueryCollection(name: .default, table: "t", fullTextIndexes: [], arrayIndexes: [])]
        )
        let many = Array(repeating: "x = 1", count: 2_000).joined(separator: " AND ")
        let terms = (0..<2_000).map { "p\($0) = 1" }.joined(separator: " AND ")
        let repeated = #expect(throws: QueryError.self) {
            try QueryCompiler.compile("SELECT (\(terms)) AS x FROM _ WHERE \(many)", catalog: catalog)
        }
        #expect(repeated?.message.contains("too large") == true)
    }

    @Test(arguments: [
        "a + b * c - (d - e)", "(a + b) * c", "a - (b + c)", "-(a)", "-(-5)", "-5", "a - -5", "NOT NOT a",
        "NOT (a OR b)", "(NOT a) = b", "(a AND b) AND c", "a AND (b OR c)", "a = (b = c)", "a = b = c",
        "(a IS NULL) = b", "a IS (NULL)", "a IS NOT (MISSING)", "a IS NOT NULL", "a IS (NULL + 1)", "a IS b",
        "a NOT IN ()", "(a LIKE b) LIKE c", "a BETWEEN b AND c + 1", "(a = b COLLATE NOCASE) AND c",
        "(a COLLATE UNICODE:sv) COLLATE NOCASE", "a COLLATE (UNICODE:`zh-Hant` NOUNICODE NOCASE NODIAC)",
        "(5).a", "('x').a", "$p.a[0]", "[1, 'a'].b", "META().id", "META(`a.b`).id.c", "META().id[-1].c",
        "(a || b).c",
        "((a || b).c).d", "CASE WHEN a THEN b END", "CASE a WHEN b THEN c ELSE d END",
        "ANY v IN a SATISFIES v > 1 END", "ANY AND EVERY v IN a.b SATISFIES v.c END", "{'it''s': [], '': {}}",
        "EXISTS (SELECT DISTINCT a AS b FROM s.x AS y LEFT JOIN z ON y.a = z.b CROSS JOIN w UNNEST y.c AS d)",
        "MATCH(h.`full text`, 'a b')", "RANK(ft)", "COUNT(*)", "h.*", "5.0", "1e+300", "a || (b || c)",
        "a < b << c", "+(a)",
    ])
    func `text has the parentheses that it needs, and no others`(_ text: String) throws {
        #expect(printed(try QueryParser.parseExpression(text)) == text)
    }

    @Test(arguments: [
        "select", "ALL", "Some", "exists", "", "`", "``a`", "a.b", "a b", "é", "1a", "$a", "a$1", "_", "\0",
        "'", "\"", "`\u{301}", "x\n", "--", "META", "count",
    ])
    func `odd names stay what they are`(_ name: String) {
        expectSame(.init(.property([.key(name), .key(name), .index(-1)])))
        expectSame(.init(.parameter(name)))
        expectSame(.init(.meta(source: name, name: name)))
        expectSame(.init(.wildcard(source: name)))
        expectSame(.init(.match(.init(source: name, name: name), .init(.literal(.string(name))))))
        expectSame(.init(.object([.init(key: name, value: .init(.literal(.string(name))))])))
        let variable = QueryExpression(.property([.key(name)]))
        expectSame(
            .init(.quantified(.every, variable: name, collection: variable, condition: variable))
        )
        expectSame(
            .init(.collated(variable, TextCollation(isUnicode: true, ignoresAccents: true, locale: name)))
        )
        var query = SelectQuery(from: .init(scope: name, name: name, alias: name))
        query.results = [.init(variable, alias: name), .init(variable, alias: name)]
        query.joins = [.collection(.left, .init(name: name), on: variable), .unnest(variable, alias: name)]
        query.order = [.init(variable, isDescending: true), .init(variable)]
        let parsed = try? QueryParser.parse(query.text)
        #expect(parsed == query, "\(query.text)")
    }

    @Test func `a delimiter with a combining mark does not end a text or a name`() {
        #expect(
            printed(.init(.literal(.string("a'\u{301}b")))).unicodeScalars.elementsEqual(
                "'a''\u{301}b'".unicodeScalars
            )
        )
        #expect(
            printed(.init(.property([.key("`\u{301}")]))).unicodeScalars.elementsEqual(
                "```\u{301}`".unicodeScalars
            )
        )
    }

    @Test(
        arguments: [
            .integer(.min), .integer(.max), .integer(-1), .double(-0.0), .double(.leastNonzeroMagnitude),
            .double(.greatestFiniteMagnitude),
            .double(1e16), .double(0.1), .missing, .null, .bool(true), .string("it's \\ \"\n"),
        ] as [QueryValue]
    )
    func `literals keep their values`(_ value: QueryValue) {
        let literal = QueryExpression(.literal(value))
        expectSame(literal)
        expectSame(.init(.binary(.subtract, literal, literal)))
        expectSame(.init(.binary(.is, literal, literal)))
        expectSame(.init(.concatenation([literal, literal])))
        expectSame(.init(.unary(.negate, literal)))
        expectSame(.init(.nested(literal, [.key("a"), .index(1)])))
    }

    @Test func `a JSON value becomes a literal of its items`() throws {
        let value: JSONValue = [
            "b": [1, -2.5, "it's", true, nil], "a": .number(.unsigned(.max)), "c": .number(.text("1e2")),
        ]
        let literal = try QueryExpression(value)
        let text = "{'a': 1.8446744073709552e+19, 'b': [1, -2.5, 'it''s', TRUE, NULL], 'c': 100.0}"
        #expect(printed(literal) == text)
        expectSame(literal)
        #expect(printed(.init(.literal(QueryValue(value)))) == text)
        #expect(printed(.init(.literal(.unsigned(.max)))) == "1.8446744073709552e+19")
        #expect(throws: QueryError.self) { try QueryExpression(.number(.double(.nan))) }
        #expect(throws: QueryError.self) { try QueryExpression(.number(.text("1e999"))) }
        var deep: JSONValue = 1
        for _ in 0..<300 { deep = [deep] }
        #expect(throws: QueryError.self) { try QueryExpression(deep) }
    }
}
