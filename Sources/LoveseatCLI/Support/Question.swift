import Foundation
import Loveseat
import LoveseatDiscovery
import Synchronization

/// A question to the person at the terminal.
enum Question {
    /// Asks whether to trust a peer that is connected to for the first time. Without a terminal the answer is no.
    static func trusts(_ peer: UnknownPeer) async -> Bool {
        guard isPossible else { return false }
        let fingerprint = peer.certificate.fingerprint
        Output.remark(
            "loveseat: \"\(peer.name)\" is not known yet. The SHA-256 fingerprint of its certificate is"
        )
        Output.remark("  \(fingerprint)")
        Output.remark("Compare it with the one that `loveseat serve` shows there as its pin.")
        Output.remark(raw: "Trust this certificate from now on? [y/N] ")
        let typed = await line()
        return isYes(typed)
    }

    /// Whether there is a terminal to ask at.
    static var isPossible: Bool { isatty(0) == 1 && isatty(2) == 1 }

    /// Asks whether to do something that cannot be undone. Every other answer than yes means no.
    static func confirms(_ question: String) -> Bool {
        Output.remark(raw: "\(question.printable) [y/N] ")
        return isYes(readLine())
    }

    private static func isYes(_ typed: String?) -> Bool {
        ["y", "yes"].contains(typed?.trimmingCharacters(in: .whitespaces).lowercased())
    }

    /// A line of standard input; nil at its end, or if the task is cancelled or the command interrupted.
    private static func line() async -> String? {
        let answer = Answer()
        Signals.onInterrupt { answer.answer(nil) }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                answer.wait(continuation)
                Thread.detachNewThread { answer.answer(readLine()) }
            }
        } onCancel: {
            answer.answer(nil)
        }
    }
}

/// Takes the first answer.
private final class Answer: Sendable {
    private struct State {
        var waiter: CheckedContinuation<String?, Never>?
        var isAnswered = false
    }
    private let state = Mutex(State())

    func wait(_ continuation: CheckedContinuation<String?, Never>) {
        let isLate = state.withLock { state in
            if !state.isAnswered { state.waiter = continuation }
            return state.isAnswered
        }
        if isLate { continuation.resume(returning: nil) }
    }

    func answer(_ text: String?) {
        let waiter = state.withLock { state in
            state.isAnswered = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: text)
    }
}
