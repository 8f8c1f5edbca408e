/// Collects the header lines of one part, up to the empty line.
struct HeaderBlock: Sendable {
    private let limit: Int
    private var bytes: [UInt8] = []
    /// The number of bytes since the last line break.
    private var lineLength = 0
    private var last: UInt8 = 0

    init(limit: Int) { self.limit = limit }

    /// Takes bytes from the input. Returns the lines without the empty one, and starts over, once the block is complete.
    mutating func read(_ rest: inout ArraySlice<UInt8>) throws(MultipartError) -> [UInt8]? {
        let room = limit - bytes.count
        var index = rest.startIndex
        let end = rest.index(index, offsetBy: max(room, 0), limitedBy: rest.endIndex) ?? rest.endIndex
        while index < end {
            let byte = rest[index]
            index += 1
            lineLength += 1
            if byte == 0x0A {
                guard last == 0x0D else { throw .bareLineFeed }
                if lineLength == 2 {
                    let block = bytes + rest[..<(index)]
                    rest = rest[index...]
                    self = HeaderBlock(limit: limit)
                    return block.dropLast(2)
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
}
