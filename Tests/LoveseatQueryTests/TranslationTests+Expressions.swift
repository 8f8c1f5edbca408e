extension TranslationTests {
    /// Results and conditions of one collection.
    static let expressions: [(query: String, sql: String)] = [
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
            SELECT ls_out((ls_value("_default.hotels".body, '.price') + 1)), ls_out((- ls_value("_default.hotels".body, '.price'))), ls_out((ls_value("_default.hotels".body, '.price') / 2 % 3)) FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0
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
            SELECT name FROM hotels OFFSET 5
            """#,
            #"""
            SELECT ls_result("_default.hotels".body, '.name') FROM "_default.hotels" WHERE "_default.hotels".flags & 1 = 0 LIMIT -1 OFFSET ls_limit(5)
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
            SELECT airlines.name, travel.airlines.city FROM travel.airlines
            """#,
            #"""
            SELECT ls_result("travel.airlines".body, '.name'), ls_result("travel.airlines".body, '.city') FROM "travel.airlines" WHERE "travel.airlines".flags & 1 = 0
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
}
