import PhotoDropCore
import Testing

/// `--strip` keeps what is listed, whatever else a file has.
@Suite struct StripTests {
    private static let note = "LEAK-59.91N-10.75E"
    private static let leak = Array(note.utf8)

    /// SplitMix64.
    private struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    private func strip(_ file: [UInt8], _ type: ImageType, _ random: inout Random) throws -> [UInt8] {
        var stripper = try type.makeStripper()
        var output: [UInt8] = []
        var rest = file[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...40, using: &random))
            try stripper.process(piece, into: &output)
            rest = rest.dropFirst(piece.count)
        }
        try stripper.finish()
        return output
    }

    // MARK: PNG

    private static let kept = [
        "IHDR", "PLTE", "IDAT", "IEND", "tRNS", "bKGD", "cHRM", "gAMA", "iCCP", "sRGB", "sBIT", "cICP",
        "mDCV", "cLLI", "acTL",
        "fcTL", "fdAT", "eXIf",
    ]

    private func chunks(_ png: [UInt8]) -> [(name: String, content: [UInt8])] {
        var found: [(String, [UInt8])] = []
        var place = 8
        while place + 12 <= png.count {
            let length = png[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
            guard place + 12 + length <= png.count else { return [] }
            let name = String(decoding: png[place + 4..<place + 8], as: UTF8.self)
            found.append((name, Array(png[place + 8..<place + 8 + length])))
            place += 12 + length
        }
        return place == png.count ? found : []
    }

    /// A chunk that has to go: of any name, or with a name that stays and a content that is not its own.
    private func foreignChunk(_ random: inout Random) -> [UInt8] {
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        let known = [
            "caBX", "zxIf", "prVW", "tEXt", "iTXt", "zTXt", "tIME", "eXIf", "sPLT", "hIST", "iDOT", "dSIG",
            "gAMA", "iCCP", "sBIT",
        ]
        let name =
            Bool.random(using: &random)
            ? known.randomElement(using: &random) ?? ""
            : String((0..<4).map { _ in letters.randomElement(using: &random) ?? "a" })
        guard !Self.kept.contains(name) || known.contains(name), name != "CgBI" else { return [] }
        return Fixtures.chunk(
            name,
            [UInt8](repeating: 0, count: Int.random(in: 0...3, using: &random)) + Self.leak
        )
    }

    @Test(arguments: 1...300 as ClosedRange<UInt64>)
    func `of a PNG only the chunks that show the picture stay`(seed: UInt64) throws {
        var random = Random(state: seed)
        func foreign() -> [UInt8] {
            (0..<Int.random(in: 0...3, using: &random)).flatMap { _ in foreignChunk(&random) }
        }
        let pixels = (0..<3).map { _ in (0..<Int.random(in: 0...50, using: &random)).map { UInt8($0) } }
        let turned = UInt8.random(in: 1...8, using: &random)
        var file = Array([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] as [UInt8])
        file += Fixtures.chunk("IHDR", [0, 0, 0, 2, 0, 0, 0, 3, 8, 3, 0, 0, 0])
        // The colours come first: each chunk stays once.
        file += Fixtures.chunk("gAMA", [0, 0, 0xB1, 0x8F])
        let profile = Fixtures.profile(version: seed % 2 == 0 ? 2 : 4, note: Self.note)
        file += Fixtures.chunk("iCCP", Self.leak + [0, 0] + PNGWriter.zlib(profile))
        file +=
            Fixtures.chunk("eXIf", Array(Fixtures.exif(orientation: turned).dropFirst(6)) + Self.leak)
            + foreign()
        file += Fixtures.chunk("PLTE", [1, 2, 3]) + foreign() + Fixtures.chunk("tRNS", [7]) + foreign()
        file += Fixtures.chunk("acTL", [0, 0, 0, 2, 0, 0, 0, 0]) + foreign()
        for content in pixels { file += Fixtures.chunk("IDAT", content) }
        for number in 0..<2 {
            let frame: [UInt8] = [0, 0, 0, UInt8(number), 0, 0, 0, 2, 0, 0, 0, 3]
            file += foreign() + Fixtures.chunk("fcTL", frame + [UInt8](repeating: 0, count: 14))
            file += Fixtures.chunk("fdAT", [0, 0, 0, UInt8(number), 5])
        }
        file += foreign() + Fixtures.chunk("IEND", []) + Self.leak

        let output = try strip(file, .png, &random)
        #expect(!output.contains(text: "LEAK"))
        let left = chunks(output)
        #expect(left.allSatisfy { Self.kept.contains($0.name) })
        #expect(left.filter { $0.name == "IDAT" }.map(\.content) == pixels)
        let names =
            ["IHDR", "gAMA", "iCCP"] + (turned == 1 ? [] : ["eXIf"]) + [
                "PLTE", "tRNS", "acTL", "IDAT", "IDAT", "IDAT",
            ]
        #expect(left.map(\.name) == names + ["fcTL", "fdAT", "fcTL", "fdAT", "IEND"])
        if let exif = left.first(where: { $0.name == "eXIf" }) {
            #expect(EXIF(segment: EXIF.marker + exif.content)?.orientation == Int(turned))
        }
        // What was stripped stays as it is.
        #expect(try strip(output, .png, &random) == output)
    }

    /// A PNG whose header says a kind of colours and a depth, with some chunks before its pixels.
    private func stripped(_ depth: UInt8, _ kind: UInt8, _ others: [(String, [UInt8])]) throws -> [(
        name: String, content: [UInt8]
    )] {
        var random = Random(state: 1)
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        file += Fixtures.chunk("IHDR", [0, 0, 0, 2, 0, 0, 0, 3, depth, kind, 0, 0, 0])
        for (name, content) in others { file += Fixtures.chunk(name, content) }
        file += Fixtures.chunk("IDAT", [1]) + Fixtures.chunk("IEND", [])
        let output = try strip(file, .png, &random)
        #expect(try strip(output, .png, &random) == output)
        return chunks(output).dropFirst().dropLast(2)
    }

    @Test(arguments: [0, 2, 3, 4, 6] as [UInt8])
    func `a chunk of a PNG has the length that its kind of colours needs`(kind: UInt8) throws {
        // For each kind: the lengths of transparency, of a background, and of significant bits.
        let lengths: [UInt8: [String: Int]] = [
            0: ["tRNS": 2, "bKGD": 2, "sBIT": 1], 2: ["tRNS": 6, "bKGD": 6, "sBIT": 3],
            3: ["tRNS": 2, "bKGD": 1, "sBIT": 3], 4: ["bKGD": 2, "sBIT": 2], 6: ["bKGD": 6, "sBIT": 4],
        ]
        let palette: [(String, [UInt8])] = kind == 3 ? [("PLTE", [1, 2, 3, 4, 5, 6])] : []
        for name in ["tRNS", "bKGD", "sBIT"] {
            let right = lengths[kind]?[name]
            for length in 0...60 where length != right && !(kind == 3 && name == "tRNS" && length == 1) {
                let content = [UInt8](repeating: 1, count: length)
                let left = try stripped(8, kind, palette + [(name, content)])
                #expect(left.map(\.name) == palette.map(\.0), "\(name) of \(length)")
                guard let right else { continue }
                // One that is right, behind one that is not, stays.
                let good = [UInt8](repeating: name == "sBIT" || kind == 3 ? 1 : 0, count: right)
                let both = try stripped(8, kind, palette + [(name, content), (name, good)])
                #expect(both.last?.content == good, "\(name) of \(length)")
            }
        }
        guard kind != 3 else { return }
        #expect(try stripped(8, kind, [("PLTE", [1, 2, 3])]).isEmpty)
    }

    @Test func `values in a PNG that mean nothing are left out`() throws {
        // Of two bytes for a pixel of 8 bits, the second counts.
        #expect(try stripped(8, 0, [("tRNS", [0x4C, 0x45])]).map(\.content) == [[0, 0x45]])
        #expect(try stripped(16, 0, [("tRNS", [0x4C, 0x45])]).map(\.content) == [[0x4C, 0x45]])
        #expect(try stripped(1, 3, [("PLTE", [UInt8](1...9))]).map(\.content) == [[UInt8](1...6)])
        let text = Array("59.91N 10.75E 59.91N 10.75E 59.9".utf8)
        for name in ["gAMA", "cHRM", "sRGB", "cICP", "sBIT", "acTL", "fcTL", "fdAT", "PLTE", "tRNS", "bKGD"] {
            let lengths = name == "acTL" ? [] : [1, 4, 5, 6, 26, 30, 32]
            for length in lengths where length < 8 || name != "PLTE" {
                let left = try stripped(8, 6, [(name, Array(text.prefix(length)))])
                // A background of six bytes has three that count.
                let isBackground = name == "bKGD" && length == 6
                #expect(left.isEmpty || isBackground, "\(name) of \(length)")
            }
        }
        for header in [[7, 0, 0, 0, 0], [8, 1, 0, 0, 0], [8, 2, 1, 0, 0], [8, 2, 0, 0, 2]] as [[UInt8]] {
            var random = Random(state: 1)
            let file =
                [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
                + Fixtures.chunk("IHDR", [0, 0, 0, 2, 0, 0, 0, 3] + header)
            #expect(throws: DropError.self) { try strip(file, .png, &random) }
        }
    }

    // MARK: JPEG

    private func foreignSegment(_ random: inout Random) -> [UInt8] {
        let begins = [
            "", "Exif\0\0", "JFXX\0\u{10}", "HEAPJPGM", "Adobe_CM\0", "MPF\0",
            "http://ns.adobe.com/xap/1.0/\0", "Photoshop 3.0\0", "JP",
            "ICC_PROFILE\0", "FPXR\0", "Ducky", "JFIF\0",
        ]
        let codes = Array(0xE0...0xEF) + [0xFE] + Array(0xF0...0xFD) + Array(0x02...0xBF) + [0xC8]
        let begin = begins.randomElement(using: &random) ?? ""
        let code = codes.randomElement(using: &random) ?? 0xFE
        return Fixtures.segment(UInt8(code), Array(begin.utf8) + Self.leak)
    }

    @Test(arguments: 1...300 as ClosedRange<UInt64>)
    func `of a JPEG only the segments that show the picture stay`(seed: UInt64) throws {
        var random = Random(state: seed)
        func foreign() -> [UInt8] {
            (0..<Int.random(in: 0...3, using: &random)).flatMap { _ in foreignSegment(&random) }
        }
        let turned = UInt8.random(in: 1...8, using: &random)
        let table = Fixtures.segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))
        let frame = Fixtures.segment(0xC2, [8, 0, 8, 0, 8, 1, 1, 0x11, 0])
        let codes = Fixtures.segment(0xC4, [0, 1] + [UInt8](repeating: 0, count: 16))
        let scans = [[1, 2, 0xFF, 0, 3], [0xFF, 0xD0, 4]].map {
            Fixtures.segment(0xDA, [1, 1, 0, 0, 63, 0]) + ($0 as [UInt8])
        }
        // In two parts, with others between them.
        let profile = Fixtures.profile(version: seed % 2 == 0 ? 2 : 4, note: Self.note)
        let parts = [profile.prefix(100), profile.dropFirst(100)].enumerated().map { index, part in
            Fixtures.segment(0xE2, Array("ICC_PROFILE\0".utf8) + [UInt8(index + 1), 2] + part)
        }
        var file: [UInt8] = [0xFF, 0xD8]
        file += Fixtures.segment(0xE0, Array("JFIF\0".utf8) + [1, 2, 0, 0, 1, 0, 1, 2, 3] + Self.leak)
        file += parts[0] + Fixtures.segment(0xE1, Fixtures.exif(orientation: turned) + Self.leak)
        file += parts[1] + Fixtures.segment(0xEE, Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 1] + Self.leak)
        file += foreign() + table + foreign() + frame + foreign() + codes + foreign()
        file += scans[0] + foreign() + codes + scans[1] + [0xFF, 0xD9] + Self.leak

        let output = try strip(file, .jpeg, &random)
        #expect(!output.contains(text: "LEAK"))
        let info = try #require(ImageInfo(header: output))
        #expect(info.orientation == (turned == 1 ? nil : Int(turned)))
        #expect(info.taken == nil)
        #expect(info.width == 8)
        let tail = table + frame + codes + scans[0] + codes + scans[1] + [0xFF, 0xD9]
        #expect(Array(output.suffix(tail.count)) == tail)
        let head: [UInt8] =
            [0xFF, 0xD8] + Fixtures.segment(0xE0, Array("JFIF\0".utf8) + [1, 2, 0, 0, 1, 0, 1, 0, 0])
        #expect(Array(output.prefix(head.count)) == head)
        let adobe = Fixtures.segment(0xEE, Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 1])
        let exif = turned == 1 ? [] : EXIF.segment(orientation: Int(turned))
        let reduced = try #require(ColorProfile.reduced(profile))
        let colours = Fixtures.segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + reduced)
        #expect(Array(output.dropFirst(head.count).dropLast(tail.count)) == exif + colours + adobe)
        #expect(try strip(output, .jpeg, &random) == output)
    }

    @Test func `nothing hides behind a table of a JPEG`() throws {
        var random = Random(state: 1)
        let frame = Fixtures.segment(0xC0, [8, 0, 8, 0, 8, 1, 1, 0x11, 0])
        let scan = Fixtures.segment(0xDA, [1, 1, 0, 0, 63, 0]) + [1, 0xFF, 0xD9]
        let tables: [(UInt8, [UInt8])] = [
            (0xDB, [0] + [UInt8](repeating: 1, count: 64)),
            (0xC4, [0, 1] + [UInt8](repeating: 0, count: 16)), (0xDD, [0, 1]),
        ]
        for (code, content) in tables {
            let good = [0xFF, 0xD8] + Fixtures.segment(code, content) + frame + scan
            #expect(try strip(good, .jpeg, &random) == good)
            let bad = [0xFF, 0xD8] + Fixtures.segment(code, content + Self.leak) + frame + scan
            #expect(throws: DropError.self) { try strip(bad, .jpeg, &random) }
        }
        #expect(throws: DropError.self) { try strip([0xFF, 0xD8] + scan, .jpeg, &random) }
        // Nor in a table, a frame or a scan that no decoder uses.
        for (code, content) in [
            (0xDB, [4] + [UInt8](repeating: 1, count: 64)),
            (0xC4, [0x20, 1] + [UInt8](repeating: 0, count: 16)),
            (0xC4, [0] + [UInt8](repeating: 17, count: 16) + [UInt8](repeating: 1, count: 272)),
            (0xCC, [0x20, 1]),
            (0xC0, [8, 0, 8, 0, 8, 9] + [UInt8](repeating: 1, count: 27)),
            (0xDA, [9] + [UInt8](repeating: 1, count: 21)),
        ] as [(UInt8, [UInt8])] {
            let file = [0xFF, 0xD8] + frame + Fixtures.segment(code, content) + scan
            #expect(throws: DropError.self) { try strip(file, .jpeg, &random) }
        }
    }

    // MARK: Profiles

    @Test(arguments: [2, 4] as [UInt8])
    func `a reduced profile keeps the colours and is reduced to itself`(version: UInt8) throws {
        let profile = try #require(ColorProfile.reduced(Fixtures.profile(version: version, note: Self.note)))
        #expect(!profile.contains(text: "LEAK"))
        #expect(Array(profile.prefix(4)) == Fixtures.long(profile.count))
        #expect(ColorProfile.reduced(profile) == profile)
        for name in ["desc", "cprt", "wtpt", "rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC"] {
            #expect(profile.contains(text: name))
        }
        #expect(!profile.contains(text: "meta"))
    }

    @Test func `a damaged profile is left out, or reduced to one without text`() {
        let profile = Fixtures.profile(note: Self.note)
        for index in profile.indices {
            for value: UInt8 in [0, 1, 0x7F, 0xFF] {
                var damaged = profile
                damaged[index] = value
                if let reduced = ColorProfile.reduced(damaged) { #expect(!reduced.contains(text: "LEAK-59")) }
            }
        }
        #expect(ColorProfile.reduced([]) == nil)
    }

    @Test func `types whose metadata cannot be removed are refused`() {
        for type in ImageType.allCases where type != .jpeg && type != .png {
            #expect(throws: DropError.self) { try type.makeStripper() }
        }
    }
}
