/// Collects the header lines of one part, up to the empty line.
struct HeaderBlock: Sendable {
    private let limit: Int
    private let foldsAtLineFeeds: Bool
    private var bytes: [UInt8] = []
    /// The number of bytes since the last line break.
    private var lineLength = 0
    private var last: UInt8 = 0
    /// Whether a line feed without a carriage return came last.
    private var isFolding = false

    /// `foldsAtLineFeeds`: a line feed without a carriage return is taken for a blank if another blank follows.
    init(limit: Int, foldsAtLineFeeds: Bool) {
        (self.limit, self.foldsAtLineFeeds) = (limit, foldsAtLineFeeds)
    }

    /// Takes bytes from the input. Returns the lines without the empty one, and starts over, once the block is complete.
    mutating func read(_ rest: inout ArraySlice<UInt8>) throws(MultipartError) -> [UInt8]? {
        let room = limit - bytes.count
        var index = rest.startIndex
        let end = rest.index(index, offsetBy: max(room, 0), limitedBy: rest.endIndex) ?? rest.endIndex
        while index < end {
            let byte = rest[index]
            index += 1
            lineLength += 1
            if isFolding, byte != 0x20, byte != 0x09 { throw .bareLineFeed }
            isFolding = byte == 0x0A && last != 0x0D
            if isFolding {
                guard foldsAtLineFeeds else { throw .bareLineFeed }
            } else if byte == 0x0A {
                if lineLength == 2 {
                    let block = bytes + rest[..<(index)]
                    rest = rest[index...]
                    self = HeaderBlock(limit: limit, foldsAtLineFeeds: foldsAtLineFeeds)
                    return Self.unfolded(block.dropLast(2))
                }
                lineLength = 0
            }
            last = byte
        }
        guard end == rest.endIndex else { throw .headersTooLong(limit: limit) }
        bytes += rest
        rest = []
        return nil
    }

    private static func unfolded(_ block: ArraySlice<UInt8>) -> [UInt8] {
        var block = Array(block)
        for index in block.indices where block[index] == 0x0A && (index == 0 || block[index - 1] != 0x0D) {
            block[index] = 0x20
        }
        return block
    }
}
