/// An ICC profile that says how to show colours, and nothing else (ICC.1:2022).
///
/// Profiles may name who made them, when and for which device, and may contain tags of any other kind. What a decoder needs is copied into a
/// new profile, field by field.
package enum ColorProfile {
    /// The maximum size of a profile, in bytes.
    package static let maximumBytes = 4 << 20
    private static let headerBytes = 128
    private static let maximumTags = 100

    private struct Tag {
        let name: String
        let content: [UInt8]
    }

    /// Returns a profile with the colours of another one; nil if that one is damaged, or of a kind that is not known.
    package static func reduced(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count <= maximumBytes else { return nil }
        let reader = ByteReader(bytes)
        guard reader.text(at: 36, count: 4) == "acsp", let version = reader.number(at: 8, bytes: 1),
            let space = reader.text(at: 16, count: 4), let channels = channels[space],
            let connection = reader.text(at: 20, count: 4), ["XYZ ", "Lab "].contains(connection),
            let kind = reader.text(at: 12, count: 4), ["mntr", "scnr", "prtr", "spac"].contains(kind),
            let intent = reader.number(at: 64, bytes: 4), intent <= 3
        else { return nil }
        let tags = tags(of: reader)
        func all(_ names: [String]) -> [Tag]? {
            let found = names.compactMap { name in tags.first { $0.name == name } }
            return found.count == names.count ? found : nil
        }
        var kept: [Tag]
        if channels == 3, let matrix = all(["rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC"]) {
            kept = matrix
        } else if channels == 1, let curve = all(["kTRC"]) {
            kept = curve
        } else {
            kept = tags.filter { ["A2B0", "A2B1", "A2B2"].contains($0.name) }
            guard kept.contains(where: { $0.name == "A2B0" }) else { return nil }
        }
        guard let white = all(["wtpt"]) else { return nil }
        kept += white + (all(["chad"]) ?? []) + (all(["cicp"]) ?? [])
        // Profiles must have a name and a licence.
        kept += ["desc", "cprt"].map { Tag(name: $0, content: text($0, isOld: version < 4)) }
        var header = [UInt8](repeating: 0, count: headerBytes)
        // The version, the class, both colour spaces, the signature, the intent, and D50.
        header.replaceSubrange(8..<10, with: bytes[8..<10])
        for range in [12..<24, 36..<40, 64..<68] { header.replaceSubrange(range, with: bytes[range]) }
        header.replaceSubrange(68..<80, with: [0, 0, 0xF6, 0xD6, 0, 1, 0, 0, 0, 0, 0xD3, 0x2D])
        return assembled(header, kept)
    }

    private static let channels = ["RGB ": 3, "GRAY": 1, "CMYK": 4, "Lab ": 3, "YCbr": 3]

    /// The tags whose content is understood, without anything that their content does not need.
    private static func tags(of reader: ByteReader) -> [Tag] {
        guard let count = reader.number(at: headerBytes, bytes: 4), count <= maximumTags else { return [] }
        return (0..<count).compactMap { index in
            let entry = headerBytes + 4 + index * 12
            guard let name = reader.text(at: entry, count: 4),
                let offset = reader.number(at: entry + 4, bytes: 4),
                let length = reader.number(at: entry + 8, bytes: 4),
                let content = reader.bytes(at: offset, count: length),
                let needed = exact(ByteReader(content))
            else { return nil }
            return Tag(name: name, content: needed)
        }
    }

    /// A tag's content as long as its type says, with the reserved bytes set to zero; nil for a type that is not known.
    private static func exact(_ reader: ByteReader) -> [UInt8]? {
        guard let type = reader.text(at: 0, count: 4), let length = length(type, reader),
            var content = reader.bytes(at: 0, count: length).map({ Array($0) })
        else { return nil }
        content.replaceSubrange(4..<8, with: [0, 0, 0, 0])
        switch type {
        case "para": content.replaceSubrange(10..<12, with: [0, 0])
        case "mft1", "mft2": content[11] = 0
        default: break
        }
        return content
    }

    private static func length(_ type: String, _ reader: ByteReader) -> Int? {
        switch type {
        case "XYZ ": return 20
        case "cicp": return 12
        case "curv": return reader.number(at: 8, bytes: 4).map { 12 + 2 * $0 }
        case "para":
            let parameters = [1, 3, 4, 5, 7]
            return reader.number(at: 8, bytes: 2).flatMap {
                parameters.indices.contains($0) ? 12 + 4 * parameters[$0] : nil
            }
        // A matrix for chromatic adaptation is the only use of this type here.
        case "sf32": return 8 + 9 * 4
        case "mft1", "mft2": return lookupTable(type, reader)
        default: return nil
        }
    }

    /// The length of a table of 8 or 16 bits.
    private static func lookupTable(_ type: String, _ reader: ByteReader) -> Int? {
        guard let inputs = reader.number(at: 8, bytes: 1), let outputs = reader.number(at: 9, bytes: 1),
            let points = reader.number(at: 10, bytes: 1), (1...4).contains(inputs), outputs == 3
        else { return nil }
        let grid = (0..<inputs).reduce(outputs) { product, _ in product * points }
        if type == "mft1" { return 48 + 256 * inputs + grid + 256 * outputs }
        guard let first = reader.number(at: 48, bytes: 2), let last = reader.number(at: 50, bytes: 2) else {
            return nil
        }
        return 52 + 2 * (first * inputs + grid + last * outputs)
    }

    /// A name, or a licence, of one letter.
    private static func text(_ tag: String, isOld: Bool) -> [UInt8] {
        let zeros: (Int) -> [UInt8] = { [UInt8](repeating: 0, count: $0) }
        guard isOld else {
            // One record of 12 bytes, for en-US, with two bytes of UTF-16 behind it.
            return Array("mluc".utf8) + zeros(4) + [0, 0, 0, 1, 0, 0, 0, 12] + Array("enUS".utf8)
                + [0, 0, 0, 2, 0, 0, 0, 28, 0, 0x2D]
        }
        if tag == "cprt" { return Array("text".utf8) + zeros(4) + [0x2D, 0] }
        // Without a name in Unicode, and without one of the Macintosh.
        return Array("desc".utf8) + zeros(4) + [0, 0, 0, 2, 0x2D, 0] + zeros(4 + 4 + 2 + 1 + 67)
    }

    private static func assembled(_ header: [UInt8], _ tags: [Tag]) -> [UInt8] {
        let number = PNGWriter.bigEndian
        var table = number(UInt32(tags.count))
        var contents: [UInt8] = []
        let start = header.count + 4 + tags.count * 12
        var places: [[UInt8]: Int] = [:]
        for tag in tags {
            // Tags with the same content share it, as the three curves of most profiles do.
            let place = places[tag.content] ?? contents.count
            places[tag.content] = place
            if place == contents.count {
                contents += tag.content
                while contents.count % 4 != 0 { contents.append(0) }
            }
            table += Array(tag.name.utf8) + number(UInt32(start + place)) + number(UInt32(tag.content.count))
        }
        var profile = header + table + contents
        profile.replaceSubrange(0..<4, with: number(UInt32(profile.count)))
        return profile
    }
}
