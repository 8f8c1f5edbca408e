import Foundation
import Loveseat
import Synchronization

/// Shows the progress of a replication on standard error: a bar on a terminal, otherwise lines.
struct ProgressBar {
    private let isTerminal = isatty(2) == 1
    private let start = ContinuousClock.now
    private var lastShown = ContinuousClock.now - .seconds(60)
    private var lastActivity: Replicator.ActivityLevel?

    mutating func show(_ status: Replicator.Status) {
        let now = ContinuousClock.now
        let isNews = status.activity != lastActivity
        guard isNews || now - lastShown > (isTerminal ? .milliseconds(100) : .seconds(2)) else { return }
        lastShown = now
        lastActivity = status.activity
        if isTerminal {
            Output.remark(raw: "\r\u{1B}[K\(bar(status).printable)")
        } else if isNews || status.activity == .busy {
            Output.remark(text(status))
        }
    }

    /// Clears the bar's line.
    func end() { if isTerminal { Output.remark(raw: "\r\u{1B}[K") } }

    var seconds: Double {
        let elapsed = (ContinuousClock.now - start).components
        return Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18
    }

    private func bar(_ status: Replicator.Status) -> String {
        let progress = status.progress
        let share = progress.total == 0 ? 1 : Double(progress.completed) / Double(progress.total)
        let full = Int(share * 30)
        let bar = String(repeating: "█", count: full) + String(repeating: "·", count: 30 - full)
        return "[\(bar)] \(Int(share * 100)) %  \(text(status))"
    }

    private func text(_ status: Replicator.Status) -> String {
        let activity = "\(status.activity)"
        // The error that ends it is printed last.
        let error = status.activity == .stopped ? "" : status.error.map { ": \($0.message)" } ?? ""
        let rate = Int(Double(status.progress.documents) / max(seconds, 0.001))
        let documents =
            status.progress.documents > 0
            ? " · \(status.progress.documents.counted("document")), \(rate)/s" : ""
        return activity + error + documents
    }
}

/// Shows a share on a terminal, in one line of standard error.
final class ShareLine: Sendable {
    private let isTerminal = isatty(2) == 1
    private let shown = Mutex(-1)

    func show(_ share: Double) {
        guard isTerminal else { return }
        let percent = Int(share * 100)
        shown.withLock { shown in
            guard percent != shown else { return }
            shown = percent
            Output.remark(raw: percent == 100 ? "\r\u{1B}[K" : "\r\u{1B}[K\(percent) %")
        }
    }
}
