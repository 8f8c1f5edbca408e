private import LoveseatModel
private import LoveseatPlatform

/// The system, as a database that makes versions uses it.
package struct VersionSystem: Sendable {
    /// The clock, in nanoseconds since 1970.
    package var nanoseconds: @Sendable () -> UInt64 = {
        var time = timespec()
        guard clock_gettime(CLOCK_REALTIME, &time) == 0 else { return 0 }
        let seconds = UInt64(clamping: time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        return seconds.overflow ? .max : seconds.partialValue.addingSaturated(UInt64(clamping: time.tv_nsec))
    }
    /// Names the run of the operating system, from one start to the next; nil if it cannot be told.
    package var bootID: @Sendable () -> String? = { BootID.current() }
    /// 16 bytes of random bits for a new source.
    package var newSource: @Sendable () -> [UInt8] = { (0..<16).map { _ in UInt8.random(in: 0...255) } }

    /// Called if versions get another source, but not for that of a copy.
    package var onNewSource: @Sendable (NewSourceReason) -> Void = { _ in }

    package init() {}
}
