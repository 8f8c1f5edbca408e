/// The error of a condition that a test waited for, and that was not met in time.
package struct NotInTime: Error, CustomStringConvertible {
    package let description: String
}

/// Waits until a condition is met, for at most a number of seconds.
///
/// - Throws: ``NotInTime``; the error of the closure.
package func eventually(
    within seconds: Int = 30,
    _ what: String = "it",
    _ isSo: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while try await !isSo() {
        guard ContinuousClock.now < deadline else {
            throw NotInTime(description: "\(what) did not become so within \(seconds) seconds")
        }
        try await Task.sleep(for: .milliseconds(5))
    }
}
