package import Foundation
import Logging
import LoveseatAssertions
import LoveseatCore
package import LoveseatIdentity
import NIOConcurrencyHelpers
package import NIOCore

/// The life of a listener, which is stopped or runs. Starts and stops take effect one after the other, in the order of the calls.
///
/// `Service`: answers the connections of the port.
package final class ListenerLife<Service: Sendable>: Sendable {
    /// A listener that runs.
    package struct Running: Sendable {
        /// Nil while the port is another listener's.
        package let channel: (any Channel)?
        package let service: Service
        package var port: UInt16
        package var urls: [URL]
        package let identity: TLSIdentity?

        package init(
            channel: (any Channel)?,
            service: Service,
            port: UInt16,
            urls: [URL],
            identity: TLSIdentity?
        ) {
            self.channel = channel
            self.service = service
            self.port = port
            self.urls = urls
            self.identity = identity
        }
    }

    package let advertising = ListenerAdvertising()
    private let state = NIOLockedValueBox<Running?>(nil)
    private let lock = AsyncLock()

    package init() {}

    /// Nil while the listener does not run.
    package var running: Running? { state.withLockedValue { $0 } }

    /// The URLs of the port; while the listener is advertised, one with its host name in the domain `local` follows.
    package var urls: [URL]? {
        running.map { $0.urls + ListenerAddresses.url(in: $0.urls, host: advertising.host) }
    }

    /// Runs a step while there is no other.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before; as `step`.
    package func alone<Result>(_ step: () async throws -> Result) async throws -> Result {
        guard await lock.acquire() else { throw CancellationError() }
        defer { lock.release() }
        return try await step()
    }

    /// The listener runs from now on. `closed`: called when the port is closed, by the system or by a stop.
    package func begin(_ running: Running, closed: @escaping @Sendable (any Channel) async -> Void = { _ in })
    {
        state.withLockedValue { $0 = running }
        // The port may be another listener's.
        guard let channel = running.channel else { return }
        channel.closeFuture.whenComplete { _ in
            Task(executorPreference: BlockingThreads.shared) { await closed(channel) }
        }
    }

    /// Notes the address of a port that is another listener's.
    package func note(port: UInt16, urls: [URL]) {
        state.withLockedValue {
            $0?.port = port
            $0?.urls = urls
        }
    }

    /// Stops the listener: its advertisement, its port, and then by `end` the rest. Not to be called by a task that may be cancelled.
    ///
    /// `closed`: the port that was closed; the listener may have been started again since. Nil for a stop that was asked for.
    package func stop(ifAccepting closed: (any Channel)?, _ end: (Running) async -> Void) async {
        guard await lock.acquire() else {
            return impossible("the task that stops a listener was cancelled")
        }
        defer { lock.release() }
        let stopped = state.withLockedValue { state -> Running? in
            if let closed, state?.channel !== closed { return nil }
            defer { state = nil }
            return state
        }
        // The listener was stopped before, or was not started.
        guard let stopped else { return }
        if closed != nil {
            LogDomain.listener.log(
                .error,
                "port \(stopped.port) was closed, because accepting connections failed: start the listener again"
            )
        }
        await advertising.end()
        // The port may be closed already: an error of accepting closes it.
        try? await stopped.channel?.close().get()
        await end(stopped)
        LogDomain.listener.log(.info, "stopped listening on port \(stopped.port)")
    }
}
