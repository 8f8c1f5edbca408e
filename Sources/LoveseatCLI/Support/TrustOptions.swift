import ArgumentParser
import Loveseat

/// The options for trust and proxies.
struct TrustOptions: ParsableArguments {
    @Option(help: "The SHA-256 fingerprint of a certificate that the peer must show; `serve` prints it.")
    var pin: String?
    @Option(help: "A PEM file with the authorities to trust instead of the system's.", completion: .file())
    var ca: String?
    @Flag(help: "Accept any self-signed certificate, and no others: whoever answers is trusted.")
    var selfSigned = false
    @Option(
        help: "The identity to show to the peer: a label, cert.pem:key.pem, or file.p12.",
        completion: .identity
    )
    var identity: String?
    @Option(
        help:
            "An HTTP proxy to go through: http://[user:password@]host:port. Or use --proxy-file or LOVESEAT_PROXY, which other users cannot see."
    )
    var proxy: String?
    @Option(help: "A file with the proxy's URL in its first line.", completion: .file())
    var proxyFile: String?

    func validate() throws {
        guard (pin == nil ? 0 : 1) + (ca == nil ? 0 : 1) + (selfSigned ? 1 : 0) <= 1 else {
            throw ValidationError("Use one of --pin, --ca and --self-signed.")
        }
    }

    func clientIdentity() throws -> TLSIdentity? { try identity.map(Identities.identity) }

    func apply(to configuration: inout ReplicatorConfiguration) throws {
        configuration.pinnedServerFingerprint = pin
        configuration.rootCertificates = try ca.map(Identities.certificates)
        configuration.acceptOnlySelfSignedServerCertificate = selfSigned
        if let proxy = try Secret.read(proxy, file: proxyFile, variable: "LOVESEAT_PROXY"), !proxy.isEmpty {
            guard let parsed = ProxyConfiguration(url: proxy) else {
                throw LoveseatError(.invalidParameter, "the proxy is not a URL: use http://host:port")
            }
            configuration.proxy = parsed
        }
    }
}
