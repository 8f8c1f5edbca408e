import ArgumentParser
import Foundation
import Loveseat
import LoveseatCouchDB
import LoveseatDiscovery
import LoveseatInspector

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Let peers replicate with a database, until interrupted.",
        discussion: """
            When it accepts connections, prints its URLs, one per line, and on standard error the fingerprint of its \
            certificate, which peers pin: `loveseat sync DB URL --pin FINGERPRINT`.

            SIGINT and SIGTERM close the connections; the exit code is 0. SIGHUP makes it read the file of --access again.

            EXAMPLE
              loveseat serve trips --port 55990 --user ana --password-file secret.txt
            """
    )

    @OptionGroup var argument: DatabaseArgument
    @Option(
        help:
            "The database's name in the URLs. The default is its own. Couchbase Lite needs lower-case letters and digits."
    )
    var name: String?
    @Option(help: "The port; 0 for a free one.")
    var port: UInt16 = 0
    @Option(help: "The network interface or address to listen on. The default is all.")
    var interface: String?
    @OptionGroup var credentials: Credentials
    @Option(
        help: "The collections to serve, separated by commas. The default is all.",
        completion: .collections
    )
    var collections = ""
    @Flag(help: "Let peers only pull.")
    var readOnly = false
    @Flag(help: "Let peers only push.")
    var writeOnly = false
    @Flag(help: "Send and accept only the difference if a peer has an earlier revision.")
    var delta = false
    @Option(
        help:
            "The identity to show: anonymous, a label, cert.pem:key.pem, or file.p12 (LOVESEAT_IDENTITY_PASSWORD has its password).",
        completion: .identity
    )
    var tls = "anonymous"
    @Flag(help: "Do not warn that everybody on the network can connect.")
    var open = false
    @Flag(help: "Serve without encryption.")
    var noTls = false
    @Option(
        name: .customLong("client-ca"),
        help: "A PEM file with authorities: clients need a certificate from one of them.",
        completion: .file()
    )
    var clientCA: String?

    @Flag(help: "Accept only peers that the database was paired with (loveseat pair).")
    var paired = false
    @Option(
        help: ArgumentHelp(
            "A JSON file with the rights of each peer, by its user name, the name of `pair show --name`, its certificate's common name with --client-ca, or its fingerprint: {\"ana\": \"write\", \"bob\": {\"travel.notes\": {\"access\": \"write\", \"if\": \"owner = \\\"bob\\\"\"}}, \"*\": \"none\"}. docs/command-line.md describes the format. Read again at SIGHUP."
        ),
        completion: .file()
    )
    var access: String?
    @Option(
        name: .customLong("origin"),
        help:
            "A web origin whose pages may connect, such as https://example.com; * for all. Repeatable. The default is none."
    )
    var origins: [String] = []
    @Option(
        name: .customLong("host-name"),
        help:
            "A name by which clients reach this host, if it is not its own name, for example behind a proxy. Repeatable."
    )
    var hostNames: [String] = []
    @Flag(
        help: "Show the database and its peers in a browser on this computer, and print the page's address."
    )
    var inspect = false
    @OptionGroup(title: "Discovery") var advertise: AdvertiseOptions
    @OptionGroup(title: "CouchDB") var couchDB: CouchDBOptions
    @OptionGroup var logging: LogOptions

    func validate() throws {
        guard [clientCA != nil, credentials.user != nil, paired].count(where: { $0 }) <= 1 else {
            throw ValidationError("Use one of --client-ca, --user and --paired.")
        }
        guard !readOnly || !writeOnly else {
            throw ValidationError("Use one of --read-only and --write-only.")
        }
        guard clientCA == nil && !paired || !noTls else {
            throw ValidationError("Certificates need TLS: leave out --no-tls.")
        }
        guard name == nil || !couchDB.creates else {
            throw ValidationError("--couchdb-create needs the database's own name: leave out --name.")
        }
        guard noTls || !couchDB.digestOnly else {
            throw ValidationError(
                "--couchdb-digest needs --no-tls: with TLS, passwords are encrypted already."
            )
        }
    }

    private func configuration(_ database: Database, _ policy: AccessPolicy?) throws
        -> URLEndpointListenerConfiguration
    {
        var configuration = URLEndpointListenerConfiguration(
            collections: try database.collections(
                named: collections.collectionNames,
                toCreateIn: argument.database
            )
        )
        configuration.databaseName = name
        configuration.port = port
        configuration.networkInterface = interface
        configuration.readOnly = readOnly
        configuration.writeOnly = writeOnly
        configuration.accessPolicy = policy
        configuration.enableDeltaSync = delta
        configuration.disableTLS = noTls
        configuration.origins = origins
        configuration.hostNames = hostNames
        configuration.advertise = advertise.advertisement
        if !noTls { configuration.tlsIdentity = try Identities.identity(tls) }
        if paired { configuration.authenticator = ListenerPairingAuthenticator(database: database) }
        if let clientCA {
            configuration.authenticator = ListenerCertificateAuthenticator(
                rootCertificates: try Identities.certificates(clientCA)
            )
        }
        if let user = credentials.user {
            let password = try credentials.password()
            configuration.authenticator = ListenerPasswordAuthenticator(secret: { name in
                ListenerPasswordAuthenticator.isEqual(name, user) ? .password(password) : nil
            })
        }
        return configuration
    }

    func run() async throws {
        try logging.begin()
        let (interrupts, continuation) = AsyncStream<Void>.makeStream()
        Signals.onInterrupt { continuation.yield() }
        let (hangups, hangup) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        Signals.onHangup { hangup.yield() }
        let database = try argument.open(keepsDeltaBases: delta)
        let accessFile = try access.map(AccessFile.init)
        var configuration = try configuration(database, accessFile?.policy)
        Self.warn(of: accessFile, for: configuration.collections)
        let couchListener = try couchDB.listener(
            beside: configuration,
            of: database,
            named: name,
            chosen: collections.collectionNames
        )
        if !couchDB.hasOwnPort { configuration.sharesPortWith = couchListener }
        let listener = URLEndpointListener(configuration)
        let reloading = Task {
            for await _ in hangups { await Self.reload(accessFile, for: listener, couchListener) }
        }
        let quiet = argument.quieting.quiet
        let lines = quiet ? nil : (listener.peerChanges, listener.failures)
        let printing = Task { if let lines { await PeerLines.print(lines.0, lines.1) } }
        let clients = quiet ? nil : couchListener
        let watching = Task { if let clients { await ClientLines.print(of: clients) } }
        let advertisements = [listener.advertisements, couchListener?.advertisements].compactMap { $0 }
        let telling = advertisements.map { states in
            Task { await AdvertisementLines.print(states, quiet: quiet) }
        }
        let monitor = try PeerMonitor(database)
        monitor.observe(listener)
        monitor.start()
        do {
            try await listener.start()
            if couchDB.hasOwnPort { try await couchListener?.start() }
        } catch { throw explained(error) }
        let control = try control(database, listener, monitor)
        defer { control.close() }
        // An error that ends the command at its start is said alone.
        warn(servingAs: name ?? database.name)
        if let certificate = listener.tlsIdentity?.certs.first {
            Output.remark("loveseat: pin \(certificate.fingerprint)")
        }
        for url in (listener.urls ?? []) + (couchListener?.urls ?? []) {
            try Output.standard.line(url.absoluteString)
        }
        let page = try await page(database, monitor)
        try Output.standard.flush()
        for await _ in interrupts { break }
        await page?.close()
        monitor.stop()
        try await database.close()
        for task in [printing, watching] + telling { task.cancel() }
        reloading.cancel()
    }
}

extension Serve {
    /// Names the port that is in use.
    private func explained(_ error: any Error) -> any Error {
        let isInUse = LoveseatError.Code(Int(EADDRINUSE), domain: .posix)
        guard isInUse ~= error else { return error }
        let ports = [port, couchDB.port].compactMap { $0 }.filter { $0 > 0 }.map(String.init)
        return LoveseatError(
            isInUse,
            "port \(ports.joined(separator: " or ")) is in use: use another --port, or end the program that listens there"
        )
    }

    /// Handles requests of other `loveseat` processes, because only this one may write to the database.
    private func control(
        _ database: Database,
        _ listener: URLEndpointListener,
        _ monitor: PeerMonitor
    ) throws -> ControlServer {
        let backend = ServingBackend(database: database, monitor: monitor)
        return try ControlServer(folder: argument.folder) { request, reply in
            switch request {
            case .showPairing(let name, let seconds):
                guard let pairing = listener.config.authenticator as? ListenerPairingAuthenticator else {
                    throw LoveseatError(
                        .unsupported,
                        "`serve` has the database open, without --paired: start it with --paired to pair peers"
                    )
                }
                try await PairShow.show(pairing, listener, name: name, seconds: seconds, reply)
            case .forgetPeer(let fingerprint): try PairForget.forget(fingerprint, in: database)
            case .peers(let number): try reply(.output(await monitor.report(after: number).description))
            case .pending(let key): try reply(.output(try await monitor.pending(over: key).description))
            case .edit(let edit): try reply(.output(try await backend.perform(edit).text))
            }
        }
    }

    /// Opens the inspector's page, if it was asked for, and prints its address.
    private func page(_ database: Database, _ monitor: PeerMonitor) async throws -> InspectorPage? {
        guard inspect else { return nil }
        let discovery = advertise.discovery
        return try await InspectorPage(
            argument,
            ServingBackend(database: database, monitor: monitor),
            discovery,
            port: 0
        )
    }

    /// Warns of risky settings.
    private func warn(servingAs name: String) {
        let isLoopback = interface.map(ListenerAddresses.isLoopback) ?? false
        if credentials.user == nil, clientCA == nil, !paired, !open, !isLoopback {
            Output.remark(
                "loveseat: WARNING: everybody on the network can \(readOnly ? "read" : writeOnly ? "change" : "read and change") this database. Use --user, --client-ca or --paired, or --open if that is intended"
            )
        }
        if noTls, credentials.user != nil {
            Output.remark(
                "loveseat: WARNING: without TLS the password and all documents are sent without encryption"
            )
        }
        if origins.contains(where: { $0.isExactly("*") }) {
            Output.remark(
                "loveseat: WARNING: every web page that somebody opens can read and change this database from their browser, with their login. Name the pages' origins instead of --origin '*'"
            )
        }
        if let proposal = URLEndpointListenerConfiguration.compatibleName(for: name) {
            Output.remark(
                "loveseat: Couchbase Lite cannot connect to a database named \"\(name)\"; if it should, use --name '\(proposal)'"
            )
        }
    }

    /// Warns of rules for collections that are not served.
    private static func warn(of file: AccessFile?, for collections: [Loveseat.Collection]) {
        let served = collections.map(\.fullName)
        for (peer, name) in file?.absent(from: served) ?? [] {
            Output.remark(
                "loveseat: WARNING: the rules of \"\(peer)\" in the --access file name the collection \(name), which is not served"
            )
        }
    }

    private static func reload(
        _ file: AccessFile?,
        for listener: URLEndpointListener,
        _ couchListener: CouchDBListener?
    ) async {
        guard let file else {
            return Output.remark("loveseat: there is no --access file to read again")
        }
        do {
            try file.reload()
            await listener.accessChanged()
            couchListener?.accessChanged()
            Output.remark("loveseat: the --access file was read again")
            warn(of: file, for: listener.config.collections)
        } catch {
            let reason = (error as? LoveseatError)?.message ?? "\(error)"
            Output.remark("loveseat: \(reason); the rules stay as they were")
        }
    }
}

extension Database {
    /// Collections by name; every one if none is named.
    ///
    /// `database`: the database as the user named it, for advice to create what does not exist; nil if that would not help.
    func collections(named names: [CollectionName], toCreateIn database: String? = nil) throws -> [Loveseat
        .Collection]
    {
        guard !names.isEmpty else { return try scopes().flatMap { try $0.collections() } }
        return try names.map { name in
            guard let collection = try collection(name: name.name, scope: name.scope) else {
                throw name.absence(
                    from: self,
                    advice: database.map {
                        "create it with `loveseat create \($0.shellWord) --collections \(name.fullName)`"
                    }
                )
            }
            return collection
        }
    }
}
