/// What the beginning of the file of a picture or a video says.
package struct ImageInfo: Hashable, Sendable {
    /// How much of a file's beginning is enough, in bytes.
    package static let headerBytes = 1 << 20

    package let type: ImageType
    /// The width after turning the picture upright; nil if it was not found.
    package private(set) var width: Int?
    /// The height after turning the picture upright; nil if it was not found.
    package private(set) var height: Int?
    /// When the picture was taken, in the camera's time zone; nil if it does not say.
    package private(set) var taken: String?
    package private(set) var orientation: Int?

    /// Reads the beginning of a file; nil if it is neither a picture nor a video.
    package init?(header: [UInt8]) {
        guard let type = ImageType(sniffing: header) else { return nil }
        self.type = type
        let reader = ByteReader(header.prefix(Self.headerBytes), isBigEndian: type != .gif && type != .webp)
        switch type {
        case .jpeg: readJPEG(reader)
        case .png:
            guard reader.text(at: 12, count: 4) == "IHDR" else { break }
            (width, height) = (reader.number(at: 16, bytes: 4), reader.number(at: 20, bytes: 4))
        case .gif: (width, height) = (reader.number(at: 6, bytes: 2), reader.number(at: 8, bytes: 2))
        case .webp: readWebP(reader)
        default: break
        }
    }

    /// The number of pixels; nil if the size was not found.
    package var pixels: Int? {
        guard let width, let height else { return nil }
        let (product, overflow) = width.multipliedReportingOverflow(by: height)
        return overflow ? nil : product
    }

    private mutating func readJPEG(_ reader: ByteReader) {
        var offset = 2
        while let marker = reader.number(at: offset, bytes: 2),
            let length = reader.number(at: offset + 2, bytes: 2),
            marker & 0xFF00 == 0xFF00, length >= 2
        {
            switch marker & 0xFF {
            case 0xE1 where orientation == nil && taken == nil:
                guard let content = reader.bytes(at: offset + 4, count: length - 2),
                    let exif = EXIF(segment: content)
                else { break }
                (orientation, taken) = (exif.orientation, exif.taken)
            case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
                let size = (reader.number(at: offset + 7, bytes: 2), reader.number(at: offset + 5, bytes: 2))
                (width, height) = orientation ?? 1 > 4 ? (size.1, size.0) : size
                return
            case 0xD9, 0xDA: return
            default: break
            }
            offset += 2 + length
        }
    }

    private mutating func readWebP(_ reader: ByteReader) {
        switch reader.text(at: 12, count: 4) {
        case "VP8X":
            width = reader.number(at: 24, bytes: 3).map { $0 + 1 }
            height = reader.number(at: 27, bytes: 3).map { $0 + 1 }
        case "VP8 ":
            width = reader.number(at: 26, bytes: 2).map { $0 & 0x3FFF }
            height = reader.number(at: 28, bytes: 2).map { $0 & 0x3FFF }
        case "VP8L":
            guard let bits = reader.number(at: 21, bytes: 4) else { return }
            (width, height) = (bits & 0x3FFF + 1, bits >> 14 & 0x3FFF + 1)
        default: break
        }
    }
}
