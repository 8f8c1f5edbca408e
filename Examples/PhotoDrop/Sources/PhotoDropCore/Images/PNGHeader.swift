/// What a PNG's first chunk says, and how long its other chunks are therefore (PNG, third edition, §11).
struct PNGHeader {
    private enum Colours: UInt8 {
        case grey = 0
        case colour = 2
        case palette = 3
        case greyWithAlpha = 4
        case colourWithAlpha = 6
    }

    private let width: Int
    private let height: Int
    private let depth: UInt8
    private let colours: Colours
    /// How many colours the palette has.
    private var paletteCount = 0
    /// Whether frames of an animation may follow.
    private var isAnimated = false

    /// Nil for a picture of a kind that is not known.
    init?(_ content: [UInt8]) {
        let reader = ByteReader(content)
        guard content.count == 13, let width = reader.number(at: 0, bytes: 4),
            let height = reader.number(at: 4, bytes: 4), width > 0, height > 0,
            let colours = Colours(rawValue: content[9]), content[10...11] == [0, 0], content[12] <= 1
        else { return nil }
        let depths: [UInt8] =
            switch colours {
            case .grey: [1, 2, 4, 8, 16]
            case .palette: [1, 2, 4, 8]
            default: [8, 16]
            }
        guard depths.contains(content[8]) else { return nil }
        (self.width, self.height, depth, self.colours) = (width, height, content[8], colours)
    }

    /// Whether pixels may be in chunks of this name.
    func hasPixels(_ name: String) -> Bool { name == "IDAT" || name == "fdAT" && isAnimated }

    /// What stays of a chunk: nil for one that the picture does not need, or that is longer than it or has values that mean nothing.
    /// Decoders ignore such a chunk, too.
    mutating func kept(_ name: String, _ content: [UInt8]) -> [UInt8]? {
        switch name {
        case "PLTE": return palette(content)
        case "tRNS": return transparency(content)
        case "bKGD": return background(content)
        case "sBIT":
            let count = [Colours.grey: 1, .greyWithAlpha: 2, .colourWithAlpha: 4][colours] ?? 3
            let maximum = colours == .palette ? 8 : depth
            return content.count == count && content.allSatisfy { (1...maximum).contains($0) } ? content : nil
        case "acTL":
            guard content.count == 8, numbers(content)[0] > 0 else { return nil }
            isAnimated = true
            return content
        case "fcTL": return isAnimated && isFrame(content) ? content : nil
        default: return Self.isColour(name, content) ? content : nil
        }
    }

    /// A palette that pixels do not refer to is only a suggestion.
    private mutating func palette(_ content: [UInt8]) -> [UInt8]? {
        guard colours == .palette, content.count % 3 == 0, !content.isEmpty else { return nil }
        paletteCount = min(content.count / 3, 1 << Int(depth))
        return Array(content.prefix(3 * paletteCount))
    }

    private func transparency(_ content: [UInt8]) -> [UInt8]? {
        switch colours {
        case .grey: content.count == 2 ? samples(content) : nil
        case .colour: content.count == 6 ? samples(content) : nil
        case .palette: (1...max(1, paletteCount)).contains(content.count) && paletteCount > 0 ? content : nil
        case .greyWithAlpha, .colourWithAlpha: nil
        }
    }

    private func background(_ content: [UInt8]) -> [UInt8]? {
        switch colours {
        case .grey, .greyWithAlpha: content.count == 2 ? samples(content) : nil
        case .colour, .colourWithAlpha: content.count == 6 ? samples(content) : nil
        case .palette: content.count == 1 && content[0] < paletteCount ? content : nil
        }
    }

    /// Values of two bytes, of which only those bits count that a pixel has.
    private func samples(_ content: [UInt8]) -> [UInt8] {
        let mask = depth == 16 ? 0xFFFF : 1 << Int(depth) - 1
        return content.indices.map { content[$0] & UInt8($0 % 2 == 0 ? mask >> 8 : mask & 0xFF) }
    }

    private func isFrame(_ content: [UInt8]) -> Bool {
        guard content.count == 26 else { return false }
        let numbers = numbers(Array(content.prefix(20)))
        return numbers[1] > 0 && numbers[2] > 0 && numbers[1] + numbers[3] <= width
            && numbers[2] + numbers[4] <= height && content[24] <= 2 && content[25] <= 1
    }

    /// Whether a chunk is one of the colours that are known.
    private static func isColour(_ name: String, _ content: [UInt8]) -> Bool {
        switch name {
        // In units of 1/100,000: 0.01 to 10, and parts of 1.
        case "gAMA": content.count == 4 && (1_000...1_000_000).contains(numbers(content)[0])
        case "cHRM": content.count == 32 && numbers(content).allSatisfy { $0 <= 110_000 }
        case "sRGB": content.count == 1 && content[0] <= 3
        case "cICP": content.count == 4 && content[2] == 0 && content[3] <= 1
        case "mDCV": content.count == 24
        case "cLLI": content.count == 8
        default: false
        }
    }
}

/// The numbers of four bytes each in a chunk whose length is a multiple of that.
private func numbers(_ content: [UInt8]) -> [Int] {
    let reader = ByteReader(content)
    return stride(from: 0, to: content.count, by: 4).compactMap { reader.number(at: $0, bytes: 4) }
}
