public import Foundation
import LoveseatIdentity
import LoveseatNetwork
import Synchronization

/// Serves collections of a database to replicators, over WebSockets.
///
/// A started listener is kept alive by its database until it is stopped, and stops when the database is closed or deleted. It can be
/// started again. It is safe to use from any thread.
public final class URLEndpointListener: Sendable {
    /// The number of a listener's connections.
    public struct ConnectionStatus: Sendable {
        /// The number of open connections.
        public let connectionCount: UInt64
        /// The number of connections that transfer documents at the moment.
        public let activeConnectionCount: UInt64
    }

    /// The configuration with which the listener was created.
    public let config: URLEndpointListenerConfiguration
    private let engine: LoveseatNetwork.URLEndpointListener
    /// The object of the last anonymous identity.
    private let anonymous = Mutex<TLSIdentity?>(nil)

    /// Creates a listener. It listens when it is started.
    public init(config: URLEndpointListenerConfiguration) {
        self.config = config
        engine = LoveseatNetwork.URLEndpointListener(config.engine)
    }

    /// The port on which the listener accepts connections; nil while it is not running.
    public var port: UInt16? { engine.port }

    /// The identity that the listener shows to clients; nil while it is not running, and without TLS.
    public var tlsIdentity: TLSIdentity? {
        guard let identity = engine.tlsIdentity else { return nil }
        if let configured = config.tlsIdentity, configured.engine === identity { return configured }
        return anonymous.withLock { anonymous in
            if let anonymous, anonymous.engine === identity { return anonymous }
            let made = TLSIdentity(identity)
            anonymous = made
            return made
        }
    }

    /// The URLs at which peers can reach the listener, those for this host alone last; nil while it is not running.
    public var urls: [URL]? { engine.urls }

    /// The current number of connections; none while the listener is not running.
    public var status: ConnectionStatus {
        let status = engine.status
        return ConnectionStatus(
            connectionCount: status.connectionCount,
            activeConnectionCount: status.activeConnectionCount
        )
    }

    /// Starts to accept connections, and returns when it does. Does nothing if the listener is running.
    ///
    /// - Throws: `EADDRINUSE` of the domain `NSPOSIXErrorDomain` if the port is in use; `unknownHost` for an interface that does not
    ///   exist; `invalidParameter` for a certificate authenticator without TLS; `crypto`; `notOpen`.
    public func start() throws {
        let engine = engine
        try CBLError.converting { try blocking { try await engine.start() } }
    }

    /// Stops accepting connections, closes those that are open, and returns when they have ended. Does nothing if the listener is not
    /// running. Do not call this in the listener's authenticator, which it waits for.
    public func stop() {
        let engine = engine
        // Stopping does not fail.
        try? blocking { await engine.stop() }
    }

    /// Removes the identity that listeners without an identity of their own have. The next one that starts creates another.
    public static func deleteAnonymousIdentities() throws {
        try CBLError.converting { try EngineIdentity.deleteAnonymousIdentity() }
    }
}
