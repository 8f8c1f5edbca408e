/// What a test waits for and cannot be told did not become so in time.
package struct NotInTime: Error, CustomStringConvertible {
    package let description: String
}

/// Asks until something is so, for at most a number of seconds.
///
/// - Throws: ``NotInTime``; what the closure throws.
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
