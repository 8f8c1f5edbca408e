/// Keeps of a JPEG what is needed to show it: of application segments JFIF, colour profiles and Adobe's colour transform. Of EXIF, only the
/// orientation stays. What follows the picture, such as further pictures in one file, is left out.
package struct JPEGStripper: MetadataStripper {
    private enum Marker {
        static let start: UInt8 = 0xD8
        static let end: UInt8 = 0xD9
        static let scan: UInt8 = 0xDA
        static let comment: UInt8 = 0xFE
        static let applications: ClosedRange<UInt8> = 0xE0...0xEF
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

    private var state = State.marker
    private var pending: [UInt8] = []
    private var hasOrientation = false
    private var hasStarted = false

    package init() {}

    package mutating func process(_ bytes: some Collection<UInt8>, into output: inout [UInt8])
        throws(DropError)
    {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            switch state {
            case .marker:
                guard rest.removeFirst() == 0xFF else { throw DropError(.data, "the JPEG is damaged") }
                state = .code
            case .code: try readCode(rest.removeFirst(), into: &output)
            case .length(let code):
                pending.append(rest.removeFirst())
                guard pending.count == 2 else { break }
                let length = Int(pending[0]) << 8 | Int(pending[1])
                pending = []
                guard length >= 2 else { throw DropError(.data, "the JPEG is damaged") }
                state = .segment(code: code, length: length - 2)
                if length == 2 { endSegment(code, into: &output) }
            case .segment(let code, let length):
                let part = rest.prefix(length - pending.count)
                pending += part
                rest = rest.dropFirst(part.count)
                if pending.count == length { endSegment(code, into: &output) }
            case .scan(let afterFF): readScan(&rest, afterFF: afterFF, into: &output)
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
        case Marker.end:
            output += [0xFF, code]
            state = .end
        case 0x00, 0x01, Marker.start, Marker.restarts: throw DropError(.data, "the JPEG is damaged")
        default: state = .length(code: code)
        }
    }

    private mutating func endSegment(_ code: UInt8, into output: inout [UInt8]) {
        let content = pending
        pending = []
        if keeps(code, content) {
            let length = content.count + 2
            output += [0xFF, code, UInt8(length >> 8), UInt8(length & 0xFF)]
            output += content
        } else if code == 0xE1, !hasOrientation, let turned = EXIF(segment: content)?.orientation, turned != 1
        {
            hasOrientation = true
            output += EXIF.segment(orientation: turned)
        }
        state = code == Marker.scan ? .scan(afterFF: false) : .marker
    }

    private func keeps(_ code: UInt8, _ content: [UInt8]) -> Bool {
        switch code {
        case 0xE0, 0xEE: true
        case 0xE2: content.starts(with: Self.profile)
        case Marker.applications, Marker.comment: false
        default: true
        }
    }

    private mutating func readScan(
        _ rest: inout ArraySlice<UInt8>,
        afterFF: Bool,
        into output: inout [UInt8]
    ) {
        if afterFF {
            let code = rest.removeFirst()
            switch code {
            case 0x00, Marker.restarts:
                output += [0xFF, code]
                state = .scan(afterFF: false)
            case 0xFF: break
            case Marker.end:
                output += [0xFF, code]
                state = .end
            default: state = .length(code: code)
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
