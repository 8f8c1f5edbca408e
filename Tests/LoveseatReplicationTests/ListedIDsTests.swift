import LoveseatReplication
import LoveseatTesting
import Testing

/// The IDs that a peer subscribes to.
struct ListedIDsTests {
    @Test(arguments: 1...50 as ClosedRange<UInt64>)
    func `exactly the listed IDs are contained, by their bytes`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var listed: [String] = []
        for number in 0..<generator.pick([0, 1, 2, 12, 13, 100, 3_000]) {
            let text = generator.pick([
                "", "é", "e\u{301}", "K", "\u{212A}", "a", "😀", String(repeating: "x", count: 255),
            ])
            listed.append(generator.chance(0.1) ? text : "\(text)\(number)")
        }
        let ids = ListedIDs(listed)
        for id in listed {
            #expect(ids.contains(id))
            #expect(ids.contains(id + "!") == listed.contains { Array($0.utf8) == Array((id + "!").utf8) })
        }
        for id in ["é", "e\u{301}", "K", "\u{212A}", "nothing"] {
            #expect(ids.contains(id) == listed.contains { Array($0.utf8) == Array(id.utf8) })
        }
        var seen: Set<[UInt8]> = []
        #expect(
            ids.ids.map { Array($0.utf8) }
                == listed.map { Array($0.utf8) }.filter { seen.insert($0).inserted }
        )
    }
}
