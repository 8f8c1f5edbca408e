import Dispatch
import Foundation
import Synchronization

/// Interrupts from a terminal or a supervisor, which end a command in good order.
enum Signals {
    private static let sources = Mutex<[any DispatchSourceSignal]>([])

    /// Calls a closure at SIGINT or SIGTERM, each time.
    static func onInterrupt(_ body: @escaping @Sendable () -> Void) {
        for number in [SIGINT, SIGTERM] { on(number, body) }
    }

    /// Calls a closure at SIGHUP, each time.
    static func onHangup(_ body: @escaping @Sendable () -> Void) { on(SIGHUP, body) }

    private static func on(_ number: Int32, _ body: @escaping @Sendable () -> Void) {
        signal(number, SIG_IGN)
        sources.withLock { sources in
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler(handler: body)
            source.resume()
            sources.append(source)
        }
    }

    /// Tells from now on whether there was one.
    static func whenInterrupted() -> @Sendable () -> Bool {
        let flag = Flag()
        onInterrupt { flag.isSet.store(true, ordering: .releasing) }
        return { flag.isSet.load(ordering: .acquiring) }
    }

    private final class Flag: Sendable {
        let isSet = Atomic(false)
    }
}
