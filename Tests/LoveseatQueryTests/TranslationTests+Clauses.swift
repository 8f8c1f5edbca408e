extension TranslationTests {
    /// Queries with joins, unnested arrays, groups, order, full text and pages.
    static let clauses: [(query: String, sql: String)] = [
        (
            #"""
            SELECT h.city FROM hotels AS h JOIN travel.airlines AS a ON a.city = meta(h).id ORDER BY meta(h).id, h.city
            """#,
            #"""
            SELECT ls_result("h".body, '.city') FROM "_default.hotels" AS "h" JOIN "travel.airlines" AS "a" ON ("h".doc_id = ls_text(ls_value("a".body, '.city')) AND ls_value("a".body, '.city') = +"h".doc_id) AND "a".flags & 1 = 0 WHERE "h".flags & 1 = 0 ORDER BY +"h".doc_id, ls_value("h".body, '.city')
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
            SELECT name FROM hotels ORDER BY name COLLATE (UNICODE:sv NODIAC) DESC
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0 ORDER BY ls_value("_default.hotels".body, '.name') COLLATE "ls_unicode_nodiac_sv" DESC
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
            SELECT ls_result("a".body, '.name'), ls_result("b".body, '.name') FROM "_default.hotels" AS "a" JOIN "travel.airlines" AS "b" ON ("b".doc_id = ls_text(ls_value("a".body, '.airline')) AND ls_value("a".body, '.airline') = +"b".doc_id) AND "b".flags & 1 = 0 WHERE "a".flags & 1 = 0
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
    ]
}
