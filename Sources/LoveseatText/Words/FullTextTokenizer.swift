/// Splits text into words: runs of letters and digits, in lower case, without stop words, by their stems.
package struct FullTextTokenizer: Sendable {
    package struct Token: Hashable, Sendable {
        package var text: String
        /// Its place in the text, in bytes.
        package var start: Int
        package var end: Int
    }

    private let keepsAccents: Bool
    private let stemmer: (any FullTextStemmer)?
    private let stopWords: Set<String>

    /// Reads the options in the form of an index's definition: alternating names and values.
    package init(options: [String]) {
        var keepsAccents = true
        var stemmer: (any FullTextStemmer)?
        var stopWords: Set<String> = []
        for index in stride(from: 0, to: options.count - 1, by: 2) {
            let value = options[index + 1]
            switch options[index] {
            case "accents": keepsAccents = value != "0"
            case "stem": stemmer = FullTextLanguage(rawValue: value)?.stemmer
            case "stop": stopWords = FullTextLanguage(rawValue: value)?.stopWords ?? []
            case "words": stopWords = Set(value.split(separator: " ").map(String.init))
            default: break
            }
        }
        self.keepsAccents = keepsAccents
        self.stemmer = stemmer
        self.stopWords = stopWords
    }

    private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            return scalar.value &- 0x30 <= 9 || (scalar.value | 0x20) &- 0x61 < 26
        }
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .decimalNumber,
            .letterNumber, .otherNumber, .nonspacingMark, .spacingMark, .privateUse:
            return true
        default: return false
        }
    }

    /// The words of a text. In a query's prefix, stop words and stems do not count.
    package func tokens(_ text: UnsafeBufferPointer<UInt8>, isPrefix: Bool = false) -> [Token] {
        var tokens: [Token] = []
        var decoder = UTF8Positions(text)
        var word = String.UnicodeScalarView()
        var (start, end) = (0, 0)
        func finish() {
            if word.isEmpty { return }
            var text = String(word)
            word = String.UnicodeScalarView()
            // If accents do not count, stop words and stems are those of the word without accents.
            if !keepsAccents { text = Self.withoutAccents(text) }
            if !isPrefix, stopWords.contains(text) { return }
            if let stemmer, !isPrefix { text = stemmer.stem(text) }
            if !text.isEmpty { tokens.append(Token(text: text, start: start, end: end)) }
        }
        while let (scalar, from, to) = decoder.next() {
            guard Self.isWord(scalar) else {
                finish()
                continue
            }
            if word.isEmpty { start = from }
            end = to
            if scalar.isASCII {
                word.append(scalar.value &- 0x41 < 26 ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar)
            } else {
                let small = scalar.properties.lowercaseMapping.unicodeScalars
                word.append(small.count == 1 ? small.first ?? scalar : scalar)
            }
        }
        finish()
        return tokens
    }

    package func tokens(_ text: String, isPrefix: Bool = false) -> [Token] {
        var text = text
        return text.withUTF8 { tokens($0, isPrefix: isPrefix) }
    }

    private static func withoutAccents(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if scalar.isASCII {
                result.append(scalar)
            } else if scalar.properties.generalCategory != .nonspacingMark {
                result.append(CanonicalDecompositions.table[scalar]?.first ?? scalar)
            }
        }
        return String(result)
    }
}

/// Scalars with their places.
private struct UTF8Positions {
    private let text: UnsafeBufferPointer<UInt8>
    private var position = 0

    init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

    mutating func next() -> (Unicode.Scalar, Int, Int)? {
        guard position < text.count else { return nil }
        let start = position
        let lead = text[start]
        if lead < 0x80 {
            position += 1
            return (Unicode.Scalar(lead), start, position)
        }
        let count = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1
        position = min(text.count, start + count)
        let scalar =
            String(decoding: text[start..<position], as: UTF8.self).unicodeScalars.first ?? "\u{FFFD}"
        return (scalar, start, position)
    }
}
