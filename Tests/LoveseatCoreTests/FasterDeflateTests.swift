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
}
