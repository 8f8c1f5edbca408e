import Foundation
import LoveseatModel
import LoveseatNetwork

/// Ports outside the range that the system takes from for clients, so that a listener finds its port free when it comes back.
enum LastingPort {
    static func listener(_ start: (UInt16) async throws -> URLEndpointListener) async throws
        -> URLEndpointListener
    {
        while true {
            do { return try await start(.random(in: 20_000..<32_000)) } catch let error as LoveseatError
                where error.code == .init(Int(EADDRINUSE), domain: .posix)
            {
                continue
            }
        }
    }
}
