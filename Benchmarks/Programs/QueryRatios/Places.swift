/// The documents of the measurements: twelve properties, about half a kilobyte, the same in each run.
struct Places {
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    private let words: [String]

    init() {
        var dice = Dice(state: state)
        words = (0..<6_000).map { number in
            let letters = (0..<6).map { _ in Array("aeiounrstlhd")[dice.below(12)] }
            return number == 17 ? "kesiri" : String(letters)
        }
        state = dice.state
    }

    /// JSON with sorted keys and no white space, as Loveseat stores it, so that both sides have the same text.
    func json(_ number: Int, of count: Int) -> String {
        var dice = Dice(state: state &+ UInt64(number) &* 0xD134_2543_DE82_EF95)
        let tags = (0..<dice.below(6)).map { _ in "\"tag\(padded(dice.below(200), 3))\"" }.joined(
            separator: ","
        )
        let text = (0..<30).map { _ in words[dice.below(words.count)] }.joined(separator: " ")
        let zip = padded(dice.below(100_000), 5)
        return """
            {"active":\(dice.below(2) == 0),"address":{"street":"\(words[dice.below(6_000)]) 5","zip":"\(zip)"},"age":\(dice.below(100)),\
            "city":"city \(padded(dice.below(20), 2))","created":"2026-01-\(padded(1 + dice.below(28), 2))",\
            "email":"a\(number)@example.com","name":"name \(padded(number, 7))","rating":\(dice.below(10)).5,\
            "ref":"doc\(padded(dice.below(count), 7))","score":\(dice.below(1_000)),"tags":[\(tags)],"text":"\(text)"}
            """
    }

    static func id(_ number: Int) -> String { "doc\(padded(number, 7))" }
}

private func padded(_ number: Int, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
}

private struct Dice {
    var state: UInt64

    mutating func below(_ limit: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((state >> 33) % UInt64(limit))
    }
}
