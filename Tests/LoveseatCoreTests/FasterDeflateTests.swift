import LoveseatBLIP
import LoveseatCore
import LoveseatTesting
import Testing

/// ISA-L in place of zlib's deflate and CRC-32, where it is installed.
@Suite struct FasterDeflateTests {
    @Test func `what ISA-L deflates and sums in frames of any size, zlib inflates and finds right`() throws {
        guard let deflater = ISALDeflater() else {
            return print("LOUD: ISA-L (libisal-dev) is not installed; its deflate was not tested")
        }
        let checksum = try #require(ISALDeflater.checksum)
        var encoder = FrameEncoder(compressionLevel: 1, deflater: deflater, checksum: checksum)
        var decoder = FrameDecoder(largestFrame: 1 << 20)
        var dice = SeededGenerator(seed: 7)
        var (plain, sent) = (0, 0)
        for number in 0..<4_000 {
            let size = Int.random(in: 1...(number % 10 == 0 ? 16_300 : 900), using: &dice)
            // Noise, one letter, words, and what was there before.
            let letters: [UInt8] =
                switch number % 4 {
                case 0: (0..<size).map { _ in .random(in: 0...255, using: &dice) }
                case 1: Array(repeating: 120, count: size)
                default: (0..<size).map { _ in .random(in: 97...101, using: &dice) }
                }
            let frame = try encoder.frame(
                number: UInt64(number),
                type: .request,
                flags: .compressed,
                payload: letters[...]
            )
            let decoded = try decoder.decode(frame)
            #expect(decoded?.payload == letters[...], "frame \(number)")
            plain += size
            sent += frame.count
        }
        #expect(sent < plain * 3 / 4)
    }

    /// The bytes that messages become in frames.
    private func sent(_ messages: [String], _ deflater: (any Deflater)?) throws -> Int {
        var encoder = FrameEncoder(compressionLevel: 1, deflater: deflater)
        var decoder = FrameDecoder(largestFrame: 1 << 20)
        var sum = 0
        for (number, message) in messages.enumerated() {
            let payload = Array(message.utf8)
            let frame = try encoder.frame(
                number: UInt64(number + 1),
                type: .request,
                flags: .compressed,
                payload: payload[...]
            )
            #expect(try decoder.decode(frame)?.payload == payload[...])
            sum += frame.count
        }
        return sum
    }

    private static let kinds = ["alike", "small", "words", "digits", "other letters", "mixed"]

    private func messages(_ kind: String) -> [String] {
        var dice = SeededGenerator(seed: 11)
        func word(_ letters: ClosedRange<UInt32>, _ count: Int) -> String {
            String(
                String.UnicodeScalarView(
                    (0..<count).map { _ in Unicode.Scalar(.random(in: letters, using: &dice)) ?? "x" }
                )
            )
        }
        return (0..<2_000).map { number in
            switch kind == "mixed" ? Self.kinds[number / 300 % 5] : kind {
            case "alike":
                return
                    #"{"type":"sight","name":"A place with a view","city":"Oslo","number":\#(number),"at":"2026-11-\#(number % 28)"}"#
            case "small": return #"{"t":\#(Double.random(in: 0...30, using: &dice)),"n":\#(number)}"#
            case "words": return (0..<80).map { _ in word(97...117, 6) }.joined(separator: " ")
            case "digits": return word(48...57, 600)
            default: return word(0x4E00...0x9FFF, 200)
            }
        }
    }

    @Test(arguments: kinds) func `the codes suit what is sent`(_ kind: String) throws {
        guard let deflater = ISALDeflater() else { return }
        let messages = messages(kind)
        let (fast, small) = (try sent(messages, deflater), try sent(messages, nil))
        // Other codes are found a few dozen messages after what is sent has changed.
        #expect(fast < small * (kind == "mixed" ? 15 : 12) / 10, "\(fast) bytes, and \(small) by zlib")
    }
}
