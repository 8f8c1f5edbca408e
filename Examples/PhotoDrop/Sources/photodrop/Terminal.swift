import Foundation
import PhotoDropCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The terminal on standard error.
enum Terminal {
    static var isPresent: Bool { isatty(2) == 1 }

    /// Whether it understands the sequences that replace lines.
    static var replacesLines: Bool { isPresent && !isDumb }

    private static var isDumb: Bool {
        let kind = ProcessInfo.processInfo.environment["TERM"] ?? ""
        return kind.isEmpty || kind == "dumb"
    }

    /// Its size, and whether it shows UTF-8 and colours.
    static var capabilities: TerminalCode.Capabilities {
        let environment = ProcessInfo.processInfo.environment
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        let name = locale.uppercased()
        var size = winsize()
        let isKnown = ioctl(2, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 0
        let isPlain = isDumb || !(environment["NO_COLOR"] ?? "").isEmpty
        return TerminalCode.Capabilities(
            columns: isKnown ? Int(size.ws_col) : 80,
            rows: isKnown ? Int(size.ws_row) : 24,
            hasUTF8: name.contains("UTF-8") || name.contains("UTF8"),
            hasColours: !isPlain
        )
    }
}
