import Observation

/// Waits until a condition on view models holds, as a view does: it looks again after each change of what it read. Returns after some time in
/// any case. For faces without a framework that does this, and for tests.
@MainActor
package func watch(for limit: Duration = .seconds(60), until isTrue: @MainActor () -> Bool) async {
    let deadline = ContinuousClock.now + limit
    while ContinuousClock.now < deadline, !Task.isCancelled {
        let (changes, change) = AsyncStream.makeStream(of: Void.self)
        if withObservationTracking(isTrue, onChange: { change.finish() }) { return }
        let timer = Task {
            // It ends early if what it waits for has come.
            try? await Task.sleep(until: deadline)
            change.finish()
        }
        for await _ in changes {}
        timer.cancel()
    }
}
