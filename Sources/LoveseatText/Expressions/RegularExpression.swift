/// A regular expression, matched on Unicode scalars.
///
/// A search follows all paths through the pattern at once (Thompson's construction), so its time is proportional to the lengths of the text
/// and of the pattern. Only a pattern with a reference to a group or with lookahead is matched by backtracking, in a bounded number of steps.
package struct RegularExpression: Sendable {
    /// Where a match and its groups are.
    package struct Match: Sendable {
        /// Where each group begins and ends; -1 for one that took no part.
        let slots: [Int]

        /// Where a group is: 0 is the whole match. Nil for a group that took no part.
        package subscript(group: Int) -> Range<Int>? {
            guard group * 2 + 1 < slots.count, slots[group * 2] >= 0, slots[group * 2] <= slots[group * 2 + 1]
            else { return nil }
            return slots[group * 2]..<slots[group * 2 + 1]
        }
    }

    /// The maximum number of groups that a match tells of, the whole included.
    private static let maximumGroups = 100

    private let program: RegularExpressionProgram
    /// The number of groups, the whole match included; 0 if the dialect has none.
    package let groups: Int

    package init(_ pattern: String, _ dialect: RegularExpressionDialect) throws(RegularExpressionError) {
        guard pattern.utf8.count <= dialect.maximumLength else { throw .isTooLarge }
        var parser = RegularExpressionParser(pattern, dialect)
        let node = try parser.parseAll()
        groups = parser.groups
        program = try RegularExpressionProgram(
            node,
            groups: groups,
            needsBacktracking: parser.needsBacktracking,
            maximumSteps: dialect.maximumSteps
        )
    }

    /// Whether the text contains a match.
    ///
    /// - Throws: ``RegularExpressionError`` if the search takes too long.
    package func matches(_ text: String) throws(RegularExpressionError) -> Bool {
        try search(Array(text.unicodeScalars), from: 0, slots: 0) != nil
    }

    /// Returns the first match at or after a position: of those that begin there, the one that the pattern prefers.
    /// Only the first `groups` of its groups are told, the whole match included, and at most 100.
    ///
    /// - Throws: ``RegularExpressionError`` if the search takes too long.
    package func firstMatch(in text: [Unicode.Scalar], from start: Int = 0, groups: Int = 1)
        throws(RegularExpressionError) -> Match?
    {
        let wanted = min(groups, self.groups, Self.maximumGroups) * 2
        return try search(text, from: start, slots: wanted).map { Match(slots: $0) }
    }

    private func search(_ text: [Unicode.Scalar], from start: Int, slots: Int)
        throws(RegularExpressionError) -> [Int]?
    {
        guard start <= text.count else { return nil }
        if program.needsBacktracking {
            var search = BacktrackingSearch(program: program, text: text)
            return try search.firstMatch(from: start)
        }
        var search = LinearSearch(program: program, text: text, slots: slots)
        return try search.firstMatch(from: start)
    }
}
