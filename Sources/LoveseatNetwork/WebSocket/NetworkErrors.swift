package import LoveseatModel
import LoveseatPlatform
import NIOCore
import NIOPosix
import NIOSSL

extension LoveseatError {
    /// Converts an error of sockets, name lookup or HTTP.
    package init(network error: any Error) {
        switch error {
        case let error as LoveseatError: self = error
        case let error as IOError:
            let text = String(cString: strerror(error.errnoCode)).lowercased()
            self.init(.init(Int(error.errnoCode), domain: .posix), text)
        case let error as NIOConnectionError: self.init(connecting: error)
        case NIOSSLError.handshakeFailed(let error): self.init(tls: error)
        case NIOSSLError.uncleanShutdown:
            self.init(.webSocketAbnormalClose, "the connection broke without a TLS close alert")
        case let error as BoringSSLError: self.init(tls: error)
        case ChannelError.connectTimeout: self.init(.timeout, "the peer did not answer in time")
        case is ChannelError: self.init(.webSocketAbnormalClose, "the connection broke: \(error)")
        case is CancellationError: self.init(.webSocketAbnormalClose, "cancelled")
        default: self.init(.webSocketAbnormalClose, "the connection broke: \(error)")
        }
    }

    private init(connecting error: NIOConnectionError) {
        let address = "\(error.host):\(error.port)"
        if let failure = error.connectionErrors.first {
            let inner = LoveseatError(network: failure.error)
            self = inner.connecting(to: address)
        } else {
            self.init(.unknownHost, "there is no host \(error.host): check the name, or the network's DNS")
        }
    }

    /// Whether nothing listens at the peer's address.
    package var isRefusedConnection: Bool { code == Self.refused }

    /// The error of an address that could not be connected to.
    package func connecting(to address: String) -> LoveseatError {
        let advice = isRefusedConnection ? ": is the peer running, and is the port right?" : ""
        return LoveseatError(code, "cannot connect to \(address): \(message)\(advice)")
    }

    /// The error of an address that cannot be listened at.
    func listening(at address: String, _ port: Int) -> LoveseatError {
        let place = port == 0 ? address : "\(address), port \(port)"
        let advice =
            switch code {
            case .init(Int(EADDRNOTAVAIL), domain: .posix): ": no interface of this computer has this address"
            case .init(Int(EADDRINUSE), domain: .posix): ": another program listens there"
            default: ""
            }
        return LoveseatError(code, "cannot listen at \(place): \(message)\(advice)")
    }

    /// The reason why a TLS handshake failed. BoringSSL gives it as names in a text.
    private init(tls error: BoringSSLError) {
        let text = "\(error)"
        func mentions(_ names: String...) -> Bool { names.contains { text.contains($0) } }
        if mentions("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_RECORD", "HTTPS_PROXY_REQUEST") {
            self.init(
                .tlsHandshakeFailed,
                "the peer does not speak TLS: if that is right, use a ws:// or http:// URL"
            )
        } else if mentions("ALERT_CERTIFICATE_REQUIRED") {
            self.init(
                .tlsClientCertRequired,
                "the server asks for a client certificate: set a ClientCertificateAuthenticator"
            )
        } else if mentions(
            "ALERT_BAD_CERTIFICATE",
            "ALERT_CERTIFICATE_UNKNOWN",
            "ALERT_UNKNOWN_CA",
            "ALERT_ACCESS_DENIED",
            "ALERT_CERTIFICATE_EXPIRED",
            "ALERT_CERTIFICATE_REVOKED",
            "ALERT_UNSUPPORTED_CERTIFICATE"
        ) {
            self.init(
                .tlsClientCertRejected,
                "the server refused this client's certificate: use one that it trusts"
            )
        } else if mentions("EOF during handshake") {
            self.init(.tlsHandshakeFailed, "the peer closed the connection during the TLS handshake")
        } else if mentions("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL") {
            self.init(.tlsHandshakeFailed, "the peer does not support TLS 1.2 or newer")
        } else {
            self.init(.tlsHandshakeFailed, "the TLS handshake failed: \(text)")
        }
    }

    private static let refused = Code(Int(ECONNREFUSED), domain: .posix)
}
