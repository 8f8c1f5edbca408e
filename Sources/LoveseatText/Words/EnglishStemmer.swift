/// The Porter2 algorithm for English.
struct EnglishStemmer: FullTextStemmer {
    private static let exceptions: [String: String] = [
        "skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "idly": "idl",
        "gently": "gentl",
        "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl", "sky": "sky", "news": "news",
        "howe": "howe", "atlas": "atlas", "cosmos": "cosmos", "bias": "bias", "andes": "andes",
    ]
    private static let keptAfterFirst: Set<String> = [
        "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed",
    ]

    func stem(_ word: String) -> String {
        let scalars = Array(word.unicodeScalars)
        // Other letters count as consonants, and are put back at the end: only letters behind them change.
        let bytes = scalars.map { $0.isASCII ? UInt8($0.value) : Self.otherLetter }
        guard bytes.count > 2 else { return word }
        if let exception = Self.exceptions[word] { return exception }
        var stem = Stem(bytes)
        stem.markConsonants()
        stem.findRegions()
        stem.plurals()
        if !Self.keptAfterFirst.contains(stem.text) {
            stem.pastAndProgressive()
            stem.finalY()
            stem.doubleSuffixes()
            stem.simpleSuffixes()
            stem.longSuffixes()
            stem.finalE()
        }
        var result = Array(stem.text.unicodeScalars)
        for index in scalars.indices where !scalars[index].isASCII && index < result.count {
            result[index] = scalars[index]
        }
        return String(String.UnicodeScalarView(result))
    }

    private static let otherLetter: UInt8 = 1

    private struct Stem {
        private var word: [UInt8]
        private var r1 = 0
        private var r2 = 0

        init(_ word: [UInt8]) { self.word = word }

        /// The word as text. While it is changed, Y is in capitals as a consonant.
        var text: String {
            String(decoding: word.map { $0 == UInt8(ascii: "Y") ? UInt8(ascii: "y") : $0 }, as: UTF8.self)
        }

        private static func isVowel(_ byte: UInt8) -> Bool { "aeiouy".utf8.contains(byte) }

        mutating func markConsonants() {
            for index in word.indices where word[index] == UInt8(ascii: "y") {
                if index == 0 || Self.isVowel(word[index - 1]) { word[index] = UInt8(ascii: "Y") }
            }
        }

        mutating func findRegions() {
            r1 = word.count
            for start in ["gener", "commun", "arsen"] where word.starts(with: start.utf8) {
                r1 = start.utf8.count
            }
            if r1 == word.count { r1 = region(from: 0) }
            r2 = region(from: r1)
        }

        private func region(from start: Int) -> Int {
            var index = start + 1
            while index < word.count {
                if !Self.isVowel(word[index]), Self.isVowel(word[index - 1]) { return index + 1 }
                index += 1
            }
            return word.count
        }

        private func ends(_ suffix: String) -> Bool {
            word.count >= suffix.utf8.count && word.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
        }

        private mutating func replace(_ suffix: String, _ other: String) {
            word.removeLast(suffix.utf8.count)
            word.append(contentsOf: other.utf8)
        }

        private func start(_ suffix: String) -> Int { word.count - suffix.utf8.count }

        private func hasVowel(before end: Int) -> Bool { word[..<max(0, end)].contains(where: Self.isVowel) }

        private func endsShort(_ count: Int) -> Bool {
            if count == 2 { return Self.isVowel(word[0]) && !Self.isVowel(word[1]) }
            guard count >= 3 else { return false }
            let (a, b, c) = (word[count - 3], word[count - 2], word[count - 1])
            return !Self.isVowel(a) && Self.isVowel(b) && !Self.isVowel(c) && !"wxY".utf8.contains(c)
        }

        mutating func plurals() {
            if ends("sses") {
                replace("sses", "ss")
            } else if ends("ied") || ends("ies") {
                let isLong = word.count > 4
                word.removeLast(3)
                word.append(contentsOf: isLong ? "i".utf8 : "ie".utf8)
            } else if ends("us") || ends("ss") {
                return
            } else if ends("s"), word.count > 2, hasVowel(before: word.count - 2) {
                word.removeLast()
            }
        }

        mutating func pastAndProgressive() {
            for suffix in ["eedly", "eed"] where ends(suffix) {
                if start(suffix) >= r1 { replace(suffix, "ee") }
                return
            }
            for suffix in ["ingly", "edly", "ing", "ed"] where ends(suffix) {
                // Without a vowel in front the ending belongs to the stem, as in "sing".
                guard hasVowel(before: start(suffix)) else { return }
                replace(suffix, "")
                if ends("at") || ends("bl") || ends("iz") {
                    word.append(UInt8(ascii: "e"))
                } else if ["bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"].contains(where: ends) {
                    word.removeLast()
                } else if r1 >= word.count, endsShort(word.count) {
                    word.append(UInt8(ascii: "e"))
                }
                return
            }
        }

        mutating func finalY() {
            // Words such as "say" and "by" keep their y.
            guard ends("y") || ends("Y"), word.count > 2, !Self.isVowel(word[word.count - 2]) else { return }
            word[word.count - 1] = UInt8(ascii: "i")
        }

        private mutating func first(of rules: [(String, String)], in region: Int) {
            for (suffix, other) in rules where ends(suffix) {
                if start(suffix) >= region { replace(suffix, other) }
                return
            }
        }

        mutating func doubleSuffixes() {
            for suffix in ["ogi", "li"] where ends(suffix) {
                let rest = ["bli", "abli", "alli", "fulli", "lessli", "ousli", "entli", "ousli"].contains(
                    where: ends
                )
                if suffix == "ogi" {
                    if start(suffix) >= r1, word.count > 3, word[word.count - 4] == UInt8(ascii: "l") {
                        replace("ogi", "og")
                    }
                    return
                }
                if rest { break }
                if start("li") >= r1, word.count > 2, "cdeghkmnrt".utf8.contains(word[word.count - 3]) {
                    replace("li", "")
                }
                return
            }
            first(
                of: [
                    ("ational", "ate"), ("ization", "ize"), ("fulness", "ful"), ("ousness", "ous"),
                    ("iveness", "ive"),
                    ("tional", "tion"), ("biliti", "ble"), ("lessli", "less"), ("entli", "ent"),
                    ("ation", "ate"),
                    ("alism", "al"), ("aliti", "al"), ("ousli", "ous"), ("iviti", "ive"), ("fulli", "ful"),
                    ("enci", "ence"), ("anci", "ance"), ("abli", "able"), ("izer", "ize"), ("ator", "ate"),
                    ("alli", "al"), ("bli", "ble"),
                ],
                in: r1
            )
        }

        mutating func simpleSuffixes() {
            if ends("ative") {
                if start("ative") >= r2 { replace("ative", "") }
                return
            }
            first(
                of: [
                    ("ational", "ate"), ("tional", "tion"), ("alize", "al"), ("icate", "ic"), ("iciti", "ic"),
                    ("ical", "ic"), ("ness", ""), ("ful", ""),
                ],
                in: r1
            )
        }

        mutating func longSuffixes() {
            for suffix in [
                "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
                "ive", "ize",
                "ion", "al", "er", "ic",
            ] where ends(suffix) {
                if start(suffix) < r2 { return }
                if suffix == "ion" {
                    // After other letters "ion" belongs to the stem, as in "religion".
                    guard let before = word.dropLast(3).last, "st".utf8.contains(before) else { return }
                }
                replace(suffix, "")
                return
            }
        }

        mutating func finalE() {
            if ends("e") {
                let at = word.count - 1
                if at >= r2 || (at >= r1 && !endsShort(at)) { word.removeLast() }
            } else if ends("ll"), word.count - 1 >= r2 {
                word.removeLast()
            }
        }
    }
}
