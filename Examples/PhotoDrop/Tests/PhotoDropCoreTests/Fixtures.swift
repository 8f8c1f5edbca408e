import PhotoDropCore

/// Small files that look like images.
enum Fixtures {
    /// A JPEG with EXIF (an orientation, a date and a GPS directory), XMP, a colour profile, a comment, a scan, and another picture behind it.
    static func jpeg(orientation: UInt8 = 6, width: Int = 4_000, height: Int = 3_000) -> [UInt8] {
        [0xFF, 0xD8] + segment(0xE0, Array("JFIF\0".utf8) + [1, 2, 0, 0, 1, 0, 1, 0, 0])
            + segment(0xE1, exif(orientation: orientation))
            + segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0<secret place/>".utf8))
            + segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + profile())
            + segment(0xED, Array("Photoshop 3.0\0secret".utf8))
            + segment(0xFE, Array("secret comment".utf8))
            + segment(0xC0, [8] + number(height) + number(width) + [1, 1, 0x11, 0])
            + segment(0xDA, [1, 1, 0, 0, 63, 0]) + [1, 2, 0xFF, 0x00, 3, 0xFF, 0xD0, 4, 0xFF, 0xD9]
            + [0xFF, 0xD8] + segment(0xE1, exif(orientation: 1)) + [0xFF, 0xD9]
    }

    static func segment(_ code: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xFF, code] + number(content.count + 2) + content
    }

    static func number(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)] }

    /// Big-endian EXIF: the orientation, a subdirectory with the date, and a GPS directory with a latitude.
    static func exif(orientation: UInt8) -> [UInt8] {
        var bytes: [UInt8] = Array("MM".utf8) + [0, 42, 0, 0, 0, 8]
        bytes += [0, 3]
        bytes += [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]
        bytes += [0x87, 0x69, 0, 4, 0, 0, 0, 1, 0, 0, 0, 50]
        bytes += [0x88, 0x25, 0, 4, 0, 0, 0, 1, 0, 0, 0, 88]
        bytes += [0, 0, 0, 0]
        bytes += [0, 1, 0x90, 0x03, 0, 2, 0, 0, 0, 20, 0, 0, 0, 68, 0, 0, 0, 0]
        bytes += Array("2026:11:21 10:00:00\0".utf8)
        bytes += [0, 1, 0, 2, 0, 5, 0, 0, 0, 3, 0, 0, 0, 106, 0, 0, 0, 0]
        bytes += Array("GPS48.8583".utf8)
        return EXIF.marker + bytes
    }

    static func png() -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            + chunk("IHDR", [0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 0, 0, 0])
            + chunk("tEXt", Array("Comment\0secret".utf8)) + chunk("eXIf", exif(orientation: 1))
            + chunk("IDAT", [1, 2, 3]) + chunk("IEND", []) + Array("secret tail".utf8)
    }

    static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let checked = Array(name.utf8) + content
        return long(content.count) + checked + long(Int(PNGWriter.crc32(checked)))
    }

    static func long(_ value: Int) -> [UInt8] { number(value >> 16) + number(value) }

    /// A colour profile of three primaries and a curve, with `note` wherever a profile can have text, or bytes that nobody needs.
    static func profile(version: UInt8 = 2, note: String = "secret profile") -> [UInt8] {
        let text = Array(note.utf8)
        func xyz(_ number: Int) -> [UInt8] {
            Array("XYZ ".utf8) + text.prefix(4) + long(number) + long(2 * number) + long(3 * number) + text
        }
        let curve = Array("curv".utf8) + long(0) + long(1) + [2, 0x33] + text
        let tags: [(String, [UInt8])] = [
            ("desc", Array("desc".utf8) + long(0) + long(text.count) + text),
            ("cprt", Array("text".utf8) + long(0) + text),
            ("wtpt", xyz(1)), ("rXYZ", xyz(2)), ("gXYZ", xyz(3)), ("bXYZ", xyz(4)), ("rTRC", curve),
            ("gTRC", curve), ("bTRC", curve),
            ("meta", text), ("Xprv", text),
        ]
        var header = Array(long(0) + text.prefix(4)) + [version, 0, 0, 0] + Array("mntrRGB XYZ ".utf8)
        header += text.prefix(12) + Array("acsp".utf8) + text.prefix(8)
        header += [UInt8](repeating: 0, count: 64 - header.count)
        header += long(1) + long(0xF6D6) + long(0x10000) + long(0xD32D) + text.prefix(20)
        header += [UInt8](repeating: 0, count: 128 - header.count)
        var table = long(tags.count)
        var contents: [UInt8] = []
        for (name, content) in tags {
            table += Array(name.utf8) + long(128 + 4 + tags.count * 12 + contents.count) + long(content.count)
            contents += content
        }
        let all = header + table + contents
        return long(all.count) + all.dropFirst(4)
    }
}

extension Array<UInt8> {
    func contains(text: String) -> Bool {
        let wanted = Array(text.utf8)
        return indices.contains { self[$0...].starts(with: wanted) }
    }
}
