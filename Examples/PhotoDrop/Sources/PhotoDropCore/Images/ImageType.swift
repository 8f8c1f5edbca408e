/// The kind of a picture or a video, found by its first bytes.
package enum ImageType: String, Hashable, Sendable, CaseIterable {
    case jpeg, png, gif, webp, heic, avif, tiff
    /// Raw formats of cameras; most others are TIFF.
    case cr3, crw, raf, orf, rw2, mrw, x3f
    case mp4, mov, threeGP, webm, avi

    /// How many bytes ``init(sniffing:)`` looks at.
    package static let sniffedBytes = 32

    /// The names of raw formats that are TIFF.
    private static let rawTIFF: Set<String> = [
        "3fr", "arq", "arw", "cr2", "dcr", "dng", "drf", "erf", "fff", "gpr", "iiq", "k25", "kdc", "mef",
        "mos", "nef",
        "nrw", "pef", "ptx", "raw",
        "rwl", "sr2", "srf", "srw",
    ]

    /// The brands of files that begin with a box of that name (ISO 14496-12).
    private static let brands: [(type: ImageType, names: Set<String>)] = [
        (.avif, ["avif", "avis"]),
        (.heic, ["heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1"]),
        (.cr3, ["crx "]),
        (.mov, ["qt  "]),
        (.threeGP, ["3gp4", "3gp5", "3gp6", "3gp7", "3g2a", "3g2b", "3g2c"]),
        (
            .mp4,
            [
                "isom", "iso2", "iso3", "iso4", "iso5", "iso6", "iso8", "mp41", "mp42", "avc1", "M4V ",
                "M4VH", "M4VP", "MSNV", "XAVC",
                "dash", "f4v ",
            ]
        ),
    ]

    /// Finds the type of a file by its first bytes; nil if it is neither a picture nor a video.
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
        } else if has("RIFF"), has("AVI ", at: 8) {
            self = .avi
        } else if has("ftyp", at: 4) {
            let brand = String(decoding: start.dropFirst(8).prefix(4), as: UTF8.self)
            guard let type = Self.brands.first(where: { $0.names.contains(brand) })?.type else { return nil }
            self = type
        } else if has("moov", at: 4) || has("mdat", at: 4) || has("wide", at: 4) {
            // QuickTime of before 2001, and of some cameras.
            self = .mov
        } else if start.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
            self = .webm
        } else if has("FUJIFILMCCD-RAW") {
            self = .raf
        } else if has("IIRO") || has("IIRS") || has("MMOR") {
            self = .orf
        } else if has("IIU\0") {
            self = .rw2
        } else if has("HEAPCCDR", at: 6) {
            self = .crw
        } else if has("\0MRM") {
            self = .mrw
        } else if has("FOVb") {
            self = .x3f
        } else if has("II*\0") || has("MM\0*") {
            self = .tiff
        } else {
            return nil
        }
    }

    /// Whether browsers can show it as a picture.
    package var isShownByBrowsers: Bool {
        switch self {
        case .jpeg, .png, .gif, .webp, .avif: true
        default: false
        }
    }

    package var isVideo: Bool {
        switch self {
        case .mp4, .mov, .threeGP, .webm, .avi: true
        default: false
        }
    }

    package var mediaType: String {
        switch self {
        case .cr3: "image/x-canon-cr3"
        case .crw: "image/x-canon-crw"
        case .raf: "image/x-fuji-raf"
        case .orf: "image/x-olympus-orf"
        case .rw2: "image/x-panasonic-rw2"
        case .mrw: "image/x-minolta-mrw"
        case .x3f: "image/x-sigma-x3f"
        case .mp4: "video/mp4"
        case .mov: "video/quicktime"
        case .threeGP: "video/3gpp"
        case .webm: "video/webm"
        case .avi: "video/x-msvideo"
        default: "image/\(rawValue)"
        }
    }

    /// The usual extension of a file's name.
    package var fileExtension: String {
        switch self {
        case .jpeg: "jpg"
        case .tiff: "tif"
        case .threeGP: "3gp"
        default: rawValue
        }
    }

    /// Whether a file of this type may have a name with this extension.
    package func allows(fileExtension: String) -> Bool {
        switch self {
        case .jpeg: ["jpg", "jpeg", "jpe", "jfif"].contains(fileExtension)
        case .tiff: ["tif", "tiff"].contains(fileExtension) || Self.rawTIFF.contains(fileExtension)
        case .heic: ["heic", "heif", "hif"].contains(fileExtension)
        case .rw2: ["rw2", "raw", "rwl"].contains(fileExtension)
        case .orf: ["orf", "ori"].contains(fileExtension)
        case .mp4: ["mp4", "m4v", "mov", "f4v"].contains(fileExtension)
        case .mov: ["mov", "qt", "mp4"].contains(fileExtension)
        case .threeGP: ["3gp", "3g2", "3gpp", "mp4"].contains(fileExtension)
        case .webm: ["webm", "mkv"].contains(fileExtension)
        default: fileExtension == rawValue
        }
    }
}
