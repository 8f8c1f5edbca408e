/// A slow multipart parser for whole bodies, written line by line from RFC 2046 as a second opinion.
struct ReferenceParser {
    /// The data of the parts, with the raw header blocks; nil if the body is refused.
    static func parse(_ body: [UInt8], boundary: String) -> (
        parts: [(head: String, data: [UInt8])], wasClosed: Bool
    )? {
        var parts: [(head: String, data: [UInt8])] = []
        let text = [0x0D, 0x0A] + body
        let name = Array("\r\n--\(boundary)".utf8)
        var isInPart = false
        var start = 0
        var index = 0
        while index + name.count <= text.count {
            guard Array(text[index..<(index + name.count)]) == name else {
                index += 1
                continue
            }
            let tail = text[(index + name.count)...]
            let padding = tail.prefix { $0 == 0x20 || $0 == 0x09 }
            let isClosing = tail.starts(with: [0x2D, 0x2D])
            let line = tail.dropFirst(padding.count)
            let isDelimiter = padding.count <= 128 && line.starts(with: [0x0D, 0x0A])
            if padding.count <= 128, line.first == 0x0A { return nil }
            let isCut = tail == [0x2D] || (padding.count <= 128 && (line.isEmpty || line == [0x0D]))
            if !isClosing, !isDelimiter, !isCut {
                index += 1
                continue
            }
            if isInPart { parts[parts.count - 1].data = Array(text[min(start, index)..<index]) }
            if isClosing { return (parts, true) }
            if isCut { return isInPart ? (parts, false) : nil }
            var cursor = index + name.count + padding.count + 2
            let headStart = cursor
            while !(cursor + 1 < text.count && text[cursor - 2] == 0x0D && text[cursor - 1] == 0x0A
                && text[cursor] == 0x0D && text[cursor + 1] == 0x0A)
            {
                cursor += 1
                if cursor >= text.count { return nil }
            }
            let head = text[headStart..<cursor]
            for place in head.indices where text[place] == 0x0A && text[place - 1] != 0x0D { return nil }
            parts.append((String(decoding: head, as: UTF8.self), []))
            isInPart = true
            index = cursor
            start = cursor + 2
        }
        guard isInPart else { return nil }
        parts[parts.count - 1].data = Array(text[start...])
        return (parts, false)
    }
}
