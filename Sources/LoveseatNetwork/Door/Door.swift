package import LoveseatIdentity
package import LoveseatModel
package import NIOCore
import NIOPosix

/// Puts a wire's handlers into the pipeline of a new connection, behind those of TLS, on its event loop.
package typealias PipelineInstaller = @Sendable (any Channel, ShownCertificates?) throws -> Void

/// The checks that clients of a listener pass before they are served, whatever the wire: a limit on connections that are not authenticated,
/// TLS, and authentication.
package struct Door: Sendable {
    private static let maximumHalfOpen = 256

    package let authenticator: ConnectionAuthenticator
    private let tls: ListenerTLS?
    private let halfOpen: HalfOpenConnections

    /// `identity`: nil without TLS. `patience`: how long a client may take until it is admitted, in seconds.
    ///
    /// - Throws: ``LoveseatError``: `invalidParameter` for an authenticator that needs TLS, without it; `crypto` for an identity that
    ///   cannot be used.
    package init(
        _ authenticator: (any ListenerAuthenticator)?,
        identity: TLSIdentity?,
        patience: Double,
        minimumTLSVersion: ListenerTLSVersion = .tlsv12
    ) throws(LoveseatError) {
        guard identity != nil || authenticator?.requestsClientCertificates != true else {
            throw LoveseatError(
                .invalidParameter,
                "certificates are shown in TLS handshakes: do not disable TLS with an authenticator that asks for them"
            )
        }
        self.authenticator = ConnectionAuthenticator(
            authenticator,
            fingerprint: identity?.certs.first?.fingerprint
        )
        tls =
            if let identity {
                try ListenerTLS(
                    identity: identity,
                    authenticator: authenticator,
                    minimum: minimumTLSVersion
                )
            } else { nil }
        halfOpen = HalfOpenConnections(
            limit: Self.maximumHalfOpen,
            patience: .milliseconds(Int64(patience * 1_000))
        )
    }

    /// Called when a client was admitted.
    package func admitted(_ channel: any Channel) { halfOpen.remove(channel) }

    /// Listens on a port.
    ///
    /// - Throws: ``LoveseatError`` with `unknownHost` for an interface that does not exist; NIO's errors.
    package func bind(
        interface: String?,
        port: Int,
        install: @escaping PipelineInstaller
    ) async throws -> any Channel {
        let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelInitializer { channel in
                // Without free file descriptors, accepting again at once would only use the processor.
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptPause())
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                halfOpen.add(channel)
                return channel.eventLoop.makeCompletedFuture {
                    let secure = try tls?.makeHandlers(address: PeerAddress(channel.remoteAddress).text)
                    if let secure { try channel.pipeline.syncOperations.addHandlers(secure.handlers) }
                    try install(channel, secure?.shown)
                }
            }
        if let interface {
            let address = try ListenerAddresses.address(of: interface, port: port)
            do { return try await bootstrap.bind(to: address).get() } catch {
                throw LoveseatError(network: error).listening(at: PeerAddress(address).text, port)
            }
        }
        do { return try await bootstrap.bind(host: "::", port: port).get() } catch let error as IOError
            where error.errnoCode == EAFNOSUPPORT || error.errnoCode == EADDRNOTAVAIL
        {
            do { return try await bootstrap.bind(host: "0.0.0.0", port: port).get() } catch {
                throw LoveseatError(network: error).listening(at: "0.0.0.0", port)
            }
        } catch { throw LoveseatError(network: error).listening(at: "::", port) }
    }
}
