/// A word that is being reduced to its stem, with the regions that Snowball's algorithms define.
struct StemmedWord {
    var scalars: [Unicode.Scalar]
    private let vowels: Set<Unicode.Scalar>
    var r1 = 0
    var r2 = 0

    init(_ word: String, vowels: String) {
        scalars = Array(word.unicodeScalars)
        self.vowels = Set(vowels.unicodeScalars)
    }

    var text: String { String(String.UnicodeScalarView(scalars)) }
    var count: Int { scalars.count }

    func isVowel(_ index: Int) -> Bool { scalars.indices.contains(index) && vowels.contains(scalars[index]) }

    /// Finds the regions behind the first consonant after a vowel, and behind the next one.
    mutating func findRegions() {
        r1 = region(from: 0)
        r2 = region(from: r1)
    }

    private func region(from start: Int) -> Int {
        var index = start + 1
        while index < count {
            if !isVowel(index), isVowel(index - 1) { return index + 1 }
            index += 1
        }
        return count
    }

    func ends(_ suffix: String) -> Bool { scalars.reversed().starts(with: suffix.unicodeScalars.reversed()) }

    /// The longest of the suffixes that the word has.
    func longest(_ suffixes: [String]) -> String? {
        suffixes.filter(ends).max { $0.unicodeScalars.count < $1.unicodeScalars.count }
    }

    /// Where a suffix that the word has begins.
    func start(_ suffix: String) -> Int { count - suffix.unicodeScalars.count }

    mutating func replace(_ suffix: String, _ other: String = "") {
        scalars.removeLast(min(count, suffix.unicodeScalars.count))
        scalars.append(contentsOf: other.unicodeScalars)
    }

    /// Takes a suffix off if it is there and in a region.
    @discardableResult
    mutating func remove(_ suffix: String, from region: Int) -> Bool {
        guard ends(suffix), start(suffix) >= region else { return false }
        replace(suffix)
        return true
    }
}
