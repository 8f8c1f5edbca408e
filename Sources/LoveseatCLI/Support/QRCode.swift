import CQREncode
import Loveseat

/// A QR code in terminal characters, with two rows in each line.
enum QRCode {
    /// The space around it that scanners want, in modules.
    private static let margin = 2

    static func lines(_ text: String) throws -> [String] {
        guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M) else {
            throw LoveseatError(.invalidParameter, "\(text.utf8.count) bytes do not fit into a QR code")
        }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        func isDark(_ row: Int, _ column: Int) -> Bool {
            guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
            return code.pointee.data[row * width + column] & 1 == 1
        }
        return stride(from: -margin, to: width + margin, by: 2).map { row in
            // Light is drawn, so that it scans on dark terminals.
            String(
                (-margin..<width + margin).map { column -> Character in
                    switch (isDark(row, column), isDark(row + 1, column)) {
                    case (false, false): "█"
                    case (false, true): "▀"
                    case (true, false): "▄"
                    case (true, true): " "
                    }
                }
            )
        }
    }
}
