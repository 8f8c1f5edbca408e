import LoveseatModel

/// One case of the differential tests: a random query, asked of SQLite and of the interpreter.
struct DifferentialRound {
    let database: GoldenDatabase
    let documents: [SpecValue]
    var generator: SpecGenerator
    /// Values of parameters.
    let parameters: [String: SpecValue]
    var query = ""
    var asked = JSONObject()
    /// How many queries used an index.
    var indexed = 0
    /// How many values were compared, and how many the specification leaves open.
    var values = 0
    var open = 0
    var differences: [String] = []

    init(database: GoldenDatabase, documents: [SpecValue], generator: SpecGenerator) {
        self.database = database
        self.documents = documents
        self.generator = generator
        parameters = ["p1": self.generator.value(1), "p2": self.generator.value(1)]
    }

    mutating func ask(_ text: String) throws -> [JSONValue] { try answer(text).rows }

    /// Runs a query with the parameters that it names.
    mutating func answer(_ text: String) throws -> GoldenDatabase.Answer {
        query = text
        var bound = JSONObject()
        for (name, value) in parameters where text.contains("$" + name) { bound[name] = value.json }
        asked = bound
        return try database.answer(text, JSONElement(JSONText(canonical: .object(bound))))
    }

    /// The document of a row.
    func number(_ row: JSONValue) -> Int { row["k"]?.string.flatMap { Int($0.dropFirst()) } ?? -1 }

    /// The value for a document, or nil if it is not specified.
    mutating func evaluate(_ expression: SpecExpression, _ document: SpecValue) throws -> SpecValue? {
        do {
            let value = try SpecInterpreter(document: document, parameters: parameters).evaluate(expression)
            values += 1
            return value
        } catch is SpecValue.Unspecified {
            open += 1
            return nil
        }
    }

    private mutating func check(_ expected: SpecValue?, _ found: JSONValue?, _ document: SpecValue?) {
        guard let expected, !expected.isShown(as: found) else { return }
        let place = (document?.json.map { " for \($0)" } ?? "") + " with \(JSONValue.object(asked))"
        differences.append(
            "\(query)\nfound \(found?.description ?? "MISSING") instead of \(expected)\(place)"
        )
    }

    // MARK: Kinds of queries

    /// The value of an expression in every document.
    mutating func select() throws {
        let expression = generator.expression(generator.int(1...4))
        let rows = try ask("SELECT meta().id AS k, \(expression.text) AS x FROM odd")
        guard rows.count == documents.count else { return differences.append("\(query): \(rows.count) rows") }
        for row in rows {
            let document = documents[number(row)]
            check(try evaluate(expression, document), row["x"], document)
        }
    }

    /// The documents that a condition is true for, without an index and with one.
    mutating func filter() throws {
        let condition = generator.condition(generator.int(1...4))
        let rows = try ask("SELECT meta().id AS k FROM odd WHERE \(condition.text)").map(number)
        for (place, document) in documents.enumerated() {
            guard let value = try evaluate(condition, document) else { continue }
            if (value.isTrue == true) != rows.contains(place) {
                differences.append(
                    "\(query)\n\(rows.contains(place) ? "finds" : "does not find") \(document.json ?? nil), \(value), with \(JSONValue.object(asked))"
                )
            }
        }
        try compareWithIndex(of: condition, rows)
    }

    mutating func sort() throws {
        let key = generator.expression(generator.int(1...3))
        let isDescending = generator.chance(0.5)
        // A bare integer would be the number of a column, and a comparison would take the collation for itself.
        if case .literal = key { return }
        let collation =
            key.isProperty && generator.chance(0.6)
            ? SpecCollation(isUnicode: generator.chance(0.5), ignoresCase: generator.chance(0.5)) : nil
        let written =
            key.text + (collation.map { " COLLATE (\($0.text))" } ?? "") + (isDescending ? " DESC" : "")
        let rows = try ask("SELECT meta().id AS k FROM odd ORDER BY \(written)").map(number)
        guard rows.sorted() == Array(documents.indices) else {
            return differences.append("\(query): \(rows)")
        }
        for (one, other) in zip(rows, rows.dropFirst()) {
            guard let left = try evaluate(key, documents[one]),
                let right = try evaluate(key, documents[other]),
                let order = try? SpecValue.compare(left, right, collation ?? .binary)
            else { continue }
            if isDescending ? order < 0 : order > 0 {
                differences.append("\(query)\n\(left) comes before \(right)")
            }
        }
    }

    mutating func aggregate() throws {
        let expression = generator.expression(generator.int(0...2))
        let text = expression.text
        let rows = try ask(
            "SELECT COUNT(*) AS a, COUNT(\(text)) AS n, AVG(\(text)) AS m, MIN(\(text)) AS l, MAX(\(text)) AS h FROM odd"
        )
        guard rows.count == 1, let row = rows.first else { return differences.append("\(query): \(rows)") }
        var all: [SpecValue] = []
        for document in documents {
            guard let value = try evaluate(expression, document) else { return }
            if !value.isMissing { all.append(value) }
        }
        check(.integer(Int64(documents.count)), row["a"], nil)
        check(.integer(Int64(all.count)), row["n"], nil)
        let numbers = all.compactMap(\.operand.number)
        // The order of the sum decides how large numbers round.
        if numbers.allSatisfy({ abs($0) < 1e15 && $0 * 1024 == ($0 * 1024).rounded() }) {
            check(
                all.isEmpty ? .missing : .double(numbers.reduce(0, +) / Double(numbers.count)),
                row["m"],
                nil
            )
        }
        for (column, isLeast) in [("l", true), ("h", false)] {
            var best = all.first ?? .missing
            for value in all.dropFirst() {
                guard let order = try? SpecValue.compare(value, best, .binary) else { return }
                if order == 0, !value.isIdentical(to: best) { return }
                if isLeast ? order < 0 : order > 0 { best = value }
            }
            check(best, row[column], nil)
        }
    }

    /// Rows of items, without an array index and with one.
    mutating func unnest() throws {
        // Without AS, the array has the last name of its path: its own.
        let (alias, source) = [
            ("u", "odd.list AS u"), ("u", "list AS u"), ("list", "odd.list AS list"), ("list", "odd.list"),
            ("list", "list"), ("list", "list AS list"),
        ][generator.int(0...5)]
        let item = SpecExpression.property([.key(alias)] + (generator.chance(0.3) ? [.key("a")] : []))
        let name = ["=", "<", ">", "IS", ">="][generator.int(0...4)]
        let condition = SpecExpression.comparison(name, item, .literal(.string("b")), nil)
        let tested = generator.chance(0.5) ? condition : .comparison(name, item, .literal(.integer(1)), nil)
        let rows = try ask(
            "SELECT meta(odd).id AS k, \(alias)\(alias == "u" ? "" : " AS u") FROM odd UNNEST \(source) WHERE \(tested.text)"
        )
        var expected: [(Int, SpecValue)] = []
        for (place, document) in documents.enumerated() {
            let items: [SpecValue]
            switch SpecInterpreter.walk(document, [.key("list")]) {
            case .missing: items = []
            case .array(let all): items = all
            case .object(let members): items = members.map(\.value)
            case let other: items = [other]
            }
            for one in items {
                guard let value = try evaluate(tested, .object([(alias, one)])) else { return }
                if value.isTrue == true { expected.append((place, one)) }
            }
        }
        checkUnnested(rows, expected)
        let definition: JSONValue = [
            "name": "items", "collection": "odd", "type": "array", "path": "list", "expressions": "",
        ]
        let drop = try database.makeIndex(JSONElement(JSONText(canonical: definition)), number: 0)
        defer { try? database.forgetIndexes(drop) }
        checkUnnested(try ask(query), expected)
    }

    private mutating func checkUnnested(_ rows: [JSONValue], _ expected: [(Int, SpecValue)]) {
        var left = expected
        for row in rows {
            guard let place = left.firstIndex(where: { $0.0 == number(row) && $0.1.isShown(as: row["u"]) })
            else {
                return differences.append("\(query)\nfinds \(row) too")
            }
            left.remove(at: place)
        }
        if !left.isEmpty { differences.append("\(query)\ndoes not find \(left)") }
    }

    /// Functions that fail for other kinds than numbers.
    mutating func fail() throws {
        let names = SpecFunctions.failing
        let inner = generator.expression(generator.int(0...2))
        let expression = SpecExpression.function(names[generator.int(0...names.count - 1)], [inner])
        for (place, document) in documents.enumerated() {
            let text = "SELECT meta().id AS k, \(expression.text) AS x FROM odd WHERE meta().id = 'd\(place)'"
            do {
                let expected = try evaluate(expression, document)
                if expected != nil { check(expected, try ask(text).first?["x"], document) }
            } catch is SpecValue.RunFailure {
                do {
                    let rows = try ask(text)
                    differences.append("\(query)\ngives \(rows) instead of failing")
                } catch let failure as GoldenDatabase.Failure {
                    values += 1
                    if failure.stage != "run" { differences.append("\(query)\nfails at \(failure.stage)") }
                }
            }
        }
    }

    mutating func group() throws {
        let key = generator.expression(generator.int(0...2))
        if case .literal = key { return }
        let rows = try ask("SELECT COUNT(*) AS n FROM odd GROUP BY \(key.text)")
        var groups: [(SpecValue, Int)] = []
        for document in documents {
            guard let value = try evaluate(key, document) else { return }
            do {
                let place = try groups.firstIndex { other, _ in
                    value.isMissing || other.isMissing
                        ? value.isMissing && other.isMissing : try SpecValue.isEqual(value, other, .binary)
                }
                if let place { groups[place].1 += 1 } else { groups.append((value, 1)) }
            } catch is SpecValue.Unspecified {
                open += 1
                return
            }
        }
        let found = rows.compactMap { $0["n"]?.int }.sorted()
        if found != groups.map(\.1).sorted() {
            differences.append("\(query)\nhas groups of \(found), not \(groups)")
        }
    }
}
