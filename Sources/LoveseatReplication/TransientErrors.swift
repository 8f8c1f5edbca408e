package import LoveseatModel

extension LoveseatError {
    /// Whether another attempt may succeed later (replication.md §17.2).
    package var isTransient: Bool {
        switch code.domain {
        case .posix: Self.transientErrno.contains(code.value)
        case .couchbaseLite: Self.transientCodes.contains(code.value)
        case .sqlite: false
        }
    }

    /// Whether it may go away when the network comes back (replication.md §17.2).
    package var isNetworkDependent: Bool {
        switch code.domain {
        case .posix: Self.networkErrno.contains(code.value)
        case .couchbaseLite:
            (5_020...5_027).contains(code.value) || [5_001, 5_002, 5_003].contains(code.value)
        case .sqlite: false
        }
    }

    // ENETDOWN, ENETUNREACH, ENOTCONN, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, EADDRNOTAVAIL, EPIPE.
    #if canImport(Darwin)
    private static let networkErrno: Set<Int> = [50, 51, 57, 60, 64, 65, 49, 32]
    #else
    private static let networkErrno: Set<Int> = [100, 101, 107, 110, 112, 113, 99, 32]
    #endif

    // ENETRESET, ECONNABORTED, ECONNRESET, ETIMEDOUT, ECONNREFUSED; their numbers on Linux and on Apple's systems.
    #if canImport(Darwin)
    private static let transientErrno: Set<Int> = [52, 53, 54, 60, 61]
    #else
    private static let transientErrno: Set<Int> = [102, 103, 104, 110, 111]
    #endif

    private static let transientCodes: Set<Int> = [
        16,  // Another program holds the database file, here or at the peer.
        5_001, 5_003, 5_016, 5_017, 5_018, 5_019,  // DNS, timeout, resets and refusals
        10_408, 10_429, 10_502, 10_503, 10_504,  // HTTP
        11_006, 14_001,  // WebSocket
    ]
}
