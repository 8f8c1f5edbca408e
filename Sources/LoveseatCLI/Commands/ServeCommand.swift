import ArgumentParser
import Foundation
import Loveseat

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let peers replicate with a database, until interrupted.",
        discussion: """
            Prints the URLs, one a line, as soon as it accepts, and on standard error the fingerprint of its certificate, \
            which others pin: `loveseat sync DB URL --pin FINGERPRINT`.

            EXAMPLE: loveseat serve trips --port 55990 --user ana --password-file secret.txt
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Option(help: "The port; 0 for a free one.")
    var port: UInt16 = 0
    @Option(help: "The network interface or address to listen on; all if it is not named.")
    var interface: String?
    @OptionGroup var credentials: Credentials
    @Option(help: "The collections to serve, with commas in between; all if none is named.")
    var collections = ""
    @Flag(help: "Let peers pull only.")
    var readOnly = false
    @Flag(help: "Send and take only the difference where a peer has an earlier revision.")
    var delta = false
    @Option(
        help:
            "The identity to show: anonymous, a label, cert.pem:key.pem, or file.p12 (LOVESEAT_IDENTITY_PASSWORD has its password)."
    )
    var tls = "anonymous"
    @Flag(help: "Serve in the clear.")
    var noTls = false
    @Option(
        name: .customLong("client-ca"),
        help: "A PEM file: clients need a certificate of one of its authorities."
    )
    var clientCA: String?

    @Flag(help: "Let in the peers that the database was paired with (loveseat pair).")
    var paired = false
    @Option(
        help: ArgumentHelp(
            "A JSON file that says what each peer, by its user name, the name of `pair show --name`, its certificate's common name with --client-ca, or its fingerprint, may do: {\"ana\": \"write\", \"bob\": {\"travel.notes\": {\"access\": \"write\", \"if\": \"owner = \\\"bob\\\"\"}}, \"*\": \"none\"}. Read again at SIGHUP."
        )
    )
    var access: String?
    @Flag(help: "Do not print a line when a peer comes, is done, or goes.")
    var quiet = false

    @OptionGroup var logging: LogOptions

    func validate() throws {
        guard [clientCA != nil, credentials.user != nil, paired].count(where: { $0 }) <= 1 else {
            throw ValidationError("Use one of --client-ca, --user and --paired.")
        }
        guard clientCA == nil && !paired || !noTls else {
            throw ValidationError("Certificates are shown in TLS: leave out --no-tls.")
        }
    }

    private func configuration(_ database: Database, _ policy: AccessPolicy?) throws
        -> URLEndpointListenerConfiguration
    {
        var configuration = URLEndpointListenerConfiguration(
            collections: try database.collections(named: collections.collectionNames)
        )
        configuration.port = port
        configuration.networkInterface = interface
        configuration.readOnly = readOnly
        configuration.accessPolicy = policy
        configuration.enableDeltaSync = delta
        configuration.disableTLS = noTls
        if !noTls { configuration.tlsIdentity = try Identities.identity(tls) }
        if paired { configuration.authenticator = ListenerPairingAuthenticator(database: database) }
        if let clientCA {
            configuration.authenticator = ListenerCertificateAuthenticator(
                rootCertificates: try Identities.certificates(clientCA)
            )
        }
        if let user = credentials.user {
            let password = try credentials.password()
            configuration.authenticator = ListenerPasswordAuthenticator {
                ListenerPasswordAuthenticator.isEqual($0, user)
                    && ListenerPasswordAuthenticator.isEqual($1, password)
            }
        }
        return configuration
    }

    func run() async throws {
        try logging.begin()
        let database = try argument.open(keepsDeltaBases: delta)
        let accessFile = try access.map(AccessFile.init)
        let listener = URLEndpointListener(try configuration(database, accessFile?.policy))
        if let accessFile { Self.reload(accessFile, for: listener) }
        let lines = quiet ? nil : listener.peerChanges
        let printing = Task { if let lines { await PeerLines.print(lines) } }
        let (interrupts, continuation) = AsyncStream<Void>.makeStream()
        Signals.onInterrupt { continuation.yield() }
        try await listener.start()
        if let certificate = listener.tlsIdentity?.certs.first {
            Output.remark("loveseat: pin \(certificate.fingerprint)")
        }
        for url in listener.urls ?? [] { try Output.standard.line(url.absoluteString) }
        try Output.standard.flush()
        for await _ in interrupts { break }
        try await database.close()
        printing.cancel()
    }
}

extension Serve {
    private static func reload(_ file: AccessFile, for listener: URLEndpointListener) {
        Signals.onHangup {
            do {
                try file.reload()
                Task { await listener.accessChanged() }
                Output.remark("loveseat: access is as the file says now")
            } catch { Output.remark("loveseat: \(error)") }
        }
    }
}

extension Database {
    /// Collections by name; every one if none is named.
    func collections(named names: [CollectionName]) throws -> [Loveseat.Collection] {
        guard !names.isEmpty else { return try scopes().flatMap { try $0.collections() } }
        return try names.map { name in
            guard let collection = try collection(name: name.name, scope: name.scope) else {
                throw LoveseatError(
                    .notFound,
                    "there is no collection \(name.fullName): make it with `loveseat create DB --collections \(name)`"
                )
            }
            return collection
        }
    }
}
