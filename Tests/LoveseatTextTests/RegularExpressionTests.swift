import LoveseatText
import Testing

/// Regular expressions in both dialects.
struct RegularExpressionTests {
    @Test(arguments: [
        ("", "", true), ("a", "xay", true), ("a", "xyz", false), ("^a", "ba", false), ("a$", "ba\n", true),
        ("a\\z", "ba\n", false), ("^(a|bc)+$", "abcbca", true), ("^(a|bc)+$", "abcb", false),
        ("colou?r", "color", true),
        ("x{2,3}y", "xy", false), ("^x{2,3}y", "xxxy", true), ("^x{2}$", "xx", true),
        ("x{,2}", "x{,2}", true),
        ("[a-c]+\\d", "zzb7", true), ("[^a-c]", "abc", false), ("[]x]", "]", true), ("[\\d-]", "-", true),
        ("[[:upper:]][[:lower:]]", "aBc", true), ("\\bcat\\b", "the cat sat", true),
        ("\\bcat\\b", "concat", false),
        ("(?i)ÉCOLE", "école", true), ("a(?i)b", "aB", true), ("a(?i)b", "AB", false),
        ("(?i:a)b", "AB", false),
        ("a.b", "a\nb", false), ("(?s)a.b", "a\nb", true), ("(?m)^b", "a\nb", true),
        ("\\x41\\x{1F600}", "A😀", true),
        ("(?<name>a)(?P<other>b)(?:c)", "abc", true), ("(a*)*b", "aaab", true), ("(|a)*$", "aa", true),
        ("\\.", "a.b", true), ("\\.", "ab", false), ("\\s\\S\\w\\W", " xa!", true), ("a+?b??", "a", true),
        ("(){1000}", "", true), ("((){1000}){1000}", "", true),
    ]) func `a pattern finds what PCRE finds`(_ pattern: String, _ text: String, _ isFound: Bool) throws {
        #expect(try RegularExpression(pattern, .pcre).matches(text) == isFound)
    }

    @Test(arguments: [
        "(", ")", "a)", "[", "[b-a]", "*a", "a**", "a*+", "(a)\\1", "(?=a)", "(?<=a)", "(?!a)", "(?>a)",
        "\\p{L}", "\\q",
        "a{2}{3}", "a{3,2}", "a{1001}", "(a{100}){100}", "\\x{110000}", "[[:nothing:]]",
        String(repeating: "a", count: 257),
    ]) func `a pattern that is not valid, or cannot be searched in time, is refused in PCRE`(
        _ pattern: String
    ) {
        #expect(throws: RegularExpressionError.self) { try RegularExpression(pattern, .pcre) }
    }

    @Test(arguments: ["z*z*x", "(z|zz)*x", "(z*)*x", "z*z*z*z*z*z*x", "(z?){100}x", ".*.*.*x", "((z*)*)*x"])
    func `a search takes time in proportion to the text, however ambiguous the pattern`(_ pattern: String)
        throws
    {
        let text = String(repeating: "z", count: 16_000)
        #expect(try !RegularExpression(pattern, .pcre).matches(text))
        #expect(try !RegularExpression(pattern, .ecmaScript).matches(text))
    }

    @Test(
        arguments: [
            ("(a*)*b", "aab", [0..<3, 0..<2]), ("(a*)*", "b", [0..<0, nil]),
            ("(a|ab)(c|bcd)?", "abcd", [0..<4, 0..<1, 1..<4]),
            ("(?:(a)|(b))*", "ab", [0..<2, 0..<1, 1..<2]), ("a+?(a*)", "xaa", [1..<3, 2..<3]),
            ("(a)(?=(b))", "aab", [1..<2, 1..<2, 2..<3]), ("(a)\\1", "baa", [1..<3, 1..<2]),
            ("a(?!b)", "aba", [2..<3]),
            ("[]|[^]", "\n", [0..<1]), ("\\ca\\0", "\u{1}\0", [0..<2]), ("[\\d-z]+", "7-z", [0..<3]),
            ("a$", "a\n", []),
            ("a.b", "a\rb", []), ("(?:^)*a", "ba", [1..<2]), ("x{2}", "xxx", [0..<2]),
            ("[[:d:]]]", "7]", [0..<2]),
            ("(b)|a", "a", [0..<1, nil]),
        ] as [(String, String, [Range<Int>?])]
    )
    func `a pattern and its groups are where ECMAScript finds them`(
        _ pattern: String,
        _ text: String,
        _ ranges: [Range<Int>?]
    ) throws {
        let expression = try RegularExpression(pattern, .ecmaScript)
        let match = try expression.firstMatch(in: Array(text.unicodeScalars), groups: expression.groups)
        #expect((match == nil) == ranges.isEmpty)
        for (group, range) in ranges.enumerated() { #expect(match?[group] == range, "\(group)") }
    }

    @Test(arguments: [
        "(", ")", "[", "[b-a]", "*a", "a**", "a*+", "^*", "\\b+", "{", "a{", "a{x}", "a{2}{3}", "a{3,2}",
        "a{,2}",
        "\\1", "(a)\\2", "(?<=a)", "(?i)a", "(?<n>a)", "\\q", "\\x+1", "\\x{41}", "\\u12", "[[:nothing:]]",
        "[[:",
        "a{100000}", "(?:a{200}){200}", String(repeating: "(", count: 10_000),
        String(repeating: "a", count: 20_001),
    ])
    func `a pattern that is not valid, or too large, is refused in ECMAScript`(_ pattern: String) {
        #expect(throws: RegularExpressionError.self) { try RegularExpression(pattern, .ecmaScript) }
    }

    @Test func `a search by backtracking ends with an error after too many steps`() throws {
        let expression = try RegularExpression("(z*)*\\1x", .ecmaScript)
        #expect(throws: RegularExpressionError.self) {
            try expression.matches(String(repeating: "z", count: 40))
        }
    }

    @Test(arguments: [false, true])
    func `random patterns find in ECMAScript what trying everything finds`(_ backtracks: Bool) throws {
        var maker = ExpressionMaker(dice: SystemRandomNumberGenerator(), backtracks: backtracks)
        var compared = 0
        for _ in 0..<5_000 {
            let tree = maker.expression()
            let expression = try RegularExpression(tree.pattern, .ecmaScript)
            for _ in 0..<4 {
                let text = maker.text()
                let naive = NaiveMatcher(text, isPCRE: false)
                let wanted = naive.firstMatch(tree)
                guard naive.steps < NaiveMatcher.maximumSteps else { continue }
                let match = try expression.firstMatch(
                    in: Array(text.unicodeScalars),
                    groups: expression.groups
                )
                #expect((match == nil) == (wanted == nil), "\(tree.pattern) in \(text.debugDescription)")
                for group in 0..<expression.groups {
                    #expect(
                        match?[group] == wanted?[group],
                        "group \(group) of \(tree.pattern) in \(text.debugDescription)"
                    )
                }
                #expect(try expression.matches(text) == (wanted != nil))
                compared += 1
            }
        }
        #expect(compared > 10_000)
    }

    @Test func `random patterns find in PCRE what trying everything finds`() throws {
        var maker = ExpressionMaker(dice: SystemRandomNumberGenerator(), backtracks: false)
        var compared = 0
        for _ in 0..<5_000 {
            let tree = maker.expression()
            // It may be too long for the dialect.
            guard let expression = try? RegularExpression(tree.pattern, .pcre) else { continue }
            for _ in 0..<4 {
                let text = maker.text()
                let naive = NaiveMatcher(text, isPCRE: true)
                let wanted = naive.firstMatch(tree) != nil
                guard naive.steps < NaiveMatcher.maximumSteps else { continue }
                #expect(
                    try expression.matches(text) == wanted,
                    "\(tree.pattern) in \(text.debugDescription)"
                )
                compared += 1
            }
        }
        #expect(compared > 10_000)
    }

    @Test func `random patterns find what the standard library finds`() throws {
        var dice = SystemRandomNumberGenerator()
        let parts = [
            "a", "b", "c", ".", "|", "(", ")", "*", "+", "?", "[ab]", "[^a]", "^", "$", "\\b", "\\w", "{2}",
        ]
        var compared = 0
        for _ in 0..<4_000 {
            let pattern = (0..<Int.random(in: 1...7, using: &dice)).map { _ in
                parts.randomElement(using: &dice) ?? "a"
            }
            .joined()
            guard let own = try? RegularExpression(pattern, .pcre),
                let other = try? Regex(pattern).matchingSemantics(.unicodeScalar)
            else { continue }
            for _ in 0..<4 {
                let text = (0..<Int.random(in: 0...6, using: &dice)).map { _ in
                    "abc".randomElement(using: &dice) ?? "a"
                }
                // In an empty text, the standard library finds a boundary of a word, and PCRE does not.
                guard !text.isEmpty || !pattern.contains("\\b") else { continue }
                let isFound = try other.firstMatch(in: String(text)) != nil
                #expect(try own.matches(String(text)) == isFound, "\(pattern) in \(String(text))")
                compared += 1
            }
        }
        #expect(compared > 1_000)
    }
}
