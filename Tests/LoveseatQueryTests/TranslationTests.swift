import LoveseatModel
import LoveseatQuery
import Testing

/// What queries become in SQLite's language.
struct TranslationTests {
    static let catalog: QueryCatalog? = {
        guard let hotels = CollectionName(name: "hotels"),
            let airlines = CollectionName(scope: "travel", name: "airlines")
        else { return nil }
        return QueryCatalog(
            databaseName: "db",
            collections: [
                QueryCollection(
                    name: hotels,
                    table: "_default.hotels",
                    fullTextIndexes: [
                        FullTextIndexDefinition(
                            name: "text",
                            expressions: "name, description",
                            language: "en",
                            table: "words text"
                        )
                    ],
                    arrayIndexes: [ArrayIndexDefinition(name: "likes", path: "likes", table: "items likes")]
                ),
                QueryCollection(name: airlines, table: "travel.airlines"),
                QueryCollection(name: .default, table: "_default._default"),
            ]
        )
    }()

    static let snapshots: [(query: String, sql: String)] = [
        (
            #"""
            SELECT * FROM hotels WHERE city = 'Rome' OR stars > 3 OR city = 'Bonn' OR stars = 1 OR meta().id = 'a' OR meta().id = 1
            """#,
            #"""
            SELECT CAST("_default.hotels".body AS BLOB) FROM "_default.hotels" WHERE ((ls_value("_default.hotels".body, '.city') IN ('Rome', 'Bonn')) OR (ls_value("_default.hotels".body, '.stars') > 3) OR (ls_value("_default.hotels".body, '.stars') = 1) OR ("_default.hotels".doc_id = 'a') OR ("_default.hotels".doc_id = ls_text(1))) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT h.city FROM hotels AS h JOIN travel.airlines AS a ON a.city = meta(h).id ORDER BY meta(h).id, h.city
            """#,
            #"""
            SELECT ls_result("h".body, '.city') FROM "_default.hotels" AS "h" JOIN "travel.airlines" AS "a" ON (ls_text(ls_value("a".body, '.city')) = "h".doc_id) AND "a".flags & 1 = 0 WHERE "h".flags & 1 = 0 ORDER BY +"h".doc_id, ls_value("h".body, '.city')
            """#
        ),
        (
            #"""
            SELECT name FROM hotels
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT * FROM hotels
            """#,
            #"""
            SELECT CAST("_default.hotels".body AS BLOB) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT h.* FROM hotels AS h
            """#,
            #"""
            SELECT CAST("h".body AS BLOB) FROM "_default.hotels" AS "h" WHERE "h".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT DISTINCT country FROM hotels ORDER BY country
            """#,
            #"""
            SELECT DISTINCT ls_result("_default.hotels".body, '.country') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0 ORDER BY ls_value("_default.hotels".body, '.country')
            """#
        ),
        (
            #"""
            SELECT meta().id, meta().sequence, meta().expiration, meta().revisionID FROM hotels
            """#,
            #"""
            SELECT "_default.hotels".doc_id, "_default.hotels".sequence, "_default.hotels".expires, "_default.hotels".revision FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT meta() FROM hotels
            """#,
            #"""
            SELECT ls_out(ls_object('id', "_default.hotels".doc_id, 'sequence', "_default.hotels".sequence, 'revisionID', "_default.hotels".revision, 'expiration', "_default.hotels".expires, 'deleted', ls_mark("_default.hotels".flags & 1))) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT meta().id FROM hotels WHERE meta().deleted
            """#,
            #"""
            SELECT "_default.hotels".doc_id FROM "_default.hotels" WHERE ("_default.hotels".flags & 1)
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE meta().id = 'h1'
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE ("_default.hotels".doc_id = 'h1') AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE meta().id = other
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE ("_default.hotels".doc_id = ls_text(ls_value("_default.hotels".body, '.other'))) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE meta().sequence > $last
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (+"_default.hotels".sequence > ?1) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE city = 'Paris' AND price < 100
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.city') = 'Paris') AND (ls_value("_default.hotels".body, '.price') < 100) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE city = $city
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.city') = ?1) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT $city, TYPE($city) FROM hotels WHERE city = $city
            """#,
            #"""
            SELECT ls_out(ls_param(?1)), ls_out(ls_type(ls_param(?1))) FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.city') = ?2) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE city IN ('Paris', 'Oslo', $c)
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.city') IN ('Paris', 'Oslo', ?1)) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE city NOT IN ['Paris']
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.city') NOT IN ('Paris')) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE price BETWEEN 10 AND 20
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.price') BETWEEN 10 AND 20) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE name LIKE 'Gr%'
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.name') LIKE 'Gr%' ESCAPE '\') AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE name LIKE $pattern
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.name') LIKE ?1 ESCAPE '\' AND ls_like(ls_value("_default.hotels".body, '.name'), ?1)) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE name NOT LIKE '%'
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (NOT ls_like(ls_value("_default.hotels".body, '.name'), '%')) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE (name LIKE 'gr%') COLLATE (UNICODE NOCASE)
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE ls_like(ls_value("_default.hotels".body, '.name'), 'gr%', 'ls_unicode_nocase') AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE (name = 'X') COLLATE NOCASE
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.name') COLLATE "NOCASE" = 'X') AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels ORDER BY name COLLATE (UNICODE:sv NODIAC) DESC
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0 ORDER BY ls_value("_default.hotels".body, '.name') COLLATE "ls_unicode_nodiac_sv" DESC
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE stars IS MISSING OR stars IS NULL
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE ((ls_value("_default.hotels".body, '.stars') IS NULL) OR (ls_value("_default.hotels".body, '.stars') = x'')) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE stars IS NOT VALUED
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ifnull(ls_value("_default.hotels".body, '.stars'), x'') = x'') AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE stars IS NOT 5
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.stars') IS NOT 5) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE NOT vacancy
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (NOT ls_value("_default.hotels".body, '.vacancy')) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT price + 1, -price, price / 2 % 3 FROM hotels
            """#,
            #"""
            SELECT ls_out((ls_value("_default.hotels".body, '.price') + 1)), ls_out((- ls_value("_default.hotels".body, '.price'))), ls_out(((ls_value("_default.hotels".body, '.price') / 2) % 3)) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name || ' ' || city AS title FROM hotels
            """#,
            #"""
            SELECT ls_out(ls_concat(ls_kept("_default.hotels".body, '.name'), ' ', ls_kept("_default.hotels".body, '.city'))) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT a = 1 AND b FROM hotels
            """#,
            #"""
            SELECT ls_bool(((ls_value("_default.hotels".body, '.a') = 1) AND ls_value("_default.hotels".body, '.b'))) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT TRUE, NULL, MISSING, 1.5, 'it''s' FROM hotels
            """#,
            #"""
            SELECT ls_out(ls_mark(1)), ls_out(x''), ls_out(NULL), ls_out(1.5), ls_result("_default.hotels".body, '.it''s') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT 'address.street' FROM hotels
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.address.street') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT address.street[0][-1].`a.b` FROM hotels
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.address.street[0][-1].a\.b') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT `x"y'z` FROM hotels
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.x"y''z') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT [1, 'a', NULL], [name, 1], {'k': name}, {'a': 1} FROM hotels
            """#,
            #"""
            SELECT ls_out(x'015b312c2261222c6e756c6c5d'), ls_out(ls_array_of(ls_kept("_default.hotels".body, '.name'), 1)), ls_out(ls_object('k', ls_kept("_default.hotels".body, '.name'))), ls_out(x'027b2261223a317d') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT CASE WHEN price > 100 THEN 'dear' ELSE 'cheap' END FROM hotels
            """#,
            #"""
            SELECT ls_out((CASE WHEN (ls_value("_default.hotels".body, '.price') > 100) THEN 'dear' ELSE 'cheap' END)) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT CASE stars WHEN 5 THEN TRUE END FROM hotels
            """#,
            #"""
            SELECT ls_out((CASE ls_value("_default.hotels".body, '.stars') WHEN 5 THEN ls_mark(1) ELSE x'' END)) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT LOWER(name), ROUND(price, 1), CONTAINS(name, 'x') FROM hotels
            """#,
            #"""
            SELECT ls_out(ls_lower(ls_kept("_default.hotels".body, '.name'))), ls_out(ls_round(ls_kept("_default.hotels".body, '.price'), 1)), ls_bool(ls_contains(ls_kept("_default.hotels".body, '.name'), 'x')) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT IFMISSINGORNULL(price, 0) FROM hotels
            """#,
            #"""
            SELECT ls_out(ls_ifmissingornull(ls_kept("_default.hotels".body, '.price'), 0)) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT GREATEST(a, b), LEAST(a, 1) FROM hotels
            """#,
            #"""
            SELECT ls_out(max(ls_kept("_default.hotels".body, '.a'), ls_kept("_default.hotels".body, '.b'))), ls_out(min(ls_kept("_default.hotels".body, '.a'), 1)) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT COUNT(*), COUNT(price), SUM(price), AVG(price), MIN(name), MAX(name), ARRAY_AGG(name) FROM hotels
            """#,
            #"""
            SELECT count(*), count(ls_value("_default.hotels".body, '.price')), sum(ls_value("_default.hotels".body, '.price')), avg(ls_value("_default.hotels".body, '.price')), ls_out(min(ls_value("_default.hotels".body, '.name'))), ls_out(max(ls_value("_default.hotels".body, '.name'))), ls_out(ls_array_agg(ls_kept("_default.hotels".body, '.name'))) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT city, COUNT(*) AS n FROM hotels GROUP BY city HAVING n > 2 ORDER BY n DESC, city LIMIT 3
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.city'), count(*) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0 GROUP BY ls_value("_default.hotels".body, '.city') HAVING (count(*) > 2) ORDER BY count(*) DESC, ls_value("_default.hotels".body, '.city') LIMIT ls_limit(3)
            """#
        ),
        (
            #"""
            SELECT name FROM hotels LIMIT 10 OFFSET $skip
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0 LIMIT ls_limit(10) OFFSET ls_limit(?1)
            """#
        ),
        (
            #"""
            SELECT name FROM hotels OFFSET 5
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0 LIMIT -1 OFFSET ls_limit(5)
            """#
        ),
        (
            #"""
            SELECT name FROM hotels ORDER BY 1
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0 ORDER BY ls_value("_default.hotels".body, '.name')
            """#
        ),
        (
            #"""
            SELECT name AS n FROM hotels WHERE n = 'x' ORDER BY n
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.name') = 'x') AND "_default.hotels".flags & 1 = 0 ORDER BY ls_value("_default.hotels".body, '.name')
            """#
        ),
        (
            #"""
            SELECT address AS a FROM hotels WHERE a.city = 'x'
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.address') FROM "_default.hotels" WHERE (ls_value("_default.hotels".body, '.address.city') = 'x') AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE ANY t IN tags SATISFIES t = 'wifi' END
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE ls_any("_default.hotels".body, '.tags', 'wifi') AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE ANY r IN reviews SATISFIES r.stars > 4 END
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE EXISTS (SELECT 1 FROM ls_each("_default.hotels".body, '.reviews') AS "r" WHERE (ls_value("r".body, '.stars') > 4)) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE EVERY r IN reviews SATISFIES r.stars > 4 END
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (NOT EXISTS (SELECT 1 FROM ls_each("_default.hotels".body, '.reviews') AS "r" WHERE NOT (ls_value("r".body, '.stars') > 4))) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE ANY AND EVERY r IN reviews SATISFIES r.stars > 4 END
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE (ls_array_count(ls_kept("_default.hotels".body, '.reviews')) > 0 AND NOT EXISTS (SELECT 1 FROM ls_each("_default.hotels".body, '.reviews') AS "r" WHERE NOT (ls_value("r".body, '.stars') > 4))) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT h.name, r.author FROM hotels AS h UNNEST h.reviews AS r WHERE r.stars = 5
            """#,
            #"""
            SELECT ls_result("h".body, '.name'), ls_result("r".body, '.author') FROM "_default.hotels" AS "h" JOIN ls_each("h".body, '.reviews') AS "r" WHERE (ls_value("r".body, '.stars') = 5) AND "h".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT h.name, l FROM hotels AS h UNNEST h.likes AS l
            """#,
            #"""
            SELECT ls_result("h".body, '.name'), ls_result("l".body, '') FROM "_default.hotels" AS "h" JOIN "items likes" AS "l" ON "l".doc = "h".row WHERE "h".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT h.name, u FROM hotels AS h UNNEST h.reviews AS r UNNEST r.useful AS u
            """#,
            #"""
            SELECT ls_result("h".body, '.name'), ls_result("u".body, '') FROM "_default.hotels" AS "h" JOIN ls_each("h".body, '.reviews') AS "r" JOIN ls_each("r".body, '.useful') AS "u" WHERE "h".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT a.name, b.name FROM hotels AS a JOIN travel.airlines AS b ON meta(b).id = a.airline
            """#,
            #"""
            SELECT ls_result("a".body, '.name'), ls_result("b".body, '.name') FROM "_default.hotels" AS "a" JOIN "travel.airlines" AS "b" ON ("b".doc_id = ls_text(ls_value("a".body, '.airline'))) AND "b".flags & 1 = 0 WHERE "a".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT a.name, b.name FROM hotels AS a LEFT JOIN travel.airlines AS b ON b.city = a.city
            """#,
            #"""
            SELECT ls_result("a".body, '.name'), ls_result("b".body, '.name') FROM "_default.hotels" AS "a" LEFT JOIN "travel.airlines" AS "b" ON (ls_value("b".body, '.city') = ls_value("a".body, '.city')) AND "b".flags & 1 = 0 WHERE "a".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT a.name FROM hotels AS a CROSS JOIN hotels AS A2
            """#,
            #"""
            SELECT ls_result("a".body, '.name') FROM "_default.hotels" AS "a" CROSS JOIN "_default.hotels" AS "A2" WHERE "a".flags & 1 = 0 AND "A2".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT airlines.name, travel.airlines.city FROM travel.airlines
            """#,
            #"""
            SELECT ls_result("travel.airlines".body, '.name'), ls_result("travel.airlines".body, '.city') FROM "travel.airlines" WHERE "travel.airlines".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT name FROM hotels WHERE EXISTS (SELECT 1 FROM travel.airlines WHERE name = 'x')
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE EXISTS (SELECT ls_out(1) FROM "travel.airlines" WHERE (ls_value("travel.airlines".body, '.name') = 'x') AND "travel.airlines".flags & 1 = 0) AND "_default.hotels".flags & 1 = 0
            """#
        ),
        (
            #"""
            SELECT meta().id, RANK(text) FROM hotels WHERE MATCH(text, $words) AND city = 'Oslo' ORDER BY RANK(text) DESC
            """#,
            #"""
            SELECT "_default.hotels".doc_id, ls_out(ls_rank("match 0 text"."words text")) FROM "_default.hotels" JOIN "words text" AS "match 0 text" ON "match 0 text".rowid = "_default.hotels".row WHERE "match 0 text"."words text" MATCH ls_match(?1, '[["name","description"],"stem","en","stop","en"]') AND (ls_value("_default.hotels".body, '.city') = 'Oslo') AND "_default.hotels".flags & 1 = 0 ORDER BY ls_rank("match 0 text"."words text") DESC
            """#
        ),
        (
            #"""
            SELECT name FROM _ WHERE _id = 'x'
            """#,
            #"""
            SELECT ls_result("_default._default".body, '.name') FROM "_default._default" WHERE ("_default._default".doc_id = 'x') AND "_default._default".flags & 1 = 0
            """#
        ),
    ]

    @Test(arguments: snapshots.indices)
    func `a query has this translation`(_ index: Int) throws {
        let (query, sql) = Self.snapshots[index]
        let catalog = try #require(Self.catalog)
        #expect(try QueryCompiler.compile(query, catalog: catalog).sql == sql)
    }

    @Test func `a delimiter with a combining mark does not end a text or a name`() throws {
        let catalog = try #require(Self.catalog)
        let query = "SELECT a FROM hotels AS `h` WHERE a = 'b''\u{301} OR 1 --'"
        let sql = try QueryCompiler.compile(query, catalog: catalog).sql
        #expect(sql.contains("= 'b''\u{301} OR 1 --')"), "\(sql)")
    }
}
