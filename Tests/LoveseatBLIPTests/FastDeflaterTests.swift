import LoveseatBLIP
import Testing

/// The lowest level of compression, whose encoder is our own; zlib inflates what it makes.
struct FastDeflaterTests {
    /// The same numbers for the same seed.
    private struct Dice: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    private static func message(_ dice: inout Dice) -> [UInt8] {
        let longest = [1, 12, 300, 3_000, 20_000, 90_000].randomElement(using: &dice) ?? 1
        let count = Int.random(in: 1...longest, using: &dice)
        let symbols = UInt8([0, 1, 3, 20, 255].randomElement(using: &dice) ?? 0)
        let period = Int.random(in: 1...400, using: &dice)
        let isPeriodic = Bool.random(using: &dice)
        var bytes: [UInt8] = []
        for index in 0..<count {
            bytes.append(
                isPeriodic && index >= period
                    ? bytes[index - period] : UInt8.random(in: 0...symbols, using: &dice)
            )
        }
        return bytes
    }

    @Test(arguments: 1...40)
    func `whatever messages follow each other arrive as they were`(_ seed: UInt64) throws {
        var dice = Dice(state: seed)
        var encoder = FrameEncoder(compressionLevel: 1)
        var decoder = FrameDecoder(largestFrame: 1 << 20)
        for number in 1...200 {
            let message = Self.message(&dice)
            // Of those that are not compressed the deflater knows nothing.
            let flags: FrameFlags = number % 7 == 0 ? [] : .compressed
            let frame = try encoder.frame(
                number: UInt64(number),
                type: .request,
                flags: flags,
                payload: message[...]
            )
            #expect(frame.count <= message.count + message.count / 1_000 + 24)
            let decoded = try #require(try decoder.decode(frame))
            #expect(decoded.payload.elementsEqual(message))
        }
    }

    @Test func `documents become about as small as zlib makes them`() throws {
        func size(atLevel level: Int) throws -> Int {
            var dice = Dice(state: 5)
            var encoder = FrameEncoder(compressionLevel: level)
            let words = ["garden", "invoice", "milk", "paint", "review", "ticket", "write"]
            return try (1...2_000).reduce(0) { size, number in
                let title = (0..<5).map { _ in words.randomElement(using: &dice) ?? "" }.joined(
                    separator: " "
                )
                let text = """
                    {"createdAt":"2026-0\(dice.next() % 9 + 1)-1\(dice.next() % 10)","done":\(dice.next() % 2 == 0),\
                    "number":\(number),"owner":"\(String(dice.next(), radix: 16))","title":"\(title)","type":"task"}
                    """
                return size
                    + (try encoder.frame(
                        number: UInt64(number),
                        type: .request,
                        flags: .compressed,
                        payload: Array(text.utf8)[...]
                    )).count
            }
        }
        let (fast, zlib) = (try size(atLevel: 1), try size(atLevel: 2))
        #expect(Double(fast) < 1.15 * Double(zlib))
    }
}
