import LoveseatModel

extension DifferentialRound {
    /// Makes value indexes on the parts of a condition, and asks again.
    mutating func compareWithIndex(of condition: SpecExpression, _ rows: [Int]) throws {
        let parts = condition.indexable.shuffled(using: &generator.random)
        guard let first = parts.first else { return }
        let text = query
        let sorted = text + " ORDER BY \(first.text)" + (generator.chance(0.5) ? " DESC" : "")
        var drop: [String] = []
        defer { try? database.forgetIndexes(drop) }
        var definitions: [String] = []
        for (place, part) in parts.prefix(2).enumerated() {
            var definition: JSONValue = [
                "name": .string("part \(place)"), "collection": "odd", "type": "value",
            ]
            var expressions = part.text
            if generator.chance(0.3) { expressions = "(\(expressions)) COLLATE (\(collation().text))" }
            if generator.chance(0.3) { expressions += ", " + (parts.last ?? part).text }
            definition["expressions"] = .string(expressions)
            if generator.chance(0.3), condition.canBeIndexed { definition["where"] = .string(condition.text) }
            definitions.append(definition.description)
            drop += try database.makeIndex(JSONElement(JSONText(canonical: definition)), number: place)
        }
        for again in [text, sorted] {
            let answer = try answer(again)
            if answer.plan.contains(where: { $0.contains("INDEX part") }) { indexed += 1 }
            values += 1
            if answer.rows.map(number).sorted() != rows.sorted() {
                differences.append(
                    "\(again)\nfinds \(rows) without \(definitions), and \(answer.rows.map(number)) with them"
                )
            }
        }
    }

    private mutating func collation() -> SpecCollation {
        SpecCollation(isUnicode: generator.chance(0.5), ignoresCase: generator.chance(0.5))
    }

    /// The different values of an expression.
    mutating func distinct() throws {
        let expression = generator.expression(generator.int(0...2))
        let rows = try ask("SELECT DISTINCT \(expression.text) AS x FROM odd").map { $0["x"] }
        var expected: [SpecValue] = []
        for document in documents {
            guard let value = try evaluate(expression, document) else { return }
            expected.append(value)
        }
        for (place, row) in rows.enumerated() {
            if rows[..<place].contains(where: { $0 == row })
                || !expected.contains(where: { $0.isShown(as: row) })
            {
                differences.append("\(query)\nhas the row \(row?.description ?? "MISSING"), of \(expected)")
            }
        }
        for value in expected {
            // Of equal numbers any may be shown.
            let isThere = rows.contains { row in
                value.isShown(as: row) || value.number.map { $0 == SpecValue(row).number } ?? false
            }
            if !isThere { differences.append("\(query)\nlacks \(value)") }
        }
    }
}

extension SpecExpression {
    /// Whether an index can hold it: no parameter, and no quantifier.
    var canBeIndexed: Bool { !text.contains("SATISFIES") && !text.contains("$p") }

    /// The sides of the comparisons in a condition, which a value index can hold.
    var indexable: [SpecExpression] {
        let parts: [SpecExpression]
        switch self {
        case .and(let items), .or(let items): parts = items.flatMap(\.indexable)
        case .not(let value): parts = value.indexable
        case .comparison(_, let left, let right, _): parts = [left, right]
        case .contained(let value, _, _, _), .like(let value, _, _, _), .between(let value, _, _, _, _),
            .test(let value, _, _):
            parts = [value]
        default: parts = []
        }
        return parts.filter {
            if case .literal = $0 { return false }
            return $0.canBeIndexed
        }
    }
}
