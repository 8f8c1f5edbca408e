/// Snowball's algorithm for German.
struct GermanStemmer: FullTextStemmer {
    func stem(_ text: String) -> String {
        let doubled = text.unicodeScalars.reduce(into: String.UnicodeScalarView()) { result, scalar in
            result.append(contentsOf: scalar == "ß" ? "ss".unicodeScalars : String(scalar).unicodeScalars)
        }
        var word = StemmedWord(String(doubled), vowels: "aeiouyäöü")
        for index in word.scalars.indices where word.isVowel(index - 1) && word.isVowel(index + 1) {
            if word.scalars[index] == "u" { word.scalars[index] = "U" }
            if word.scalars[index] == "y" { word.scalars[index] = "Y" }
        }
        word.findRegions()
        word.r1 = min(word.count, max(word.r1, 3))
        endings(&word)
        comparisons(&word)
        derivations(&word)
        word.scalars = word.scalars.map {
            switch $0 {
            case "U", "ü": "u"
            case "Y": "y"
            case "ä": "a"
            case "ö": "o"
            default: $0
            }
        }
        return word.text
    }

    private func precedes(_ letters: String, _ suffix: String, in word: StemmedWord) -> Bool {
        let start = word.start(suffix)
        return start > 0 && letters.unicodeScalars.contains(word.scalars[start - 1])
    }

    private func endings(_ word: inout StemmedWord) {
        // Most words have none of these endings behind their first syllable.
        guard let suffix = word.longest(["em", "ern", "er", "e", "en", "es", "s"]),
            word.start(suffix) >= word.r1
        else { return }
        if suffix == "s", !precedes("bdfghklmnrt", suffix, in: word) { return }
        word.replace(suffix)
        if ["e", "en", "es"].contains(suffix), word.ends("niss") { word.scalars.removeLast() }
    }

    private func comparisons(_ word: inout StemmedWord) {
        // Most words have none of these endings behind their first syllable.
        guard let suffix = word.longest(["en", "er", "est", "st"]), word.start(suffix) >= word.r1 else {
            return
        }
        if suffix == "st", !precedes("bdfghklmnt", suffix, in: word) || word.start(suffix) < 4 { return }
        word.replace(suffix)
    }

    private func derivations(_ word: inout StemmedWord) {
        // Most words have none of these endings behind their second syllable.
        guard let suffix = word.longest(["end", "ung", "ig", "ik", "isch", "lich", "heit", "keit"]),
            word.start(suffix) >= word.r2
        else { return }
        switch suffix {
        case "end", "ung":
            word.replace(suffix)
            if word.ends("ig"), !precedes("e", "ig", in: word) { word.remove("ig", from: word.r2) }
        case "lich", "heit":
            word.replace(suffix)
            if word.ends("er") || word.ends("en"), word.start("er") >= word.r1 { word.replace("er") }
        case "keit":
            word.replace(suffix)
            if !word.remove("lich", from: word.r2) { word.remove("ig", from: word.r2) }
        default:
            if !precedes("e", suffix, in: word) { word.replace(suffix) }
        }
    }
}
