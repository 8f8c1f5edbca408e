import Foundation
import LoveseatAssertions
import Synchronization

/// Signals from a terminal or a supervisor, which end a command normally.
///
/// The first SIGINT or SIGTERM is passed to the command; another one ends the process at once. From
/// ``begin()`` on none is lost. SIGHUP does the same for a command that calls ``beginWithHangup()``.
enum Signals {
    private static let handlers = Mutex<[Int32: [@Sendable () -> Void]]>([:])
    /// The first signal that asked the command to end; 0 for none.
    private static let first = Atomic<Int32>(0)
    /// The end of a pipe that the signal handler writes to.
    private static let output = Atomic<Int32>(-1)
    private static let hasBegun = Atomic(false)
    /// Whether SIGHUP asks the command to end, too.
    private static let hangupEnds = Atomic(false)
    private static let isInteractive = Atomic(false)
    private static let interruptCount = Atomic(0)

    /// How many SIGINTs there were since ``onEachInterrupt(_:)``.
    static var interrupts: Int { interruptCount.load(ordering: .acquiring) }

    /// The signal that asked the command to end; nil if none did.
    static var interruption: Int32? {
        let number = first.load(ordering: .acquiring)
        return number == 0 ? nil : number
    }

    /// Calls a closure at SIGINT or SIGTERM, at once if there was one already.
    static func onInterrupt(_ body: @escaping @Sendable () -> Void) {
        begin()
        for number in [SIGINT, SIGTERM] { add(body, for: number) }
        if hangupEnds.load(ordering: .acquiring) { add(body, for: SIGHUP) }
        if interruption != nil { body() }
    }

    /// Calls a closure at SIGHUP, each time.
    static func onHangup(_ body: @escaping @Sendable () -> Void) {
        begin()
        add(body, for: SIGHUP)
        listen(to: SIGHUP)
    }

    /// Returns a closure that returns whether there was an interrupt.
    static func whenInterrupted() -> @Sendable () -> Bool {
        begin()
        return { interruption != nil }
    }

    /// The end of a pipe that can be read from after an interrupt; nil without a file descriptor that is left.
    private static let wakening: Int32? = {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let output = ends[1]
        onInterrupt {
            var byte: UInt8 = 0
            _ = write(output, &byte, 1)
        }
        return ends[0]
    }()

    /// Waits until a file can be read. Before ``begin()``, it returns at once.
    ///
    /// - Throws: ``Interrupted`` if there was an interrupt.
    static func waitForInput(_ descriptor: Int32) throws {
        // A signal ends the process then.
        if !hasBegun.load(ordering: .acquiring) { return }
        var files = [descriptor, wakening ?? -1].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        repeat {
            if let interruption { throw Interrupted(signal: interruption) }
        } while poll(&files, nfds_t(files.count), -1) <= 0 && errno == EINTR
        if let interruption { throw Interrupted(signal: interruption) }
    }

    /// Calls a closure at each SIGINT, which then ends nothing: at a prompt it is about the statement. SIGTERM ends the process.
    static func onEachInterrupt(_ body: @escaping @Sendable () -> Void) {
        isInteractive.store(true, ordering: .releasing)
        begin()
        add(body, for: SIGINT)
        signal(SIGTERM, SIG_DFL)
    }

    /// Keeps SIGINT and SIGTERM from ending the process before the command has done its work.
    static func begin() {
        if hasBegun.exchange(true, ordering: .acquiringAndReleasing) { return }
        var ends: [Int32] = [-1, -1]
        // Without a file descriptor that is left, a signal ends the process at once.
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // The handler must never wait.
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        _ = first.load(ordering: .relaxed)
        output.store(ends[1], ordering: .releasing)
        let input = ends[0]
        Thread.detachNewThread { deliver(from: input) }
        for number in [SIGINT, SIGTERM] { listen(to: number) }
        unblock()
    }

    /// Like ``begin()``, also for SIGHUP, which the end of a terminal sends. Call it first. `nohup` keeps its effect.
    static func beginWithHangup() {
        begin()
        let isIgnored =
            unsafeBitCast(signal(SIGHUP, SIG_IGN), to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
        if isIgnored { return }
        hangupEnds.store(true, ordering: .releasing)
        listen(to: SIGHUP)
    }

    /// A program that was started by a thread that blocks signals, as those of Dispatch do, begins with them blocked.
    private static func unblock() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, number) }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    private static func add(_ body: @escaping @Sendable () -> Void, for number: Int32) {
        handlers.withLock { $0[number, default: []].append(body) }
    }

    /// Only async-signal-safe functions may be called in it.
    private static func listen(to number: Int32) {
        signal(number) { number in
            if number == SIGINT, Signals.isInteractive.load(ordering: .acquiring) {
                Signals.interruptCount.add(1, ordering: .acquiringAndReleasing)
            } else if number != SIGHUP || Signals.hangupEnds.load(ordering: .acquiring) {
                let isFirst = Signals.first.compareExchange(
                    expected: 0,
                    desired: number,
                    ordering: .acquiringAndReleasing
                ).exchanged
                // A closed terminal sends SIGHUP by itself, and its shell and a supervisor send another one: it asks for no haste.
                if !isFirst, number != SIGHUP { _exit(128 + number) }
            }
            let saved = errno
            var byte = UInt8(truncatingIfNeeded: number)
            _ = write(Signals.output.load(ordering: .acquiring), &byte, 1)
            errno = saved
        }
    }

    private static func deliver(from input: Int32) {
        var byte: UInt8 = 0
        while true {
            let count = read(input, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else {
                return impossible("the pipe of the signals has ended: \(count), errno \(errno)")
            }
            let number = Int32(byte)
            for body in handlers.withLock({ $0[number] ?? [] }) { body() }
        }
    }
}
