import PhotoDropCore
import Testing

@Suite struct ImageTests {
    @Test func sniffing() {
        func type(_ bytes: [UInt8]) -> ImageType? { ImageType(sniffing: bytes) }
        #expect(type(Fixtures.jpeg()) == .jpeg)
        #expect(type(Fixtures.png()) == .png)
        #expect(type(Array("GIF89a......".utf8)) == .gif)
        #expect(type(Array("RIFF....WEBPVP8 ".utf8)) == .webp)
        #expect(type([0, 0, 0, 24] + Array("ftypheic".utf8)) == .heic)
        #expect(type([0, 0, 0, 24] + Array("ftypavif".utf8)) == .avif)
        #expect(type([0, 0, 0, 24] + Array("ftypisom".utf8)) == .mp4)
        #expect(type([0, 0, 0, 20] + Array("ftypqt  ".utf8)) == .mov)
        #expect(type([0, 0, 0, 24] + Array("ftypcrx ".utf8)) == .cr3)
        #expect(type([0, 0, 0, 24] + Array("ftypM4A ".utf8)) == nil)
        #expect(type(Array("RIFF....AVI LIST".utf8)) == .avi)
        #expect(type(Array("RIFF....WAVEfmt ".utf8)) == nil)
        #expect(type([0x1A, 0x45, 0xDF, 0xA3]) == .webm)
        #expect(type(Array("FUJIFILMCCD-RAW 0201".utf8)) == .raf)
        #expect(type(Array("IIU\0".utf8)) == .rw2)
        #expect(type(Array("IIRS".utf8)) == .orf)
        #expect(type([0x49, 0x49, 0x2A, 0]) == .tiff)
        #expect(type(Array("<svg xmlns='http://www.w3.org/2000/svg'>".utf8)) == nil)
        #expect(type([]) == nil)
        #expect(type([0xFF]) == nil)
    }

    @Test func jpegHeader() throws {
        let info = try #require(ImageInfo(header: Fixtures.jpeg(orientation: 6)))
        #expect(info.width == 3_000)
        #expect(info.height == 4_000)
        #expect(info.orientation == 6)
        #expect(info.taken == "2026-11-21T10:00:00")
    }

    @Test func uprightJPEG() throws {
        let info = try #require(ImageInfo(header: Fixtures.jpeg(orientation: 3)))
        #expect(info.width == 4_000)
        #expect(info.height == 3_000)
    }

    @Test func pngHeader() throws {
        let info = try #require(ImageInfo(header: Fixtures.png()))
        #expect(info.width == 2)
        #expect(info.height == 3)
    }

    @Test func anyCutIsHarmless() {
        for file in [Fixtures.jpeg(), Fixtures.png()] {
            for count in 0..<file.count { _ = ImageInfo(header: Array(file.prefix(count))) }
        }
    }

    @Test func anyByteIsHarmless() {
        let file = Fixtures.jpeg()
        for index in file.indices.prefix(220) {
            for value: UInt8 in [0, 1, 0x7F, 0xFF] {
                var damaged = file
                damaged[index] = value
                _ = ImageInfo(header: damaged)
                var stripper = JPEGStripper()
                var output: [UInt8] = []
                _ = try? stripper.process(damaged, into: &output)
                #expect(output.count <= damaged.count + EXIF.segment(orientation: 1).count)
            }
        }
    }

    @Test(arguments: [1, 2, 3, 7, 1_000])
    func strippedJPEG(pieces: Int) throws {
        var stripper = JPEGStripper()
        let file = Fixtures.jpeg(orientation: 6)
        var output: [UInt8] = []
        for start in stride(from: 0, to: file.count, by: pieces) {
            try stripper.process(file[start..<min(file.count, start + pieces)], into: &output)
        }
        try stripper.finish()
        #expect(!output.contains(text: "GPS"))
        #expect(!output.contains(text: "secret"))
        #expect(output.contains(text: "JFIF"))
        #expect(output.contains(text: "ICC_PROFILE"))
        #expect(output.suffix(10) == [1, 2, 0xFF, 0x00, 3, 0xFF, 0xD0, 4, 0xFF, 0xD9])
        let info = try #require(ImageInfo(header: output))
        #expect(info.orientation == 6)
        #expect(info.taken == nil)
        #expect(info.width == 3_000)
    }

    @Test func strippedUprightJPEGHasNoEXIF() throws {
        var stripper = JPEGStripper()
        var output: [UInt8] = []
        try stripper.process(Fixtures.jpeg(orientation: 1), into: &output)
        try stripper.finish()
        #expect(!output.contains(text: "Exif"))
    }

    @Test(arguments: [1, 5, 1_000])
    func strippedPNG(pieces: Int) throws {
        var stripper = PNGStripper()
        let file = Fixtures.png()
        var output: [UInt8] = []
        for start in stride(from: 0, to: file.count, by: pieces) {
            try stripper.process(file[start..<min(file.count, start + pieces)], into: &output)
        }
        try stripper.finish()
        #expect(!output.contains(text: "secret"))
        #expect(!output.contains(text: "GPS"))
        #expect(output.contains(text: "IDAT"))
        #expect(output.suffix(8) == Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82])
    }

    @Test func cutFilesAreNotStripped() throws {
        let file = Fixtures.jpeg()
        var stripper = JPEGStripper()
        var output: [UInt8] = []
        try stripper.process(file.prefix(200), into: &output)
        #expect(throws: DropError.self) { try stripper.finish() }
    }

    @Test func otherTypesCannotBeStripped() {
        let error = #expect(throws: DropError.self) { try ImageType.heic.makeStripper() }
        #expect(error?.message == "cannot strip HEIC")
    }
}
