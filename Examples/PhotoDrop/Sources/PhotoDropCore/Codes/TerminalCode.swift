/// A QR code in terminal characters.
package struct TerminalCode: Hashable, Sendable {
    /// The capabilities of a terminal.
    package struct Capabilities: Hashable, Sendable {
        package var columns: Int
        package var rows: Int
        package var hasUTF8: Bool
        package var hasColours: Bool

        package init(columns: Int, rows: Int, hasUTF8: Bool, hasColours: Bool) {
            self.columns = columns
            self.rows = rows
            self.hasUTF8 = hasUTF8
            self.hasColours = hasColours
        }

        /// Half blocks need black on white, or the code would be inverted on dark terminals.
        package var showsHalfBlocks: Bool { hasUTF8 && hasColours }
    }

    /// A window with fewer rows than this gets the compact code.
    package static let rowsForFullCode = 30
    /// The lines around the code: the text on standard output, and a remark.
    private static let otherLines = 2
    private static let quietZones = [4, 2]
    private static let blackOnWhite = "\u{1B}[38;5;16;48;5;231m"
    private static let reset = "\u{1B}[0m"

    package let lines: [String]

    /// Renders the largest form that fits: the full code if the window is high enough, otherwise the compact one. Nil if none fits.
    package init?(full: String, compact: String?, in terminal: Capabilities) throws(DropError) {
        let isHigh = terminal.rows >= Self.rowsForFullCode
        let texts = isHigh ? [full, compact].compactMap { $0 } : [compact ?? full]
        for text in texts {
            let code = try QRCode(text, level: .low)
            for quietZone in Self.quietZones {
                let rendered =
                    terminal.showsHalfBlocks
                    ? Self.halfBlocks(code, quietZone: quietZone) : Self.hashes(code, quietZone: quietZone)
                let columns = (code.width + 2 * quietZone) * (terminal.showsHalfBlocks ? 1 : 2)
                guard columns <= terminal.columns else { continue }
                // Without half blocks, no code fits into 24 lines: it may scroll.
                guard !terminal.showsHalfBlocks || rendered.count + Self.otherLines <= terminal.rows else {
                    continue
                }
                lines = rendered
                return
            }
        }
        return nil
    }

    /// Two modules in each character, explicitly black on white.
    package static func halfBlocks(_ code: QRCode, quietZone: Int) -> [String] {
        let range = -quietZone..<code.width + quietZone
        return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { row in
            let characters = range.map { column -> Character in
                switch (code.isDark(row, column), code.isDark(row + 1, column)) {
                case (true, true): "█"
                case (true, false): "▀"
                case (false, true): "▄"
                case (false, false): " "
                }
            }
            return blackOnWhite + String(characters) + reset
        }
    }

    /// Two characters for each module, for terminals without UTF-8 or colours.
    package static func hashes(_ code: QRCode, quietZone: Int) -> [String] {
        let range = -quietZone..<code.width + quietZone
        return range.map { row in
            range.map { code.isDark(row, $0) ? "##" : "  " }.joined()
        }
    }
}
