package import LoveseatModel

extension LoveseatError {
    /// Whether the same thing may well succeed later (replication.md §17.2).
    package var isTransient: Bool {
        switch code.domain {
        case .posix: Self.transientErrno.contains(code.value)
        case .couchbaseLite: Self.transientCodes.contains(code.value)
        case .sqlite: false
        }
    }

    // ENETRESET, ECONNABORTED, ECONNRESET, ETIMEDOUT, ECONNREFUSED; their numbers on Linux and on Apple's systems.
    #if canImport(Darwin)
    private static let transientErrno: Set<Int> = [52, 53, 54, 60, 61]
    #else
    private static let transientErrno: Set<Int> = [102, 103, 104, 110, 111]
    #endif

    private static let transientCodes: Set<Int> = [
        5_001, 5_003, 5_016, 5_017, 5_018, 5_019,  // DNS, timeout, resets and refusals
        10_408, 10_429, 10_502, 10_503, 10_504,  // HTTP
        11_006, 14_001,  // WebSocket
    ]
}
