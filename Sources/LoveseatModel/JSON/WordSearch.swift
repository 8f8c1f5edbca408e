extension [UInt8] {
    /// Whether a short ASCII word occurs in the bytes.
    package func contains(word: StaticString) -> Bool { contains(word, word, word) }

    /// Whether a JSON string begins with a short ASCII word.
    package func containsString(beginningWith word: StaticString) -> Bool {
        contains(word, word, word, inFront: true)
    }

    /// Whether any of three short ASCII words occurs in the bytes. It is fastest for words that begin with a rare character: thirty-two
    /// bytes are skipped at once if they contain no word's first character.
    ///
    /// `inFront`: only after a quotation mark.
    package func contains(
        _ first: StaticString,
        _ second: StaticString,
        _ third: StaticString,
        inFront: Bool = false
    ) -> Bool {
        func occurs(_ word: StaticString, in text: UnsafeRawBufferPointer, at index: Int) -> Bool {
            let length = word.utf8CodeUnitCount
            guard index + length <= text.count else { return false }
            if inFront, index == 0 || text[index - 1] != UInt8(ascii: "\"") { return false }
            for place in 0..<length where text[index + place] != word.utf8Start[place] { return false }
            return true
        }
        let (a, b, c) = (first.utf8Start[0], second.utf8Start[0], third.utf8Start[0])
        let (allA, allB, allC) = (SIMD32(repeating: a), SIMD32(repeating: b), SIMD32(repeating: c))
        return withUnsafeBytes { text in
            var index = 0
            while index < text.count {
                var end = Swift.min(index + 32, text.count)
                if index + 32 <= text.count {
                    let bytes = text.loadUnaligned(fromByteOffset: index, as: SIMD32<UInt8>.self)
                    let isThere = (bytes .== allA) .| (bytes .== allB) .| (bytes .== allC)
                    // `any` tests one lane after another.
                    let lanes = unsafeBitCast(isThere, to: SIMD4<UInt64>.self)
                    if lanes[0] | lanes[1] | lanes[2] | lanes[3] == 0 { (index, end) = (end, end) }
                }
                while index < end {
                    let byte = text[index]
                    if byte == a, occurs(first, in: text, at: index) { return true }
                    if byte == b, occurs(second, in: text, at: index) { return true }
                    if byte == c, occurs(third, in: text, at: index) { return true }
                    index += 1
                }
            }
            return false
        }
    }
}
