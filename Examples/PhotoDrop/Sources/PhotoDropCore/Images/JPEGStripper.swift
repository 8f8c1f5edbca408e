/// Keeps the segments of a JPEG that show the picture: tables, frames and scans, JFIF without its thumbnail, Adobe's colour transform and the
/// colour profile. Of EXIF, only the orientation stays. What follows the picture, such as further pictures in one file, is left out.
package struct JPEGStripper: MetadataStripper {
    private enum Marker {
        static let start: UInt8 = 0xD8
        static let end: UInt8 = 0xD9
        static let scan: UInt8 = 0xDA
        static let hierarchical: ClosedRange<UInt8> = 0xDE...0xDF
        static let restarts: ClosedRange<UInt8> = 0xD0...0xD7
    }

    private enum State {
        /// The 0xFF of a marker comes next.
        case marker
        /// The code of a marker comes next.
        case code
        case length(code: UInt8)
        case segment(code: UInt8, length: Int)
        /// Compressed data, up to a marker.
        case scan(afterFF: Bool)
        case end
    }

    private static let profile = Array("ICC_PROFILE\0".utf8)
    /// The maximum of the tables before the picture, in bytes: there are at most a few hundred kilobytes.
    private static let maximumTables = 1 << 20

    private var state = State.marker
    private var pending: [UInt8] = []
    private var hasStarted = false
    /// What stays of the segments before the first scan. A profile may come in any order, and among them.
    private var jfif: [UInt8] = []
    private var adobe: [UInt8] = []
    private var orientation: [UInt8] = []
    private var profileParts: [Int: [UInt8]] = [:]
    private var tables: [UInt8] = []
    private var hasFrame = false
    private var hasScan = false

    package init() {}

    package mutating func process(_ bytes: some Collection<UInt8>, into output: inout [UInt8])
        throws(DropError)
    {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            switch state {
            case .marker:
                guard rest.removeFirst() == 0xFF else { throw .damagedJPEG }
                state = .code
            case .code: try readCode(rest.removeFirst(), into: &output)
            case .length(let code):
                pending.append(rest.removeFirst())
                guard pending.count == 2 else { break }
                let length = Int(pending[0]) << 8 | Int(pending[1])
                pending = []
                guard length >= 2 else { throw .damagedJPEG }
                state = .segment(code: code, length: length - 2)
                if length == 2 { try endSegment(code, into: &output) }
            case .segment(let code, let length):
                let part = rest.prefix(length - pending.count)
                pending += part
                rest = rest.dropFirst(part.count)
                if pending.count == length { try endSegment(code, into: &output) }
            case .scan(let afterFF): try readScan(&rest, afterFF: afterFF, into: &output)
            case .end: return
            }
        }
    }

    package func finish() throws(DropError) {
        guard case .end = state else { throw DropError(.data, "the JPEG is cut off") }
    }

    private mutating func readCode(_ code: UInt8, into output: inout [UInt8]) throws(DropError) {
        switch code {
        case 0xFF: break  // Markers may be filled up with it.
        case Marker.start where !hasStarted:
            hasStarted = true
            output += [0xFF, code]
            state = .marker
        case Marker.end where hasScan:
            output += [0xFF, code]
            state = .end
        // Frames of several sizes are hardly ever used.
        case 0x00, 0x01, Marker.start, Marker.end, Marker.restarts, Marker.hierarchical: throw .damagedJPEG
        default:
            guard hasStarted else { throw .damagedJPEG }
            state = .length(code: code)
        }
    }

    private mutating func endSegment(_ code: UInt8, into output: inout [UInt8]) throws(DropError) {
        let content = pending
        pending = []
        state = code == Marker.scan ? .scan(afterFF: false) : .marker
        guard let isWhole = Self.isWhole(code, content) else { return collect(code, content) }
        // Nothing may hide behind a table.
        guard isWhole else { throw .damagedJPEG }
        tables += Self.segment(code, content)
        guard tables.count <= Self.maximumTables else { throw .damagedJPEG }
        hasFrame = hasFrame || Self.isFrame(code)
        if code == Marker.scan {
            // That of another kind of JPEG was left out.
            guard hasFrame else { throw .damagedJPEG }
            if !hasScan { output += jfif + orientation + profileSegments + adobe }
            hasScan = true
        }
        if hasScan {
            output += tables
            tables = []
        }
    }

    private static func isFrame(_ code: UInt8) -> Bool {
        (0xC0...0xCF).contains(code) && ![0xC4, 0xC8, 0xCC].contains(code)
    }

    /// Whether a table, a frame or a scan is as long as it says, and one that a decoder uses; nil for any other segment.
    private static func isWhole(_ code: UInt8, _ content: [UInt8]) -> Bool? {
        switch code {
        case 0xC4:
            return isDivided(content) { head in
                guard head.count == 17, isTable(head[0]) else { return nil }
                let values = head[1..<17].reduce(0) { $0 + Int($1) }
                return values <= 256 ? 17 + values : nil
            }
        case 0xDB:
            return isDivided(content) { head in isTable(head[0]) ? head[0] >> 4 == 0 ? 65 : 129 : nil }
        case 0xCC: return isDivided(content) { head in isTable(head[0]) ? 2 : nil }
        case _ where isFrame(code):
            return content.count >= 6 && (1...4).contains(content[5])
                && content.count == 6 + 3 * Int(content[5])
        case Marker.scan:
            return content.first.map { (1...4).contains($0) && content.count == 4 + 2 * Int($0) } ?? false
        case 0xDC, 0xDD: return content.count == 2
        default: return nil
        }
    }

    /// Whether there is a table of this kind and number: two kinds, and four of each.
    private static func isTable(_ byte: UInt8) -> Bool { byte >> 4 <= 1 && byte & 0xF <= 3 }

    /// Whether some bytes consist of parts, each with the length that `length` finds at its beginning.
    private static func isDivided(_ content: [UInt8], _ length: ([UInt8]) -> Int?) -> Bool {
        var rest = content[...]
        while !rest.isEmpty {
            guard let next = length(Array(rest.prefix(17))), next <= rest.count else { return false }
            rest = rest.dropFirst(next)
        }
        return true
    }

    /// Looks for what stays of a segment that is not needed to decode the picture.
    private mutating func collect(_ code: UInt8, _ content: [UInt8]) {
        guard !hasScan else { return }
        switch code {
        case 0xE0 where jfif.isEmpty && content.starts(with: "JFIF\0".utf8) && content.count >= 14:
            // The version, the density, and a thumbnail of no pixels.
            jfif = Self.segment(code, content.prefix(12) + [0, 0])
        case 0xE1 where orientation.isEmpty:
            guard let turned = EXIF(segment: content)?.orientation, turned != 1 else { return }
            orientation = EXIF.segment(orientation: turned)
        case 0xE2 where content.starts(with: Self.profile) && content.count > Self.profile.count + 2:
            let number = Int(content[Self.profile.count])
            if profileParts[number] == nil {
                profileParts[number] = Array(content.dropFirst(Self.profile.count + 2))
            }
        case 0xEE
        where adobe.isEmpty && content.starts(with: "Adobe".utf8) && content.count >= 12 && content[11] <= 2:
            // The version, no flags, and the transform.
            adobe = Self.segment(code, Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, content[11]])
        default: break
        }
    }

    /// The colour profile in as many segments as it needs.
    private var profileSegments: [UInt8] {
        let parts = (1...255).prefix { profileParts[$0] != nil }.compactMap { profileParts[$0] }
        guard !parts.isEmpty, let reduced = ColorProfile.reduced(Array(parts.joined())) else { return [] }
        let size = 65_533 - Self.profile.count - 2
        let starts = Array(stride(from: 0, to: reduced.count, by: size))
        guard starts.count <= 255 else { return [] }
        return starts.enumerated().flatMap { index, start in
            Self.segment(
                0xE2,
                Self.profile + [UInt8(index + 1), UInt8(starts.count)]
                    + reduced[start..<min(start + size, reduced.count)]
            )
        }
    }

    private static func segment(_ code: UInt8, _ content: some Collection<UInt8>) -> [UInt8] {
        let length = content.count + 2
        return [0xFF, code, UInt8(length >> 8), UInt8(length & 0xFF)] + content
    }

    private mutating func readScan(
        _ rest: inout ArraySlice<UInt8>,
        afterFF: Bool,
        into output: inout [UInt8]
    ) throws(DropError) {
        if afterFF {
            let code = rest.removeFirst()
            switch code {
            case 0x00, Marker.restarts:
                output += [0xFF, code]
                state = .scan(afterFF: false)
            case 0xFF: break
            default: try readCode(code, into: &output)
            }
            return
        }
        let data = rest.prefix { $0 != 0xFF }
        output += data
        rest = rest.dropFirst(data.count)
        guard !rest.isEmpty else { return }
        rest.removeFirst()
        state = .scan(afterFF: true)
    }
}

extension DropError {
    fileprivate static var damagedJPEG: DropError {
        DropError(.data, "the JPEG is damaged, or of a kind that is not known")
    }
}
