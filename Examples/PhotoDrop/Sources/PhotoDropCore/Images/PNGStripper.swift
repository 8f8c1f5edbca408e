import CDeflate

/// Keeps the chunks of a PNG that show the picture: the critical ones, those of colours and transparency, and APNG's (PNG, third edition).
/// Of EXIF, only the orientation stays.
package struct PNGStripper: MetadataStripper {
    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    private static let headerBytes = 8
    private static let checksumBytes = 4

    /// Chunks that are copied as they come, with any length.
    private static let streamed: Set<String> = ["IDAT", "fdAT"]
    /// The lengths of the other chunks that stay.
    private static let lengths: [String: ClosedRange<Int>] = [
        "IHDR": 13...13, "PLTE": 3...768, "IEND": 0...0,
        "tRNS": 1...256, "bKGD": 1...6, "cHRM": 32...32, "gAMA": 4...4, "sRGB": 1...1, "sBIT": 1...4,
        "cICP": 4...4, "mDCV": 24...24, "cLLI": 8...8, "acTL": 8...8, "fcTL": 26...26,
    ]
    /// Chunks of which a part stays, with the maximum length that is looked at.
    private static let reduced = ["iCCP": ColorProfile.maximumBytes, "eXIf": 64 << 10]

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
    /// All but APNG's frames are there once.
    private var seen: Set<String> = []

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
                if let kept = Self.kept(name, Array(content)) { output += PNGWriter.chunk(name, kept) }
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
        guard length < 1 << 31, name != "CgBI", name == "IHDR" || seen.contains("IHDR") else {
            throw .damagedPNG
        }
        let isFirst = seen.insert(name).inserted || name == "fcTL"
        if Self.streamed.contains(name) {
            output += header
            state = .passing(left: length + Self.checksumBytes, isKept: true)
        } else if isFirst, Self.lengths[name]?.contains(length) ?? (Self.reduced[name] ?? -1 >= length) {
            state = .chunk(name: name, length: length)
        } else {
            guard !["IHDR", "PLTE", "IEND"].contains(name) else { throw .damagedPNG }
            state = .passing(left: length + Self.checksumBytes, isKept: false)
        }
    }

    /// What stays of a chunk; nil to leave it out.
    private static func kept(_ name: String, _ content: [UInt8]) -> [UInt8]? {
        switch name {
        case "iCCP":
            guard let end = content.firstIndex(of: 0), content.dropFirst(end + 1).first == 0,
                let profile = inflated(content[(end + 2)...]).flatMap({ ColorProfile.reduced($0) })
            else { return nil }
            // Chunks of profiles begin with a name, and the method of compression.
            return [0x2D, 0, 0] + PNGWriter.zlib(profile)
        case "eXIf":
            guard let turned = EXIF(segment: EXIF.marker + content)?.orientation, turned != 1 else {
                return nil
            }
            return EXIF.content(orientation: turned)
        default: return content
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
