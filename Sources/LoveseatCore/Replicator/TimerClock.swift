private import Dispatch
import LoveseatReplication
import LoveseatStorage

/// The continuous clock, whose `sleep` ends on time even if every thread of Swift's pool is blocked.
struct TimerClock: Clock {
    var now: ContinuousClock.Instant { .now }
    var minimumResolution: Duration { ContinuousClock().minimumResolution }

    /// Waits. The tolerance has no effect.
    ///
    /// - Throws: `CancellationError`.
    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
        var timer: (any DispatchSourceTimer)?
        let isOver: Bool? = await unlessCancelled { finish in
            let source = DispatchSource.makeTimerSource(queue: .deadlines)
            source.setEventHandler { _ = finish(true) }
            source.schedule(deadline: .now() + now.duration(to: deadline).dispatchInterval)
            source.resume()
            timer = source
        }
        timer?.cancel()
        if isOver == nil { throw CancellationError() }
    }
}
