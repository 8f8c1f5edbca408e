/// The languages for which full-text search has stems.
package enum FullTextLanguage: String, CaseIterable, Sendable {
    case danish = "da", dutch = "nl", english = "en", finnish = "fi", french = "fr", german = "de",
        hungarian = "hu"
    case italian = "it", norwegian = "no", portuguese = "pt", romanian = "ro", russian = "ru", spanish = "es"
    case swedish = "sv", turkish = "tr"

    /// Reads a code with or without a region, or the language's English name; nil for other languages.
    package init?(_ text: String) {
        let name = text.lowercased()
        let code = String(name.prefix { $0 != "_" && $0 != "-" })
        guard
            let found = Self.allCases.first(where: { $0.rawValue == code || String(describing: $0) == name })
        else {
            return nil
        }
        self = found
    }
}
