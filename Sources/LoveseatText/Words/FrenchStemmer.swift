/// Snowball's algorithm for French.
struct FrenchStemmer: FullTextStemmer {
    func stem(_ word: String) -> String {
        var stem = Stem(word)
        stem.run()
        return stem.word.text
    }

    private struct Stem {
        var word: StemmedWord
        private var rv = 0

        init(_ text: String) {
            word = StemmedWord(text, vowels: "aeiouyâàëéêèïîôûù")
            for index in word.scalars.indices {
                switch word.scalars[index] {
                case "u" where word.isVowel(index - 1) && word.isVowel(index + 1): word.scalars[index] = "U"
                case "i" where word.isVowel(index - 1) && word.isVowel(index + 1): word.scalars[index] = "I"
                case "y" where word.isVowel(index - 1) || word.isVowel(index + 1): word.scalars[index] = "Y"
                case "u" where index > 0 && word.scalars[index - 1] == "q": word.scalars[index] = "U"
                default: break
                }
            }
            word.findRegions()
            rv = word.count
            if word.count >= 3,
                (word.isVowel(0) && word.isVowel(1))
                    || ["par", "col", "tap"].contains(String(text.prefix(3)))
            {
                rv = 3
            } else if let first = (1..<max(1, word.count)).first(where: word.isVowel) {
                rv = first + 1
            }
        }

        mutating func run() {
            let before = word.scalars
            let removed = standardSuffix()
            var isDone = removed == .removed
            if !isDone { isDone = iVerbSuffix() || otherVerbSuffix() || removed == .adverb }
            if isDone, word.scalars != before {
                if word.ends("Y") { word.replace("Y", "i") } else if word.ends("ç") { word.replace("ç", "c") }
            } else {
                residualSuffix()
            }
            for double in ["enn", "onn", "ett", "ell", "eill"] where word.ends(double) {
                word.scalars.removeLast()
                break
            }
            unaccent()
            word.scalars = word.scalars.map { $0 == "I" ? "i" : $0 == "U" ? "u" : $0 == "Y" ? "y" : $0 }
        }

        private enum Standard { case nothing, removed, adverb }

        private static let simple = [
            "ance", "iqUe", "isme", "able", "iste", "eux", "ances", "iqUes", "ismes", "ables", "istes",
        ]
        private static let agents = ["atrice", "ateur", "ation", "atrices", "ateurs", "ations"]
        private static let others = [
            "logie", "logies", "usion", "ution", "usions", "utions", "ence", "ences", "ement", "ements",
            "ité", "ités",
            "if", "ive", "ifs", "ives", "eaux", "aux", "euse", "euses", "issement", "issements", "amment",
            "emment", "ment",
            "ments",
        ]

        private mutating func standardSuffix() -> Standard {
            guard let suffix = word.longest(Self.simple + Self.agents + Self.others) else { return .nothing }
            let start = word.start(suffix)
            func result(_ isDone: Bool) -> Standard { isDone ? .removed : .nothing }
            switch suffix {
            case _ where Self.simple.contains(suffix): return result(word.remove(suffix, from: word.r2))
            case _ where Self.agents.contains(suffix):
                guard word.remove(suffix, from: word.r2) else { return .nothing }
                if word.ends("ic"), !word.remove("ic", from: word.r2) { word.replace("ic", "iqU") }
            case "logie", "logies": return result(replace(suffix, "log", word.r2))
            case "usion", "ution", "usions", "utions": return result(replace(suffix, "u", word.r2))
            case "ence", "ences": return result(replace(suffix, "ent", word.r2))
            case "ement", "ements":
                guard word.remove(suffix, from: rv) else { return .nothing }
                adverbStem()
            case "ité", "ités":
                guard word.remove(suffix, from: word.r2) else { return .nothing }
                if word.ends("abil") {
                    if !word.remove("abil", from: word.r2) { word.replace("abil", "abl") }
                } else if word.ends("ic") {
                    if !word.remove("ic", from: word.r2) { word.replace("ic", "iqU") }
                } else {
                    word.remove("iv", from: word.r2)
                }
            case "if", "ive", "ifs", "ives":
                guard word.remove(suffix, from: word.r2) else { return .nothing }
                if word.remove("at", from: word.r2), word.ends("ic"), !word.remove("ic", from: word.r2) {
                    word.replace("ic", "iqU")
                }
            case "eaux": word.replace("eaux", "eau")
            case "aux": return result(replace("aux", "al", word.r1))
            case "euse", "euses":
                if !word.remove(suffix, from: word.r2) { return result(replace(suffix, "eux", word.r1)) }
            case "issement", "issements":
                guard start >= word.r1, start > 0, !word.isVowel(start - 1) else { return .nothing }
                word.replace(suffix)
            case "amment": return replace(suffix, "ant", rv) ? .adverb : .nothing
            case "emment": return replace(suffix, "ent", rv) ? .adverb : .nothing
            default:
                guard start - 1 >= rv, word.isVowel(start - 1) else { return .nothing }
                word.replace(suffix)
                return .adverb
            }
            return .removed
        }

        private mutating func replace(_ suffix: String, _ other: String, _ region: Int) -> Bool {
            guard word.start(suffix) >= region else { return false }
            word.replace(suffix, other)
            return true
        }

        private mutating func adverbStem() {
            if word.ends("iv") {
                if word.remove("iv", from: word.r2) { word.remove("at", from: word.r2) }
            } else if word.ends("eus") {
                if !word.remove("eus", from: word.r2), word.start("eus") >= word.r1 {
                    word.replace("eus", "eux")
                }
            } else if word.ends("abl") || word.ends("iqU") {
                word.remove("abl", from: word.r2)
                word.remove("iqU", from: word.r2)
            } else if word.ends("ièr") || word.ends("Ièr") {
                if word.start("ièr") >= rv { word.replace("ièr", "i") }
            }
        }

        private static let iVerbs = [
            "îmes", "ît", "îtes", "i", "ie", "ies", "ir", "ira", "irai", "iraIent", "irais", "irait", "iras",
            "irent", "irez",
            "iriez", "irions", "irons", "iront", "is", "issaIent", "issais", "issait", "issant", "issante",
            "issantes",
            "issants", "isse", "issent", "isses", "issez", "issiez", "issions", "issons", "it",
        ]

        private mutating func iVerbSuffix() -> Bool {
            guard let suffix = word.longest(Self.iVerbs.filter { word.ends($0) && word.start($0) >= rv })
            else { return false }
            let start = word.start(suffix)
            guard start - 1 >= rv, !word.isVowel(start - 1) else { return false }
            word.replace(suffix)
            return true
        }

        private static let plainVerbs = [
            "é", "ée", "ées", "és", "èrent", "er", "era", "erai", "eraIent", "erais", "erait", "eras", "erez",
            "eriez",
            "erions", "erons", "eront", "ez", "iez",
        ]
        private static let aVerbs = [
            "âmes", "ât", "âtes", "a", "ai", "aIent", "ais", "ait", "ant", "ante", "antes", "ants", "as",
            "asse", "assent",
            "asses", "assiez", "assions",
        ]

        private mutating func otherVerbSuffix() -> Bool {
            let all = (["ions"] + Self.plainVerbs + Self.aVerbs).filter {
                word.ends($0) && word.start($0) >= rv
            }
            guard let suffix = word.longest(all) else { return false }
            if suffix == "ions" { return word.remove("ions", from: word.r2) }
            word.replace(suffix)
            if Self.aVerbs.contains(suffix) { word.remove("e", from: rv) }
            return true
        }

        private mutating func residualSuffix() {
            if word.ends("s"), word.count > 1, !"aiouès".unicodeScalars.contains(word.scalars[word.count - 2])
            {
                word.scalars.removeLast()
            }
            if word.ends("ion"), word.start("ion") >= word.r2, word.start("ion") - 1 >= rv,
                "st".unicodeScalars.contains(word.scalars[word.start("ion") - 1])
            {
                word.replace("ion")
            } else if let suffix = word.longest(["ier", "ière", "Ier", "Ière"]) {
                if word.start(suffix) >= rv { word.replace(suffix, "i") }
            } else if word.ends("guë") {
                word.remove("ë", from: rv)
            } else {
                word.remove("e", from: rv)
            }
        }

        private mutating func unaccent() {
            var index = word.count
            while index > 0, !word.isVowel(index - 1) { index -= 1 }
            // The word has no vowel, or ends in one, or its last vowel has no such accent.
            guard index > 0, index < word.count,
                word.scalars[index - 1] == "é" || word.scalars[index - 1] == "è"
            else { return }
            word.scalars[index - 1] = "e"
        }
    }
}
