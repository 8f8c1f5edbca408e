import LoveseatCouchDBReplication
import Testing

/// `$regex` in selectors.
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
        #expect(try #require(RegularExpression(pattern)).matches(text) == isFound)
    }

    @Test(arguments: [
        "(", ")", "a)", "[", "[b-a]", "*a", "a**", "a*+", "(a)\\1", "(?=a)", "(?<=a)", "(?!a)", "(?>a)",
        "\\p{L}", "\\q",
        "a{2}{3}", "a{3,2}", "a{1001}", "(a{100}){100}", "\\x{110000}", "[[:nothing:]]",
        String(repeating: "a", count: 257),
    ]) func `what is no pattern, or cannot be searched in time, is refused`(_ pattern: String) {
        #expect(RegularExpression(pattern) == nil)
    }

    @Test(arguments: ["z*z*x", "(z|zz)*x", "(z*)*x", "z*z*z*z*z*z*x", "(z?){100}x", ".*.*.*x"])
    func `a search takes time in proportion to the text, however ambiguous the pattern`(_ pattern: String)
        throws
    {
        let text = String(repeating: "z", count: 16_000)
        #expect(try !#require(RegularExpression(pattern)).matches(text))
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
            guard let own = RegularExpression(pattern),
                let other = try? Regex(pattern).matchingSemantics(.unicodeScalar)
            else { continue }
            for _ in 0..<4 {
                let text = (0..<Int.random(in: 0...6, using: &dice)).map { _ in
                    "abc".randomElement(using: &dice) ?? "a"
                }
                // In an empty text, the standard library finds a boundary of a word, and PCRE does not.
                guard !text.isEmpty || !pattern.contains("\\b") else { continue }
                let isFound = try other.firstMatch(in: String(text)) != nil
                #expect(own.matches(String(text)) == isFound, "\(pattern) in \(String(text))")
                compared += 1
            }
        }
        #expect(compared > 1_000)
    }
}
