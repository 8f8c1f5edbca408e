import Foundation
import Loveseat
import Synchronization

/// The terminal of standard error.
private enum ErrorTerminal {
    /// Whether it is one that can replace a line.
    static let replacesLines = isatty(2) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"

    /// The beginning of a text that fits into one line, which must not reach the last column.
    static func fitted(_ text: String) -> String {
        var size = winsize()
        // The width is not known on a serial line.
        guard ioctl(2, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return text }
        var left = Int(size.ws_col) - 1
        // Letters of East Asia, and pictures, have two columns.
        let end = text.firstIndex { character in
            left -= character.unicodeScalars.contains { $0.value >= 0x1100 && !isNarrow($0) } ? 2 : 1
            return left < 0
        }
        return String(text[..<(end ?? text.endIndex)])
    }

    /// Punctuation, arrows, blocks and the like.
    private static func isNarrow(_ scalar: Unicode.Scalar) -> Bool {
        (0x1200..<0x2E80).contains(scalar.value)
    }
}

/// One line of standard error that changes now and then: in its place on a terminal, otherwise as one line after another.
struct ProgressLine {
    let isTerminal = ErrorTerminal.replacesLines
    private var lastShown: ContinuousClock.Instant?

    /// Whether the last text is not too recent for another one.
    var isDue: Bool {
        let pause = isTerminal ? Duration.milliseconds(100) : .seconds(2)
        return lastShown.map { .now - $0 >= pause } ?? true
    }

    /// Shows a text, unless the last one is too recent. `isNews`: whether to show it anyway.
    mutating func show(isNews: Bool = false, _ text: () -> String?) {
        // Before its first document, an import of a dump has nothing to show.
        guard isNews || isDue, let text = text() else { return }
        lastShown = .now
        if isTerminal {
            Output.notice(raw: "\r\u{1B}[K\(ErrorTerminal.fitted(text.printable))")
        } else {
            Output.notice(text)
        }
    }

    /// Clears the line of a terminal.
    func end() { if isTerminal, lastShown != nil { Output.notice(raw: "\r\u{1B}[K") } }
}

/// Shows the progress of a replication on standard error: a bar on a terminal once it is known how much there is to do, otherwise lines.
struct ProgressBar {
    private let start = ContinuousClock.now
    private var line = ProgressLine()
    private var lastActivity: Replicator.ActivityLevel?
    private var lastError: LoveseatError?
    /// The greatest share that was known. New work does not make it smaller.
    private var share = 0.0

    mutating func show(_ status: Replicator.Status) {
        // A wait is said at once, since nothing follows until it is over.
        let isNews =
            status.activity != lastActivity || (status.error != nil && status.error != lastError)
        lastError = status.error
        // Lines are for what takes long.
        if !line.isTerminal, !isNews, status.activity != .busy { return }
        lastActivity = status.activity
        let progress = status.progress
        let knowsShare = status.activity == .busy && progress.isTotalKnown && progress.total > 0
        if knowsShare { share = max(share, Double(progress.completed) / Double(progress.total)) }
        if !isNews, !line.isDue { return }
        let bar = line.isTerminal && knowsShare ? Self.bar(share) : ""
        let text = bar + text(status)
        line.show(isNews: isNews) { text }
    }

    /// Clears the bar's line.
    func end() { line.end() }

    var seconds: Double {
        let elapsed = (ContinuousClock.now - start).components
        return Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    }

    /// A span of time, such as 8 s or 4 min 30 s.
    private static func span(_ seconds: Double) -> String {
        // A server may name any time.
        let whole = Int(min(max(seconds, 1), 1e9).rounded())
        if whole < 60 { return "\(whole) s" }
        return "\(whole / 60) min" + (whole % 60 == 0 ? "" : " \(whole % 60) s")
    }

    /// The local time of day so many seconds from now.
    private static func time(after seconds: Double) -> String {
        var time = Foundation.time(nil) + Int(min(max(seconds, 0), 1e9).rounded())
        var parts = tm()
        localtime_r(&time, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { ($0 < 10 ? "0" : "") + "\($0)" }
            .joined(separator: ":")
    }

    private static func bar(_ share: Double) -> String {
        let full = Int(share * 30)
        let bar = String(repeating: "█", count: full) + String(repeating: "·", count: 30 - full)
        return "[\(bar)] \(Int(share * 100)) %  "
    }

    private func text(_ status: Replicator.Status) -> String {
        var text = "\(status.activity)"
        // The error that ends it is printed last.
        if status.activity != .stopped, let error = status.error {
            text = "\(status.activity == .offline ? "offline" : "waiting"): \(error.namingOptions.message)"
            if let wait = status.wait ?? error.retryAfter.map(Double.init) {
                text += "; next attempt in \(Self.span(wait)), at \(Self.time(after: wait))"
            }
        }
        let progress = status.progress
        if progress.compared > progress.documents { text += " · \(progress.compared) compared" }
        if progress.documents > 0 {
            let rate = Int(Double(progress.documents) / max(seconds, 0.001))
            text += " · \(progress.documents.counted("document")), \(rate)/s"
        }
        return text
    }
}

/// Shows a share on a terminal, in one line of standard error.
final class ShareLine: Sendable {
    private let isTerminal = ErrorTerminal.replacesLines
    private let shown = Mutex(-1)

    func show(_ share: Double) {
        if !isTerminal { return }
        let percent = Int(share * 100)
        shown.withLock { shown in
            if percent == shown { return }
            shown = percent
            Output.notice(raw: percent == 100 ? "\r\u{1B}[K" : "\r\u{1B}[K\(percent) %")
        }
    }
}
