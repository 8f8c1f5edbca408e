/// The syntax that a regular expression may have, and how large it may be.
package struct RegularExpressionDialect: Sendable {
    /// Syntax that not every dialect has.
    struct Features: OptionSet, Sendable {
        let rawValue: UInt16

        /// Groups are numbered, and a match tells where each of them is.
        static let numberedGroups = Self(rawValue: 1 << 0)
        /// `\1`. Such a pattern is matched by backtracking.
        static let backreferences = Self(rawValue: 1 << 1)
        /// `(?=a)` and `(?!a)`. Such a pattern is matched by backtracking.
        static let lookahead = Self(rawValue: 1 << 2)
        /// `(?i)`, `(?i:a)`, and the same with `m` and `s`.
        static let options = Self(rawValue: 1 << 3)
        /// `(?<name>a)`, `(?P<name>a)` and `(?'name'a)`. The names have no effect.
        static let groupNames = Self(rawValue: 1 << 4)
        /// `\A`, `\z` and `\Z`.
        static let anchorEscapes = Self(rawValue: 1 << 5)
        /// `\0` and `\cA`.
        static let controlEscapes = Self(rawValue: 1 << 6)
        /// `\e` and `\x{1F600}`.
        static let longEscapes = Self(rawValue: 1 << 7)
        /// Braces without counts stand for themselves.
        static let literalBraces = Self(rawValue: 1 << 8)
        /// `^`, `$` and `\b` may be repeated, which has no effect.
        static let repeatedAssertions = Self(rawValue: 1 << 9)
        /// A `]` that is first in brackets, and an unfinished `[:`, stand for themselves.
        static let literalBrackets = Self(rawValue: 1 << 10)
        /// In `[\d-z]` and `[a-\d]`, the hyphen stands for itself.
        static let literalHyphens = Self(rawValue: 1 << 11)
    }

    let features: Features
    /// The scalars that `.` matches.
    let anyInLine: ScalarSet
    /// The assertion that `$` stands for.
    let atEnd: RegularExpressionProgram.Assertion
    /// The names that `[:alpha:]` may have.
    let classes: [String: ScalarSet]
    /// The maximum length of a pattern, in bytes.
    let maximumLength: Int
    let maximumSteps: Int
    let maximumCount: Int
    let maximumDepth: Int

    /// ECMAScript's syntax, which the query language's functions use.
    package static let ecmaScript = RegularExpressionDialect(
        features: [
            .numberedGroups, .backreferences, .lookahead, .controlEscapes, .literalHyphens,
        ],
        anyInLine: ScalarSet(ranges: [0x0A...0x0A, 0x0D...0x0D, 0x2028...0x2029], isNegated: true),
        atEnd: .end,
        classes: ScalarSet.classes.merging(["d": .digit, "w": .word, "s": .space]) { old, _ in old },
        maximumLength: .max,
        maximumSteps: 20_000,
        maximumCount: 100_000,
        maximumDepth: 100
    )

    /// PCRE's syntax, which Mango's `$regex` uses, without what needs backtracking. A search tells only whether there is a match.
    package static let pcre = RegularExpressionDialect(
        features: [
            .options, .groupNames, .anchorEscapes, .longEscapes, .literalBraces, .repeatedAssertions,
            .literalBrackets,
        ],
        anyInLine: ScalarSet(ranges: [0x0A...0x0A], isNegated: true),
        atEnd: .lastLine,
        classes: ScalarSet.classes.merging(["word": .word]) { old, _ in old },
        maximumLength: 256,
        maximumSteps: 2_000,
        maximumCount: 1_000,
        maximumDepth: 50
    )
}

/// The error for a pattern that is not valid or not supported, or that takes too long.
package struct RegularExpressionError: Error, Hashable, Sendable {
    package let message: String

    static let takesTooLong = Self(message: "The regular expression takes too long: simplify its repetitions")
    static let isNestedTooDeeply = Self(message: "The regular expression is nested too deeply")
    static let isTooLarge = Self(message: "The regular expression is not valid: the pattern is too large")
}
