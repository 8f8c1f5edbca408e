/// How text is compared: by bytes, or by the options of `COLLATE`.
package struct TextCollation: Hashable, Sendable {
    package var isUnicode = false
    package var ignoresCase = false
    /// Only the Unicode algorithm can ignore accents.
    package var ignoresAccents = false
    package var locale: String?

    package init(
        isUnicode: Bool = false,
        ignoresCase: Bool = false,
        ignoresAccents: Bool = false,
        locale: String? = nil
    ) {
        self.isUnicode = isUnicode
        self.ignoresCase = ignoresCase
        self.ignoresAccents = ignoresAccents
        self.locale = locale
    }
}

extension TextCollation {
    /// The name in SQL; nil for comparison by bytes.
    package var sqlName: String? {
        guard isUnicode else { return ignoresCase ? "NOCASE" : nil }
        // Of a locale only the language counts, so that the name has no odd characters.
        let language = CollationTailoring.language(of: locale).map { "_" + $0 } ?? ""
        return "ls_unicode" + (ignoresCase ? "_nocase" : "") + (ignoresAccents ? "_nodiac" : "") + language
    }

    /// Reads the name of a Unicode collation; nil for other names.
    package init?(sqlName: String) {
        guard sqlName.hasPrefix("ls_unicode") else { return nil }
        var rest = sqlName.dropFirst("ls_unicode".count)
        func consume(_ option: String) -> Bool {
            guard rest.hasPrefix(option) else { return false }
            rest = rest.dropFirst(option.count)
            return true
        }
        self.init(isUnicode: true)
        ignoresCase = consume("_nocase")
        ignoresAccents = consume("_nodiac")
        if consume("_") { locale = String(rest) }
    }
}
