/// Removes metadata, such as where a picture was taken, from a file that passes through in pieces.
package protocol MetadataStripper {
    /// Takes the next piece, and appends what stays to the output.
    ///
    /// - Throws: `data` if the file is damaged.
    mutating func process(_ bytes: some Collection<UInt8>, into output: inout [UInt8]) throws(DropError)
    /// Called at the end of the file.
    ///
    /// - Throws: `data` if the file is cut off.
    func finish() throws(DropError)
}

extension ImageType {
    /// Returns a stripper for files of this type.
    ///
    /// - Throws: `data` for types of which metadata cannot be removed.
    package func makeStripper() throws(DropError) -> any MetadataStripper {
        switch self {
        case .jpeg: return JPEGStripper()
        case .png: return PNGStripper()
        default: throw DropError(.data, "cannot strip \(rawValue.uppercased())")
        }
    }
}

/// Keeps of a PNG what is needed to show it.
package struct PNGStripper: MetadataStripper {
    private static let dropped: Set<String> = ["eXIf", "tEXt", "iTXt", "zTXt", "tIME"]
    private static let signatureBytes = 8
    private static let headerBytes = 8
    private static let checksumBytes = 4

    private enum State {
        case signature
        case header
        /// The content and checksum of a chunk.
        case chunk(left: Int, isKept: Bool, isLast: Bool)
        case end
    }

    private var state = State.signature
    private var pending: [UInt8] = []

    package init() {}

    package mutating func process(_ bytes: some Collection<UInt8>, into output: inout [UInt8])
        throws(DropError)
    {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            switch state {
            case .signature:
                guard fill(Self.signatureBytes, from: &rest) else { return }
                output += take()
                state = .header
            case .header:
                guard fill(Self.headerBytes, from: &rest) else { return }
                let header = take()
                let length = header.prefix(4).reduce(0) { $0 << 8 | Int($1) }
                guard length <= 1 << 31 else { throw DropError(.data, "the PNG is damaged") }
                let name = String(decoding: header.suffix(4), as: UTF8.self)
                let isKept = !Self.dropped.contains(name)
                if isKept { output += header }
                state = .chunk(left: length + Self.checksumBytes, isKept: isKept, isLast: name == "IEND")
            case .chunk(let left, let isKept, let isLast):
                let part = rest.prefix(left)
                rest = rest.dropFirst(part.count)
                if isKept { output += part }
                let stillLeft = left - part.count
                if stillLeft > 0 {
                    state = .chunk(left: stillLeft, isKept: isKept, isLast: isLast)
                } else {
                    state = isLast ? .end : .header
                }
            case .end: return
            }
        }
    }

    package func finish() throws(DropError) {
        guard case .end = state else { throw DropError(.data, "the PNG is cut off") }
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
