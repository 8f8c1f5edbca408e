private import Synchronization

/// Reports a state that the program's own rules exclude, whatever a user, a file or a peer does.
///
/// A build with `LOVESEAT_CHECKED` ends the program: tests, the simulator and fuzzers see the fault where it happens. Any other build reports it
/// to ``AssertionFailures``, and the caller goes on with what is safe.
@inline(never)
package func impossible(
    _ what: @autoclosure () -> String,
    file: StaticString = #fileID,
    line: UInt = #line
) {
    AssertionFailures.report("\(file):\(line): \(what())")
}

/// States what always holds at this place. Only a build with `LOVESEAT_CHECKED` evaluates it.
package func invariant(
    _ holds: @autoclosure () -> Bool,
    _ what: @autoclosure () -> String,
    file: StaticString = #fileID,
    line: UInt = #line
) {
    #if LOVESEAT_CHECKED
    if !holds() { impossible(what(), file: file, line: line) }
    #endif
}

/// Where failed assertions go.
package enum AssertionFailures {
    private static let receiver = Mutex<(@Sendable (String) -> Void)?>(nil)

    /// Whether a failed assertion ends the program.
    package static var areFatal: Bool {
        #if LOVESEAT_CHECKED
        true
        #else
        false
        #endif
    }

    /// Has failed assertions written down, in a build in which they do not end the program.
    package static func send(to receive: @escaping @Sendable (String) -> Void) {
        receiver.withLock { $0 = receive }
    }

    static func report(_ text: String) {
        if areFatal { fatalError("impossible: \(text)") }
        receiver.withLock { $0 }?(text)
    }
}
