/// Reduces words to their stems.
protocol FullTextStemmer: Sendable {
    /// The stem of a word in lower case.
    func stem(_ word: String) -> String
}

extension FullTextLanguage {
    /// The stemmer of the language; nil where there is none yet, so that words stay as they are.
    var stemmer: (any FullTextStemmer)? {
        switch self {
        case .english: EnglishStemmer()
        case .french: FrenchStemmer()
        case .german: GermanStemmer()
        default: nil
        }
    }
}
