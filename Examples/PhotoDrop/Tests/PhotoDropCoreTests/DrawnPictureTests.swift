import PhotoDropCore
import Testing

@Suite struct DrawnPictureTests {
    @Test func pictureIsAPNG() throws {
        let png = DrawnPicture(number: 1, width: 40, height: 30).png
        let info = try #require(ImageInfo(header: png))
        #expect(info.type == .png)
        #expect(info.width == 40 && info.height == 30)
        // The rows are stored as they are, each with the number of its filter.
        #expect(png.count > 30 * (1 + 3 * 40))
        #expect(png.suffix(8).prefix(4).elementsEqual("IEND".utf8))
    }

    @Test func numberDecidesThePicture() {
        func png(_ number: Int) -> [UInt8] { DrawnPicture(number: number, width: 20, height: 20).png }
        #expect(png(1) == png(1))
        #expect(png(1) != png(2))
    }

    @Test func checksumsAreThoseOfTheStandards() {
        #expect(PNGWriter.crc32(Array("123456789".utf8)) == 0xCBF4_3926)
        #expect(PNGWriter.adler32(Array("Wikipedia".utf8)) == 0x11E6_0398)
    }
}
