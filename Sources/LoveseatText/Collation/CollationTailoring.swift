/// Letters that a language sorts elsewhere than the root order does.
struct CollationTailoring: Sendable {
    private struct Rule {
        let scalars: [Unicode.Scalar]
        let element: UnicodeCollator.Element
    }

    private var rules: [Unicode.Scalar: [Rule]] = [:]

    var isEmpty: Bool { rules.isEmpty }

    init(locale: String?) {
        // There is no locale, or its language moves no letters.
        guard let language = Self.language(of: locale), let order = Self.orders[language] else { return }
        for chain in order.split(separator: " ") {
            // The others follow the first letter; letters between dots share one place.
            let places = chain.split(separator: "<")
            guard let anchor = places.first?.utf8.first else { continue }
            for (index, place) in places.dropFirst().enumerated() {
                for (variant, letter) in place.split(separator: "=").enumerated() {
                    add(String(letter), after: anchor, UInt32(index + 8), variant: variant)
                }
            }
        }
    }

    /// The language of a locale, if it has a separate order.
    static func language(of locale: String?) -> String? {
        let language = (locale ?? "").prefix { $0 != "_" && $0 != "-" }.lowercased()
        return orders[language] == nil ? nil : language
    }

    private mutating func add(_ letter: String, after anchor: UInt8, _ offset: UInt32, variant: Int) {
        let primary = CollationWeights.letter(UInt32(anchor)) + offset
        let marks: [UInt32] = variant > 0 ? [UInt32(variant)] : []
        for (form, tertiary) in [(letter, UInt8(0)), (letter.uppercased(), 1), (Self.capitalized(letter), 1)]
        {
            let scalars = UnicodeCollator.decomposed(form)
            guard let first = scalars.first,
                !(rules[first] ?? []).contains(where: { $0.scalars == scalars })
            else { continue }
            let element = UnicodeCollator.Element(primary: primary, marks: marks, tertiary: tertiary)
            rules[first, default: []].append(Rule(scalars: scalars, element: element))
            // The longest fits first.
            rules[first]?.sort { $0.scalars.count > $1.scalars.count }
        }
    }

    private static func capitalized(_ letter: String) -> String {
        letter.prefix(1).uppercased() + letter.dropFirst()
    }

    /// The place of the letter that begins with a scalar, and how many more scalars belong to it.
    func match(_ first: Unicode.Scalar, _ rest: ArraySlice<Unicode.Scalar>) -> (UnicodeCollator.Element, Int)?
    {
        guard !rules.isEmpty, let candidates = rules[first] else { return nil }
        for rule in candidates where rest.starts(with: rule.scalars.dropFirst()) {
            return (rule.element, rule.scalars.count - 1)
        }
        return nil
    }

    /// By language: chains of letters, each after the one before; `=` joins variants of one place.
    private static let orders: [String: String] = [
        "sv": "z<å<ä=æ<ö=ø", "fi": "z<å<ä=æ<ö=ø", "da": "z<æ=ä<ø=ö<å=aa", "nb": "z<æ=ä<ø=ö<å=aa",
        "no": "z<æ=ä<ø=ö<å=aa", "nn": "z<æ=ä<ø=ö<å=aa", "es": "n<ñ", "gl": "n<ñ", "et": "s<š<z<ž v<õ<ä<ö<ü",
        "is": "a<á d<ð e<é i<í o<ó u<ú y<ý z<þ<æ=ä<ö=ø<å", "tr": "c<ç g<ğ h<ı o<ö s<ş u<ü",
        "az": "c<ç e<ə g<ğ h<x<ı k<q o<ö s<ş u<ü", "pl": "a<ą c<ć e<ę l<ł n<ń o<ó s<ś z<ź<ż",
        "cs": "c<č h<ch r<ř s<š z<ž", "sk": "a<ä c<č h<ch o<ô s<š z<ž",
        "hr": "c<č<ć d<dž<đ l<lj n<nj s<š z<ž",
        "sl": "c<č<ć d<đ s<š z<ž", "hu": "c<cs d<dz<dzs g<gy l<ly n<ny o<ö=ő s<sz t<ty u<ü=ű z<zs",
        "lt": "c<č s<š z<ž", "lv": "c<č g<ģ k<ķ l<ļ n<ņ s<š z<ž", "ro": "a<ă<â i<î s<ș=ş t<ț=ţ",
        "sq": "c<ç d<dh e<ë g<gj l<ll n<nj r<rr s<sh t<th x<xh z<zh",
        "cy": "c<ch d<dd f<ff g<ng l<ll p<ph r<rh t<th",
    ]
}
