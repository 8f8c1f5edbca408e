/// What PhotoDrop uses of a JPEG's EXIF metadata.
package struct EXIF: Hashable, Sendable {
    /// How to turn the picture, from 1 to 8; nil if it does not say.
    package private(set) var orientation: Int?
    /// When it was taken, as `2026-11-21T10:00:00` in the camera's time zone; nil if it does not say.
    package private(set) var taken: String?

    /// The beginning of an APP1 segment with EXIF.
    package static let marker: [UInt8] = Array("Exif\0\0".utf8)
    private static let maximumEntries = 512

    private enum Tag {
        static let orientation = 0x0112
        static let dateTime = 0x0132
        static let exifDirectory = 0x8769
        static let dateTimeOriginal = 0x9003
    }

    /// Reads the content of an APP1 segment, without its marker and length. Nil if it is not EXIF.
    package init?(segment: some Collection<UInt8>) {
        guard segment.starts(with: Self.marker) else { return nil }
        var reader = ByteReader(segment.dropFirst(Self.marker.count))
        switch reader.text(at: 0, count: 2) {
        case "II": reader.isBigEndian = false
        case "MM": reader.isBigEndian = true
        default: return nil
        }
        guard reader.number(at: 2, bytes: 2) == 42, let first = reader.number(at: 4, bytes: 4) else {
            return nil
        }
        var subdirectory: Int?
        var modified: String?
        Self.forEachEntry(of: first, in: reader) { tag, offset in
            switch tag {
            case Tag.orientation:
                orientation = reader.number(at: offset, bytes: 2).flatMap { (1...8).contains($0) ? $0 : nil }
            case Tag.dateTime: modified = Self.date(at: offset, in: reader)
            case Tag.exifDirectory: subdirectory = reader.number(at: offset, bytes: 4)
            default: break
            }
        }
        // The directory of the directory, and nothing deeper.
        if let subdirectory {
            Self.forEachEntry(of: subdirectory, in: reader) { tag, offset in
                if tag == Tag.dateTimeOriginal { taken = Self.date(at: offset, in: reader) }
            }
        }
        taken = taken ?? modified
    }

    /// Calls a closure with the tag and the place of the value of each entry of a directory.
    private static func forEachEntry(of start: Int, in reader: ByteReader, _ body: (Int, Int) -> Void) {
        guard let count = reader.number(at: start, bytes: 2) else { return }
        for index in 0..<min(count, maximumEntries) {
            let entry = start + 2 + index * 12
            guard let tag = reader.number(at: entry, bytes: 2) else { return }
            body(tag, entry + 8)
        }
    }

    /// Reads `2026:11:21 10:00:00` and the zero byte behind it, which are too long for the entry itself.
    private static func date(at offset: Int, in reader: ByteReader) -> String? {
        guard let place = reader.number(at: offset, bytes: 4), let text = reader.text(at: place, count: 19)
        else { return nil }
        let pattern = "0000:00:00 00:00:00"
        let isDate = zip(text.unicodeScalars, pattern.unicodeScalars).allSatisfy { found, expected in
            expected == "0" ? ("0"..."9").contains(found) : found == expected
        }
        guard isDate, text.unicodeScalars.count == pattern.unicodeScalars.count, !text.hasPrefix("0000")
        else { return nil }
        return "\(text.prefix(10).replacing(":", with: "-"))T\(text.suffix(8))"
    }

    /// An APP1 segment, with its marker and length, that says how to turn the picture and nothing else.
    package static func segment(orientation: Int) -> [UInt8] {
        let content = marker + content(orientation: orientation)
        let length = content.count + 2
        return [0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 0xFF)] + content
    }

    /// EXIF that says how to turn the picture and nothing else, without its marker.
    package static func content(orientation: Int) -> [UInt8] {
        var content = Array("MM".utf8) + [0, 42, 0, 0, 0, 8]
        content += [0, 1]  // One entry.
        content += [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(clamping: orientation), 0, 0]
        content += [0, 0, 0, 0]  // No further directory.
        return content
    }
}
