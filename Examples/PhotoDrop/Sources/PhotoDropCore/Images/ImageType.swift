/// The kind of an image, found by its first bytes.
package enum ImageType: String, Hashable, Sendable, CaseIterable {
    case jpeg, png, gif, webp, heic, avif, tiff

    /// How many bytes ``init(sniffing:)`` looks at.
    package static let sniffedBytes = 32

    /// Finds the type of a file by its first bytes; nil if it is not an image.
    package init?(sniffing bytes: some Collection<UInt8>) {
        let start = Array(bytes.prefix(Self.sniffedBytes))
        func has(_ text: String, at offset: Int = 0) -> Bool {
            start.dropFirst(offset).starts(with: text.utf8)
        }
        if start.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if start.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if has("GIF87a") || has("GIF89a") {
            self = .gif
        } else if has("RIFF"), has("WEBP", at: 8) {
            self = .webp
        } else if has("ftyp", at: 4) {
            let brand = String(decoding: start.dropFirst(8).prefix(4), as: UTF8.self)
            switch brand {
            case "avif", "avis": self = .avif
            case "heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1": self = .heic
            default: return nil
            }
        } else if start.starts(with: [0x49, 0x49, 0x2A, 0x00])
            || start.starts(with: [0x4D, 0x4D, 0x00, 0x2A])
        {
            self = .tiff
        } else {
            return nil
        }
    }

    /// Whether browsers can show it.
    package var isShownByBrowsers: Bool {
        switch self {
        case .heic, .tiff: false
        default: true
        }
    }

    package var mediaType: String { "image/\(rawValue)" }

    /// The usual extension of a file's name.
    package var fileExtension: String {
        switch self {
        case .jpeg: "jpg"
        case .tiff: "tif"
        default: rawValue
        }
    }

    /// Whether a file of this type may have a name with this extension.
    package func allows(fileExtension: String) -> Bool {
        switch self {
        case .jpeg: ["jpg", "jpeg", "jpe", "jfif"].contains(fileExtension)
        case .tiff: ["tif", "tiff", "dng"].contains(fileExtension)
        case .heic: ["heic", "heif", "hif"].contains(fileExtension)
        default: fileExtension == rawValue
        }
    }
}
