import Foundation
import Synchronization

/// SIGINT and SIGTERM. The first one ends a command normally, a second one ends the process at once.
enum Signals {
    private static let first = Atomic<Int32>(0)
    /// The end of a pipe that the signal handler writes to.
    private static let output = Atomic<Int32>(-1)

    /// The signal that asked the command to end; nil if none did.
    static var interruption: Int32? {
        let number = first.load(ordering: .acquiring)
        return number == 0 ? nil : number
    }

    /// Calls a closure at the first signal.
    static func onInterrupt(_ body: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        output.store(ends[1], ordering: .releasing)
        let input = ends[0]
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while true {
                let count = read(input, &byte, 1)
                if count < 0, errno == EINTR { continue }
                guard count == 1 else { return }
                body()
            }
        }
        _ = first.load(ordering: .relaxed)
        for number in [SIGINT, SIGTERM] { listen(to: number) }
    }

    /// Only async-signal-safe functions may be called in the handler.
    private static func listen(to number: Int32) {
        signal(number) { number in
            let isFirst = Signals.first.compareExchange(
                expected: 0,
                desired: number,
                ordering: .acquiringAndReleasing
            ).exchanged
            guard isFirst else { _exit(128 + number) }
            let saved = errno
            var byte = UInt8(truncatingIfNeeded: number)
            _ = write(Signals.output.load(ordering: .acquiring), &byte, 1)
            errno = saved
        }
    }
}
