import CDeflate

/// Keeps the chunks of a PNG that show the picture: the critical ones, those of colours and transparency, and APNG's (PNG, third edition).
/// Of EXIF, only the orientation stays.
package struct PNGStripper: MetadataStripper {
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let headerBytes = 8
    private static let checksumBytes = 4

    /// The other chunks of which something may stay, with the maximum length that is looked at.
    private static let maximumLengths = [
        "IHDR": 13, "PLTE": 768, "IEND": 0, "tRNS": 256, "bKGD": 6, "cHRM": 32, "gAMA": 4, "sRGB": 1,
        "sBIT": 4, "cICP": 4,
        "mDCV": 24, "cLLI": 8, "acTL": 8, "fcTL": 26, "iCCP": ColorProfile.maximumBytes, "eXIf": 64 << 10,
    ]
    /// Without these there is no picture.
    private static let required: Set<String> = ["IHDR", "PLTE", "IEND"]

    private enum State {
        case signature
        case header
        /// The content and checksum of a chunk that is copied or left out.
        case passing(left: Int, isKept: Bool)
        /// The content and checksum of a chunk that is looked at first.
        case chunk(name: String, length: Int)
        case end
    }

    private var state = State.signature
    private var pending: [UInt8] = []
    /// Nil before the first chunk.
    private var picture: PNGHeader?
    /// The chunks that stay. All but APNG's frames are there once.
    private var stays: Set<String> = []

    package init() {}

    package mutating func process(_ bytes: some Collection<UInt8>, into output: inout [UInt8])
        throws(DropError)
    {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            switch state {
            case .signature:
                guard fill(Self.signature.count, from: &rest) else { return }
                guard take() == Self.signature else { throw .damagedPNG }
                output += Self.signature
                state = .header
            case .header:
                guard fill(Self.headerBytes, from: &rest) else { return }
                try begin(take(), into: &output)
            case .passing(let left, let isKept):
                let part = rest.prefix(left)
                rest = rest.dropFirst(part.count)
                if isKept { output += part }
                state = left > part.count ? .passing(left: left - part.count, isKept: isKept) : .header
            case .chunk(let name, let length):
                guard fill(length + Self.checksumBytes, from: &rest) else { return }
                let content = take().dropLast(Self.checksumBytes)
                if let kept = try kept(name, Array(content)) {
                    stays.insert(name)
                    output += PNGWriter.chunk(name, kept)
                }
                state = name == "IEND" ? .end : .header
            case .end: return
            }
        }
    }

    package func finish() throws(DropError) {
        guard case .end = state else { throw DropError(.data, "the PNG is cut off") }
    }

    private mutating func begin(_ header: [UInt8], into output: inout [UInt8]) throws(DropError) {
        let length = header.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        let name = String(decoding: header.suffix(4), as: UTF8.self)
        // Pixels of Apple's variant are stored in another way, which only this chunk tells.
        guard length < 1 << 31, name != "CgBI", (name == "IHDR") == (picture == nil) else {
            throw .damagedPNG
        }
        if picture?.hasPixels(name) == true {
            output += header
            state = .passing(left: length + Self.checksumBytes, isKept: true)
        } else if name == "fcTL" || !stays.contains(name), Self.maximumLengths[name] ?? -1 >= length {
            state = .chunk(name: name, length: length)
        } else {
            guard !Self.required.contains(name) else { throw .damagedPNG }
            state = .passing(left: length + Self.checksumBytes, isKept: false)
        }
    }

    /// What stays of a chunk; nil to leave it out.
    private mutating func kept(_ name: String, _ content: [UInt8]) throws(DropError) -> [UInt8]? {
        switch name {
        case "IHDR":
            picture = PNGHeader(content)
            guard picture != nil else { throw .damagedPNG }
            return content
        case "IEND": return []
        case "iCCP":
            guard let end = content.firstIndex(of: 0), content.dropFirst(end + 1).first == 0,
                let profile = Self.inflated(content[(end + 2)...]).flatMap({ ColorProfile.reduced($0) })
            else { return nil }
            // Chunks of profiles begin with a name, and the method of compression.
            return [0x2D, 0, 0] + PNGWriter.zlib(profile)
        case "eXIf":
            guard let turned = EXIF(segment: EXIF.marker + content)?.orientation, turned != 1 else {
                return nil
            }
            return EXIF.content(orientation: turned)
        default: return picture?.kept(name, content)
        }
    }

    /// Decompresses a profile; nil if it is damaged or too large.
    private static func inflated(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        let source = Array(bytes)
        var size = 64 << 10
        while size <= ColorProfile.maximumBytes {
            var output = [UInt8](repeating: 0, count: size)
            var length = uLongf(size)
            switch uncompress(&output, &length, source, uLong(source.count)) {
            case Z_OK: return Array(output.prefix(Int(length)))
            case Z_BUF_ERROR: size *= 8
            default: return nil
            }
        }
        return nil
    }

    private mutating func fill(_ count: Int, from rest: inout ArraySlice<UInt8>) -> Bool {
        let part = rest.prefix(count - pending.count)
        pending += part
        rest = rest.dropFirst(part.count)
        return pending.count == count
    }

    private mutating func take() -> [UInt8] {
        defer { pending = [] }
        return pending
    }
}

extension DropError {
    fileprivate static var damagedPNG: DropError {
        DropError(.data, "the PNG is damaged, or of a kind that is not known")
    }
}
