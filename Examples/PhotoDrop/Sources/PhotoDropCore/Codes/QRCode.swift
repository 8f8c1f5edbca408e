import CQRCode

/// The modules of a QR code.
package struct QRCode: Hashable, Sendable {
    package enum Level: Hashable, Sendable {
        /// About 7 % of the code may be damaged.
        case low
        /// About 15 %.
        case medium
        /// About 30 %.
        case high

        fileprivate var level: QRecLevel {
            switch self {
            case .low: QR_ECLEVEL_L
            case .medium: QR_ECLEVEL_M
            case .high: QR_ECLEVEL_H
            }
        }
    }

    /// The number of modules on each side, without the quiet zone.
    package let width: Int
    private let modules: [Bool]

    /// Encodes printable ASCII. Capital letters, digits and `$%*+-./:` take less room than others.
    ///
    /// - Throws: `data` if the text is too long.
    package init(_ text: String, level: Level) throws(DropError) {
        let isAlphanumeric = text.utf8.allSatisfy(Self.alphanumeric.contains)
        let code =
            isAlphanumeric
            ? QRcode_encodeString(text, 0, level.level, QR_MODE_8, 1)
            : QRcode_encodeString8bit(text, 0, level.level)
        guard let code, let data = code.pointee.data else {
            throw DropError(.data, "\(text.utf8.count) bytes do not fit into a QR code")
        }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        self.width = width
        modules = (0..<width * width).map { data[$0] & 1 == 1 }
    }

    private static let alphanumeric = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:".utf8)

    /// Whether a module is dark. Everything outside is light.
    package func isDark(_ row: Int, _ column: Int) -> Bool {
        guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
        return modules[row * width + column]
    }

    /// A picture of at least 300 pixels on each side, with whole pixels for each module.
    package func svg(quietZone: Int = 4) -> String {
        let size = width + 2 * quietZone
        let pixels = (300 + size - 1) / size * size
        var path = ""
        for row in 0..<width {
            var column = 0
            while column < width {
                guard isDark(row, column) else {
                    column += 1
                    continue
                }
                var end = column
                while end < width, isDark(row, end) { end += 1 }
                path += "M\(column + quietZone) \(row + quietZone)h\(end - column)v1h-\(end - column)z"
                column = end
            }
        }
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(size) \(size)" width="\(pixels)" \
            height="\(pixels)" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h\(size)v\(size)H0z"/>\
            <path d="\(path)"/></svg>
            """
    }
}
